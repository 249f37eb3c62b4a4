// Package shell interprets the scripts of the simulated sled's zones: the start
// methods of their services, and what zlogin is given.
package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// Run runs a script in a zone of the machine. The error is ErrKilled or
// errBlocked, or the context's; what the script did until then is in the reply.
func Run(ctx context.Context, m cli.Machine, zone, script string, env map[string]string, stdin []byte) (cli.Reply, error) {
	s := &shell{machine: m, zone: zone, env: env, stdin: stdin}
	return s.run(ctx, script, nil)
}

// shell interprets scripts. Nothing of it reaches the real machine.
type shell struct {
	machine cli.Machine
	zone    string
	kernel  int // as in Call
	env     map[string]string
	stdin   []byte

	mu     sync.Mutex // a pipeline runs its commands side by side
	ended  bool
	behind []span // what is in the background
	depth  int
	calls  int

	refused string // what the script did that is not simulated
}

// Scripts that run themselves end at maxDepth. Those that wait in a loop for
// what cannot happen within a transaction end at maxCalls.
const (
	maxDepth = 16
	maxCalls = 100_000
)

// shellPath is what zlogin and smf_method(7) set.
const shellPath = "/usr/sbin:/usr/bin"

// run interprets a script with the positional parameters args. The error is
// ErrKilled or errBlocked, or the context's; what the script did until then is
// in the reply.
func (s *shell) run(ctx context.Context, script string, args []string) (cli.Reply, error) {
	var stdout, stderr output
	err := s.interpret(ctx, script, "sh", args, s.environ(), bytes.NewReader(s.stdin), &stdout, &stderr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	reply := cli.Reply{Stdout: stdout.String(), Stderr: stderr.String()}
	if s.refused != "" {
		reply.Stderr += "not simulated: " + s.refused + " in a zone\n"
		reply.Exit = cli.ExitNotSimulated
		return reply, nil
	}
	if status, ok := errors.AsType[interp.ExitStatus](err); ok {
		reply.Exit = int(status)
		return reply, nil
	}
	return reply, err
}

// interpret runs a script to its end. The error is an interp.ExitStatus, or
// what ended the script from outside.
func (s *shell) interpret(
	ctx context.Context, script, name string, args []string, env expand.Environ, stdin io.Reader, stdout, stderr io.Writer,
) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), name)
	if err == nil {
		err = s.prepare(file)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return interp.ExitStatus(2)
	}
	stdin, done, err := input(stdin)
	if err != nil {
		return err
	}
	defer done()
	runner, err := interp.New(
		interp.Env(env), interp.Dir("/"), interp.Params(append([]string{"--"}, args...)...), interp.StdIO(stdin, stdout, stderr),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }),
		interp.CallHandler(s.call), interp.OpenHandler(s.open),
		interp.ReadDirHandler2(func(context.Context, string) ([]fs.DirEntry, error) {
			return nil, s.refuse("a pattern for names of files")
		}),
		interp.StatHandler(func(context.Context, string, bool) (fs.FileInfo, error) { return nil, s.refuse("a test of a file") }),
		interp.AccessHandler(func(context.Context, string, interp.AccessMode) error { return s.refuse("a test of a file") }),
	)
	if err != nil {
		return err
	}
	return runner.Run(ctx, file)
}

// refuse notes what is not simulated: the script ends before its next command. So
// it does wherever the interpreter would look at the real machine.
func (s *shell) refuse(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = what
	return cli.ErrBlocked
}

// environ is the clean environment with what was given on top.
func (s *shell) environ() expand.Environ {
	all := []string{
		"PATH=" + shellPath, "HOME=/root", "LOGNAME=root", "SHELL=/usr/bin/sh", "TZ=UTC", "TMPDIR=/tmp", "UID=0", "EUID=0", "GID=0",
	}
	for k, v := range s.env {
		all = append(all, k+"="+v)
	}
	return expand.ListEnviron(all...)
}

