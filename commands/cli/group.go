package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/sleds"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/failure"
)

// Word is one of a command line's, and what makes its command with all that is
// below that.
type Word struct {
	Name string
	Make func(*Env) *cobra.Command
}

// Add makes the command that the command line names directly after those of to; if
// it names none, it makes all.
func (e *Env) Add(to *cobra.Command, words []string, all []Word) {
	n := len(words)
	if n == 0 {
		e.Afar = sleds.Of(commandsOf(all))
	}
	for _, w := range all {
		if len(e.Words) > n && slices.Equal(e.Words[:n], words) && e.Words[n] == w.Name {
			to.AddCommand(w.Make(e))
			return
		}
	}
	for _, w := range all {
		to.AddCommand(w.Make(e))
	}
}

// Group is a command that only has others below it. Called by itself, or with
// a word that is none of them, it is a usage error: a script with a typo must
// not succeed.
func Group(use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: strings.TrimSpace(long),
		Args: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if cmd.HasParent() {
					return &UsageError{Text: cmd.CommandPath() + " needs a subcommand: " + strings.Join(Subcommands(cmd), ", "), Advice: "to see them, run: " + cmd.CommandPath() + " --help"}
				}
				return cmd.Help()
			}
			e := &UsageError{Text: fmt.Sprintf("%s: unknown subcommand %q", cmd.CommandPath(), args[0]), Advice: "to see them, run: " + cmd.CommandPath() + " --help"}
			if near := naming.Nearest(args[0], Subcommands(cmd)); near != "" {
				e.Advice = "did you mean: " + cmd.CommandPath() + " " + near
			}
			return e
		},
	}
}

// Subcommands are the names of those below a command.
func Subcommands(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// Runner is what a command does once its flags are read.
type Runner func(ctx context.Context, args []string) error

// Run wraps a runner: the deadline of --timeout, and an interruption, become
// the error that they are.
func (e *Env) Run(r Runner) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if err := readCrashAt(e); err != nil {
			return err
		}
		form, err := ParseForm(cmp.Or(e.Flags.progress, Variable(e.Environ, "SLEDCTL_PROGRESS")))
		if err != nil {
			return err
		}
		e.Progress.form = form
		if e.Flags.timeout > 0 {
			var release context.CancelFunc
			ctx, release = context.WithTimeout(ctx, e.Flags.timeout)
			defer release()
		}
		err = e.unconfirmed(ctx, r(ctx, args))
		e.crash.report(e.Progress)
		if err != nil && errors.Is(context.Cause(ctx), ErrInterrupted) && errors.Is(err, context.Canceled) {
			if e.Progress.follows {
				return ExitStatus(failure.ExitInterrupted)
			}
			return &interruptedError{err}
		}
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
			if e.Progress.follows && e.Streams.Out.Wrote() {
				err = context.DeadlineExceeded // it may end anywhere; before it shows anything, who does not answer is named
			}
			return &failure.TimeoutError{Limit: e.Flags.timeout, Err: err}
		}
		return err
	}
}
