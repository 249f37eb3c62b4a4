package shell

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// utility runs the small programs that scripts use; false if it is none of
// them. What the shell itself has (echo, printf, test, true, …) is not here.
func (s *shell) utility(ctx context.Context, hc *interp.HandlerContext, c cli.Call) (error, bool) {
	name, ok := ProgramName(c.Tool)
	if !ok {
		return nil, false
	}
	switch name {
	case "cat":
		return s.cat(ctx, hc, c), true
	case "sleep":
		return s.sleep(ctx, hc, c), true
	case "kill":
		return s.kill(hc, c.Args), true
	case "ctrun":
		return s.ctrun(ctx, hc, c), true
	case "sh", "bash", "ksh", "ksh93":
		return s.shell(ctx, hc, c), true
	case "mkdir", "rm", "rmdir", "env", "which", "basename", "dirname":
		fmt.Fprintf(hc.Stderr, "not simulated: %s in a zone\n", name)
		return interp.ExitStatus(cli.ExitNotSimulated), true
	}
	return nil, false
}

// failed prints why a utility failed.
func failed(hc *interp.HandlerContext, format string, args ...any) error {
	fmt.Fprintf(hc.Stderr, format+"\n", args...)
	return interp.ExitStatus(1)
}

// kill is kill(1), of the script's own shell ($$): what else runs is no process
// that has a number here.
func (s *shell) kill(hc *interp.HandlerContext, args []string) error {
	signal := "TERM"
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
			return failed(hc, "kill: %s: signal that is not simulated", signal)
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
		_, data, err := s.readFile(ctx, absolute(hc.Dir, file))
		if err == nil {
			_, err = hc.Stdout.Write(data)
		}
		if err != nil {
			result = failed(hc, "cat: %s: %s", file, cli.ErrnoText(err))
		}
	}
	return result
}

func (s *shell) sleep(ctx context.Context, hc *interp.HandlerContext, c cli.Call) error {
	if len(c.Args) != 1 {
		return failed(hc, "usage: sleep time")
	}
	d, err := time.ParseDuration(strings.TrimSuffix(c.Args[0], "s") + "s")
	if err != nil || d < 0 {
		return failed(hc, "sleep: bad character in argument")
	}
	if s.inBackground(hc.Pos) {
		return nil
	}
	return s.machine.Sleep(ctx, c, d)
}

// ctrun runs a command in a new process contract (ctrun(1)), of which nothing
// is seen from outside.
func (s *shell) ctrun(ctx context.Context, hc *interp.HandlerContext, c cli.Call) error {
	options, operands := cli.Getopt(c.Args, "i:f:l:o:r:tvF:A:", nil)
	for _, o := range options {
		switch {
		case o.Bad != "":
			fmt.Fprintf(hc.Stderr, "ctrun: illegal option -- %s\n", o.Bad)
			return interp.ExitStatus(2)
		case o.Letter == 'l' && !slices.Contains([]string{"child", "contract", "none"}, o.Value):
			return failed(hc, "ctrun: invalid lifetime '%s'", o.Value)
		}
	}
	if len(operands) == 0 {
		fmt.Fprintln(hc.Stderr, "Usage: ctrun [options] command [argument]...")
		return interp.ExitStatus(2)
	}
	c.Tool, c.Args = operands[0], operands[1:]
	return s.execute(ctx, hc, c)
}

// shell is sh(1) within a script: -c STRING, a file, or standard input.
func (s *shell) shell(ctx context.Context, hc *interp.HandlerContext, c cli.Call) error {
	run := func(text, name string, args []string) error {
		return s.script(ctx, hc, expand.ListEnviron(pairs(c.Env)...), text, name, args)
	}
	switch {
	case len(c.Args) == 0:
		return run(string(c.Stdin), c.Tool, nil)
	case c.Args[0] == "-c" && len(c.Args) > 1:
		return run(c.Args[1], c.Tool, c.Args[min(3, len(c.Args)):])
	case strings.HasPrefix(c.Args[0], "-"):
		return failed(hc, "%s: %s: not simulated", c.Tool, c.Args[0])
	}
	_, data, err := s.readFile(ctx, absolute(hc.Dir, c.Args[0]))
	if err != nil {
		fmt.Fprintf(hc.Stderr, "%s: %s: not found\n", c.Tool, c.Args[0])
		return interp.ExitStatus(127)
	}
	return run(string(data), c.Args[0], c.Args[1:])
}

func pairs(env map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+env[name])
	}
	return all
}