// call sees every command before it is run, and replaces builtins that look at
// the real machine.
func (s *shell) call(_ context.Context, args []string) ([]string, error) {
	s.mu.Lock()
	s.calls++
	over, refused := s.calls > maxCalls, s.refused != ""
	s.mu.Unlock()
	if over || refused {
		return nil, cli.ErrBlocked
	}
	if args[0] == "kill" {
		return append([]string{"/usr/bin/kill"}, args[1:]...), nil
	}
	return args, nil
}

// exec runs a command of a script.
func (s *shell) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	c := cli.Call{Tool: args[0], Args: args[1:], Env: exported(hc.Env), Zone: s.zone, Kernel: s.kernel}
	if ReadsInput(c) && hc.Stdin != nil {
		data, err := io.ReadAll(hc.Stdin)
		if err != nil {
			return err
		}
		c.Stdin = data
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return cli.ErrKilled
	}
	return s.execute(ctx, &hc, c)
}

// execute runs one command: a utility, a tool, or a program from a file.
func (s *shell) execute(ctx context.Context, hc *interp.HandlerContext, c cli.Call) error {
	if err, ok := s.utility(ctx, hc, c); ok {
		return err
	}
	if name, ok := programName(c.Tool); ok {
		if s.machine.Has(name) {
			c.Tool = name
			return s.tool(ctx, hc, c)
		}
	}
	return s.program(ctx, hc, c)
}

// tool runs a command of the sled.
func (s *shell) tool(ctx context.Context, hc *interp.HandlerContext, c cli.Call) error {
	if s.inBackground(hc.Pos) {
		return s.machine.Start(ctx, c)
	}
	reply, err := s.machine.Exec(ctx, c)
	io.WriteString(hc.Stdout, reply.Stdout)
	io.WriteString(hc.Stderr, reply.Stderr)
	switch {
	case err != nil:
		return err
	case reply.Exit != 0:
		return interp.ExitStatus(uint8(reply.Exit))
	}
	return nil
}

// program runs a file of the zone: a script, or Propolis.
func (s *shell) program(ctx context.Context, hc *interp.HandlerContext, c cli.Call) error {
	name := c.Tool
	if !strings.Contains(name, "/") {
		fmt.Fprintf(hc.Stderr, "sh: %s: not found\n", name)
		return interp.ExitStatus(127)
	}
	name = absolute(hc.Dir, name)
	info, data, err := s.readFile(ctx, name)
	switch {
	case err != nil:
		fmt.Fprintf(hc.Stderr, "sh: %s: not found\n", c.Tool)
		return interp.ExitStatus(127)
	case info.Mode&0o111 == 0 || !info.Mode.IsRegular():
		fmt.Fprintf(hc.Stderr, "sh: %s: cannot execute\n", c.Tool)
		return interp.ExitStatus(126)
	case bytes.HasPrefix(data, []byte("#!")):
		return s.script(ctx, hc, hc.Env, string(data), name, c.Args)
	case path.Base(name) == PropolisProgram:
		c.Args = append([]string{name}, c.Args...)
		c.Tool = PropolisProgram
		return s.tool(ctx, hc, c)
	}
	fmt.Fprintf(hc.Stderr, "sh: %s: cannot execute\n", c.Tool)
	return interp.ExitStatus(126)
}

// script runs a script from within a command of another one.
func (s *shell) script(ctx context.Context, hc *interp.HandlerContext, env expand.Environ, text, name string, args []string) error {
	if s.depth == maxDepth {
		fmt.Fprintf(hc.Stderr, "%s: too many scripts within each other\n", name)
		return interp.ExitStatus(126)
	}
	s.depth++
	outer, all := s.behind, s.inBackground(hc.Pos)
	s.behind = nil
	if all {
		s.behind = []span{{0, uint(len(text))}}
	}
	s.mu.Unlock() // its commands take it
	defer func() {
		s.mu.Lock()
		s.behind = outer
		s.depth--
	}()
	return s.interpret(ctx, text, name, args, env, hc.Stdin, hc.Stdout, hc.Stderr)
}

func exported(env expand.Environ) map[string]string {
	all := map[string]string{}
	env.Each(func(name string, v expand.Variable) bool {
		if v.Exported && v.Kind == expand.String {
			all[name] = v.Str
		}
		return true
	})
	return all
}

func absolute(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}
