// Package status is sledctl status.
package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/status"
)

// flags are those of the command.
type flags struct {
	problems, check bool
	watch           time.Duration // how often; 0: once
	far             cli.Remote
}

// New is the command status.
func New(env *cli.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether the sled is well, and what to type if not",
		Long: `Show whether the sled is well, and what to type if not. First comes the verdict: OK, ATTENTION, TROUBLE, or UNKNOWN if the ledger cannot
be read. Then come the problems, the most urgent first, each with the command that repairs it, and the state of disks, ledger and memory.

The command changes nothing and waits for no operation. A Propolis that does not answer within 1 s, or a host command that does not answer
within 5 s, is unknown, and the rest is shown. The command exits with 0 whatever the verdict is; exit 9 if the ledger cannot be read.

With --check it prints one line, for monitoring: the verdict, the codes of the problems, and counts. Exit 0 OK, 10 ATTENTION, 11 TROUBLE.

With --watch it looks again every 2 s: on a terminal the screen is redrawn in place until q or ^C (exit 0); elsewhere the line of --check is
printed whenever it changes, with -o json the whole status, until ^C (exit 130) or --timeout (exit 7).

With --sled a,b or --sled all it prints a line for each of these sleds (sled list); the exit code is that of the worst verdict, as with
--check.

With --agent, the agent of a sled looks, at most every 2 s.

In a pipe it prints one problem per line. docs/status.md lists the codes.`,
		Example: `  sledctl status
  sledctl status --problems
  sledctl status --check
  sledctl status --watch=5s`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return run(ctx, env, f) }),
	}
	cmd.Flags().BoolVar(&f.problems, "problems", false, "print the problems alone, all of them")
	cmd.Flags().BoolVar(&f.check, "check", false, "print one line; exit 10 or 11 unless the sled is well")
	cli.AddWatch(cmd, &f.watch)
	f.far.Add(cmd)
	env.AddOutput(cmd)
	return cmd
}

// Bare runs the command as sledctl alone does on a terminal.
func Bare(env *cli.Env) func(*cobra.Command, []string) error {
	return env.Run(func(ctx context.Context, _ []string) error {
		err := run(ctx, env, flags{})
		_, unprinted := fmt.Fprintln(env.Streams.Out, "\nsledctl --help lists the commands")
		return cmp.Or(err, unprinted)
	})
}

func run(ctx context.Context, e *cli.Env, f flags) error {
	if err := problemList().Check(e.Output); err != nil {
		return err
	}
	switch {
	case f.watch < 0:
		return &cli.UsageError{Text: fmt.Sprintf("--watch %v: want a time above 0", f.watch), Advice: "give --watch=2s"}
	case f.watch > 0:
		return watch(ctx, e, f)
	}
	s, err := f.look(ctx, e)
	if err != nil {
		return err
	}
	switch {
	case f.check:
		err = printLine(e, s)
	case e.Output.Format == terminal.FormatJSON:
		err = printJSON(e, s.Status)
	default:
		err = printProblems(e, s.Status, f)
	}
	return s.ended(err, !f.check && e.Output.Format != terminal.FormatJSON && e.Output.Columns == nil)
}

// ended is how a look ends whose output has ended so. Output that says already why the
// ledger cannot be read, and what to type, leaves only the exit code.
func (s looked) ended(printed error, said bool) error {
	if said && printed == nil && s.noLedger != nil {
		return cli.ExitStatus(failure.Exit(s.noLedger, nil))
	}
	return errors.Join(s.noLedger, printed)
}

// kind is that of a status in JSON.
const kind = "Status"

func printJSON(e *cli.Env, s status.Status) error {
	return terminal.List[status.Status]{Kind: kind}.PrintOne(e.Streams.Out, e.Output, s)
}

// printLine prints the line for monitoring; the verdict is the exit code.
func printLine(e *cli.Env, s looked) error {
	if _, err := fmt.Fprintln(e.Streams.Out, s.Line()); err != nil {
		return err
	}
	switch {
	case s.Verdict == status.IsOK, s.noLedger != nil: // then that is the exit code
		return nil
	case s.Verdict == status.IsAttention:
		return cli.ErrDifferences
	}
	return cli.ErrTrouble
}

// printProblems prints the screen on a terminal, else the problems as lines.
func printProblems(e *cli.Env, s status.Status, f flags) error {
	out := e.Streams.Out
	if !e.Output.Table(out) || e.Output.Columns != nil {
		return problemList().Print(out, e.Output, numbered(s))
	}
	_, err := io.WriteString(out, show(e, s, f))
	return err
}

func show(e *cli.Env, s status.Status, f flags) string {
	view := screen{Status: s, width: e.Streams.Out.Width(), lines: max(lines, e.Streams.Out.Height()-1), style: e.Streams.Out.Style, zone: e.Now().Location(), afar: e.Afar}
	if f.problems {
		return view.list()
	}
	return view.text()
}

// line is one problem with its number.
type line struct {
	status.Problem
	n int
}

func numbered(s status.Status) []line {
	all := make([]line, len(s.Problems))
	for i, p := range s.Problems {
		all[i] = line{p, i + 1}
	}
	return all
}

func problemList() terminal.List[line] {
	type column = terminal.Column[line]
	return terminal.List[line]{Kind: "Problem", Name: func(l line) string { return l.Code }, Columns: []column{
		{Name: "n", Value: func(l line) string { return strconv.Itoa(l.n) }},
		{Name: "sign", Value: func(l line) string { return l.Severity.Sign() }},
		{Name: "code", Value: func(l line) string { return l.Code }},
		{Name: "subject", Value: func(l line) string { return strings.TrimSpace(l.Subject.Kind + " " + l.Subject.Name) }},
		{Name: "text", Value: func(l line) string { return l.Text }},
		{Name: "since", Value: func(l line) string {
			if l.Since == nil {
				return ""
			}
			return l.Since.UTC().Format(time.RFC3339)
		}},
		{Name: "next", Value: func(l line) string { return strings.Join(l.Next, "; ") }},
	}}
}
