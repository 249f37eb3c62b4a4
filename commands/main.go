// Package commands is the command line. The first word of a command names the
// folder that has it, and the next the file: instance ensure is in
// instance/ensure.go. This package joins the folders to the tree of all commands,
// and runs one of them.
//
// A folder's New takes the cli.Env and returns a cobra command around an options
// struct and a plain run function: flags, wiring and rendering. Nothing is decided
// here; what to do is decided by the domain packages, and when by
// engine/operation. What several folders share is in cli, description and step;
// besides, instance prints its history as history and events do, and the agent compares NICs
// as nics does.
package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/sim"
)

// Main runs the program and returns its exit code. Called under the name of a
// command of the simulated sled, it is that command.
func Main(args []string, in, out, errs *os.File, environ []string, version string) int {
	name := filepath.Base(args[0])
	if sim.IsStandIn(name) {
		return sim.StandIn(context.Background(), name, args[1:], in, out, errs, environ)
	}
	cli.CollectLate()
	env := cli.NewEnv(terminal.System(in, out, errs, environ), environ, version)
	ctx, stop := cli.Interruptible(context.Background(), env)
	defer stop()
	return env.End(execute(ctx, env, rootFor(env, args[1:])))
}

// execute turns a panic, a defect of sledctl, into an error: what was going on
// is resumed like after a kill.
func execute(ctx context.Context, env *cli.Env, root *cobra.Command) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", plan.ErrPanic, r)
		}
	}()
	called, err := root.ExecuteContextC(ctx)
	env.Called = called.CommandPath()
	return err
}

// runLine runs a command line for the screen of another one.
func runLine(ctx context.Context, streams *terminal.Streams, environ, words []string) int {
	env := cli.NewEnv(streams, environ, "")
	defer env.Close()
	return Run(ctx, env, words)
}

// Run runs one command line on the streams of env and returns its exit code.
func Run(ctx context.Context, env *cli.Env, args []string) int {
	return env.End(execute(ctx, env, rootFor(env, args)))
}

// rootFor returns the tree that a command line needs.
func rootFor(env *cli.Env, args []string) *cobra.Command {
	env.Completing = len(args) > 0 && slices.Contains([]string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, args[0])
	root := newRoot(env, args...)
	root.SetArgs(args)
	return root
}
