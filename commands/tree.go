package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/terminal"
)

// word is one of a command line's, and what makes its command with all that is
// below that.
type word struct {
	name string
	make func(*Env) *cobra.Command
}

// add makes the command that the command line names right behind the words of to;
// all, if it names none.
func (e *Env) add(to *cobra.Command, words []string, all []word) {
	n := len(words)
	for _, w := range all {
		if len(e.words) > n && slices.Equal(e.words[:n], words) && e.words[n] == w.name {
			to.AddCommand(w.make(e))
			return
		}
	}
	for _, w := range all {
		to.AddCommand(w.make(e))
	}
}

// group is a command that only has others below it. Called by itself, or with
// a word that is none of them, it is a usage error: a script with a typo must
// not succeed.
func group(use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: strings.TrimSpace(long),
		Args: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if cmd.HasParent() {
					return &usageError{text: cmd.CommandPath() + " needs a subcommand: " + strings.Join(subcommands(cmd), ", "), hint: cmd.CommandPath() + " --help"}
				}
				return cmd.Help()
			}
			e := &usageError{text: fmt.Sprintf("%s: unknown subcommand %q", cmd.CommandPath(), args[0]), hint: cmd.CommandPath() + " --help lists them"}
			if near := terminal.Nearest(args[0], subcommands(cmd)); near != "" {
				e.hint = "did you mean: " + cmd.CommandPath() + " " + near
			}
			return e
		},
	}
}

func subcommands(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// runner is what a command does once its flags are read.
type runner func(ctx context.Context, args []string) error

// run wraps a runner: the deadline of --timeout, and an interruption, become
// the error that they are.
func (e *Env) run(r runner) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if err := readCrashAt(e); err != nil {
			return err
		}
		if e.flags.timeout > 0 {
			var release context.CancelFunc
			ctx, release = context.WithTimeout(ctx, e.flags.timeout)
			defer release()
		}
		err := e.unconfirmed(ctx, r(ctx, args))
		e.crash.report(e.progress)
		if err != nil && errors.Is(context.Cause(ctx), errInterrupted) && errors.Is(err, context.Canceled) {
			return &interruptedError{err}
		}
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
			return &timeoutError{e.flags.timeout, err}
		}
		return err
	}
}
