package shell

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// utility runs the small programs that scripts use; false if it is none of
// them. What the shell itself has (echo, printf, test, true, …) is not here.
func (s *shell) utility(ctx context.Context, hc *interp.HandlerContext, c cli.Call) (error, bool) {
	name, ok := programName(c.Tool)
	if !ok {
		return nil, false
	}
	switch name {
	case "cat":
		return s.cat(ctx, hc, c), true
	case "kill":
		return s.kill(hc, c), true
	case "ctrun":
		return s.ctrun(ctx, hc, c), true
	case "sh", "bash", "ksh", "ksh93":
		return s.shell(ctx, hc, c), true
	case "mkdir", "rm", "rmdir", "env", "which", "basename", "dirname", "sleep":
		return unsimulated(hc, c), true
	}
	return nil, false
}

// failed prints why a utility failed.
func failed(hc *interp.HandlerContext, format string, args ...any) error {
	fmt.Fprintf(hc.Stderr, format+"\n", args...)
	return interp.ExitStatus(1)
}

// unsimulated refuses a command of a script.
func unsimulated(hc *interp.HandlerContext, c cli.Call) error {
	fmt.Fprintf(hc.Stderr, "not simulated: %s in a zone\n", strings.Join(append([]string{c.Tool}, c.Args...), " "))
	return interp.ExitStatus(cli.ExitNotSimulated)
}

// programName is the command that a path or a bare word names, if the
// directory is one that has commands.
func programName(program string) (string, bool) {
	switch path.Dir(program) {
	case ".", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib":
		return path.Base(program), true
	}
	return "", false
}

// kill is kill(1), of the script's own shell ($$): what else runs is no process
// that has a number here.
func (s *shell) kill(hc *interp.HandlerContext, c cli.Call) error {
	signal, args := "TERM", c.Args
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if signal = args[0][1:]; signal == "s" && len(args) > 1 {
			signal, args = args[1], args[1:]
		}
		args = args[1:]
	}
	self := strconv.Itoa(os.Getpid()) // what the interpreter has for $$
	for _, pid := range args {
		switch {
		case pid != self:
			return failed(hc, "kill: %s: no process that is simulated", pid)
		case slices.Contains([]string{"9", "KILL", "SIGKILL", "15", "TERM", "SIGTERM", "1", "HUP", "SIGHUP", "2", "INT", "SIGINT"}, signal):
			s.ended = true
			return cli.ErrKilled
		case signal != "0":
			return unsimulated(hc, c)
		}
	}
	return nil
}

func (s *shell) cat(ctx context.Context, hc *interp.HandlerContext, c cli.Call) error {
	if len(c.Args) == 0 {
		_, err := hc.Stdout.Write(c.Stdin)
		return err
	}
	var result error
	for _, file := range c.Args {
		info, data, err := s.readFile(ctx, absolute(hc.Dir, file))
		if err == nil && !info.Mode.IsRegular() {
			return unsimulated(hc, c)
		}
		if err == nil {
			_, err = hc.Stdout.Write(data)
		}
		if err != nil {
			result = failed(hc, "cat: %s: %s", file, cli.ErrnoText(err))
		}
	}
	return result
}

// ctrun runs a command in a new process contract (ctrun(1)), which cannot be seen
// from outside.
func (s *shell) ctrun(ctx context.Context, hc *interp.HandlerContext, c cli.Call) error {
	options, operands := cli.Getopt(c.Args, "l:o:", nil)
	if len(operands) == 0 || slices.ContainsFunc(options, func(o cli.Option) bool { return o.Bad != "" || o.Letter == 'l' && o.Value != "child" }) {
		return unsimulated(hc, c)
	}
	c.Tool, c.Args = operands[0], operands[1:]
	return s.execute(ctx, hc, c)
}

// shell is sh(1) within a script: -c STRING.
func (s *shell) shell(ctx context.Context, hc *interp.HandlerContext, c cli.Call) error {
	if len(c.Args) < 2 || c.Args[0] != "-c" {
		return unsimulated(hc, c)
	}
	return s.script(ctx, hc, expand.ListEnviron(pairs(c.Env)...), c.Args[1], c.Tool, c.Args[min(3, len(c.Args)):])
}

func pairs(env map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+env[name])
	}
	return all
}
