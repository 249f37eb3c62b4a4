package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/commands/terminal/screen"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
)

// AddGlobal gives the root the flags of every command.
func (e *Env) AddGlobal(root *cobra.Command) {
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if e.Flags.timeout < 0 {
			return &UsageError{Text: fmt.Sprintf("--timeout %s: want a duration above 0, e.g. 90s", e.Flags.timeout)}
		}
		if now := e.Now; e.Flags.utc {
			e.Now = func() time.Time { return now().UTC() }
		}
		return onSled(e, cmd)
	}
	flags := root.PersistentFlags()
	flags.StringVar(&e.Flags.Host, "host", "", "`SLED` to work on: illumos, sim or sim:DIR (SLEDCTL_HOST)")
	flags.StringVar(&e.Flags.sled, "sled", "", "`NAME` of the sled to work on (sled list; SLEDCTL_SLED)")
	e.CompleteFlag(root, "sled", CompleteSleds(e))
	flags.StringVar(&e.Flags.knownAs, "known-as", "", "`NAME` by which the operator's machine calls this sled")
	_ = flags.MarkHidden("known-as") // it fails only for a flag that does not exist
	flags.StringVar(&e.Flags.Config, "config", "", "configuration `FILE` (SLEDCTL_CONFIG; "+naming.ConfigFile+")")
	e.Complete(root, "host", func() []string { return []string{"illumos", "sim"} })
	flags.DurationVar(&e.Flags.timeout, "timeout", 0, "limit for the whole command, e.g. 90s or 5m (0: none)")
	flags.BoolVar(&e.Flags.degraded, "degraded", false, "continue although a copy of the ledger is missing")
	flags.BoolVar(&e.Flags.Wait, "wait", false, "wait for another process's lock instead of exiting with 6")
	flags.StringVar(&e.Flags.crashAt, "crash-at", "", "simulated sled: die at the N-th change, N[:before|:after]")
	flags.StringVar(&e.Flags.progress, "progress", "", "`FORM` of progress: auto, plain or json (SLEDCTL_PROGRESS)")
	flags.BoolVar(&e.Flags.utc, "utc", false, "print clock times in UTC, not in the sled's time zone")
	e.Complete(root, "progress", func() []string { return []string{string(FormAuto), string(FormPlain), string(FormJSON)} })
	flags.BoolVarP(&e.Progress.verbose, "verbose", "v", false, "print each step when it ends")
}

// AddOutput gives a command -o, -H and --columns.
func (e *Env) AddOutput(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP((*string)(&e.Output.Format), "output", "o", "", "`FORMAT`: table, wide, json, tsv or name (default: table, in a pipe tsv)")
	flags.BoolVarP(&e.Output.NoHeader, "no-header", "H", false, "do not print the header line")
	flags.StringSliceVar(&e.Output.Columns, "columns", nil, "`NAME,...` of the columns to print, in this order")
	e.Complete(cmd, "output", func() []string { return terminal.Formats() })
}

// Mutation are the flags of every command that changes something.
type Mutation struct {
	DryRun   bool
	Explain  bool
	Keep     bool
	Detailed bool
}

// Add gives a command the flags; keep says whether --keep is one of them.
func (m *Mutation) Add(cmd *cobra.Command, keep bool) {
	flags := cmd.Flags()
	flags.BoolVarP(&m.DryRun, "dry-run", "n", false, "print what would change, and why; change nothing")
	flags.BoolVar(&m.Explain, "explain", false, "--dry-run that also prints each host command")
	flags.BoolVar(&m.Detailed, "detailed-exitcode", false, "with --dry-run: exit 10 if something would change")
	if keep {
		flags.BoolVar(&m.Keep, "keep", false, "on failure, keep what was created, for inspection")
	}
}

// Dry says whether nothing is to be done.
func (m Mutation) Dry() bool { return m.DryRun || m.Explain }

// PrintPlan prints what a dry run would have done.
func (e *Env) PrintPlan(m Mutation, reports ...operation.Report) error {
	if e.Output.Format == terminal.FormatJSON {
		return printPlanJSON(e.Streams, reports)
	}
	some := false
	for _, r := range reports {
		text, err := r.Plan.Text(m.Explain, e.Output.Fold(e.Streams.Out))
		if err != nil {
			return err
		}
		some = some || text != ""
		if _, err := fmt.Fprint(e.Streams.Out, text); err != nil {
			return err
		}
	}
	if !some {
		e.Progress.Say("nothing to do")
	}
	if some && m.Detailed {
		return ErrDifferences
	}
	return nil
}

// SizeFlag is a flag that takes a size as zfs(8) writes them.
type SizeFlag struct {
	Value **uint64
	Least uint64 // what is smaller is refused: a letter was forgotten
}

func (f SizeFlag) String() string {
	if f.Value == nil || *f.Value == nil {
		return ""
	}
	return terminal.ExactSize(**f.Value)
}
func (SizeFlag) Type() string { return "size" }
func (f SizeFlag) Set(s string) error {
	n, err := terminal.ParseSize(s)
	if err != nil {
		return err
	}
	if n < f.Least {
		return fmt.Errorf("want %s or more: a number without a letter is of bytes", terminal.ExactSize(f.Least))
	}
	*f.Value = &n
	return nil
}

// IntFlag is a number that may be left out.
type IntFlag struct{ Value **int }

func (f IntFlag) String() string {
	if f.Value == nil || *f.Value == nil {
		return ""
	}
	return fmt.Sprint(**f.Value)
}
func (IntFlag) Type() string { return "number" }
func (f IntFlag) Set(s string) error {
	var n int
	if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil {
		return fmt.Errorf("want a whole number")
	}
	*f.Value = &n
	return nil
}

// FuncFlag is a flag that is read by a function.
type FuncFlag struct {
	Kind string
	Read func(string) error
}

func (FuncFlag) String() string       { return "" }
func (f FuncFlag) Type() string       { return f.Kind }
func (f FuncFlag) Set(s string) error { return f.Read(s) }

// Belongs marks a flag that a command accepts and that is described in the help
// of another command, which is its value.
const Belongs = "described by"

// DescribedBy marks flags of a command as those of another, which describes them.
func DescribedBy(cmd *cobra.Command, by string, names ...string) {
	for _, name := range names {
		_ = cmd.Flags().SetAnnotation(name, Belongs, []string{by}) // it fails only for a flag that does not exist
	}
}

// Since is the time that --since names: so long ago, or a time of its own. Empty: none.
func Since(now time.Time, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &UsageError{Text: fmt.Sprintf("--since %q: want 10m, or a time, e.g. 2026-11-23T06:27:17Z", text)}
	}
	return at, nil
}

// WatchBeat is how often a watch looks if nothing else is said.
const WatchBeat = 2 * time.Second

// AddWatch gives a command --watch, which may have a time; 0 is no watch.
func AddWatch(cmd *cobra.Command, every *time.Duration) {
	cmd.Flags().DurationVar(every, "watch", 0, "look again and again, so often (default 2s)")
	cmd.Flags().Lookup("watch").NoOptDefVal = WatchBeat.String()
}

// WatchLive draws a view in place on the terminal, first as it is given and then every so
// often as look gives it, until q or ^C, or until the terminal hangs up. An interruption is how
// one leaves it, and no error.
func WatchLive(ctx context.Context, e *Env, every time.Duration, first string, look func(context.Context) (string, error)) error {
	e.Progress.Follows()
	ctx, release := e.Streams.Out.WhileRead(ctx)
	defer release()
	s, err := screen.Open(e.Streams.In, e.Streams.Out)
	if err != nil {
		return err
	}
	if err = watchOn(ctx, s, every, first, look); errors.Is(err, ErrInterrupted) {
		err = nil
	}
	return cmp.Or(s.Close(), err)
}

// watchOn draws a text, and every so often, or when the terminal has a new size, the next that
// look gives, until q or ^C is typed. The error is that of look or of the screen, or the cause
// of the context's end.
func watchOn(ctx context.Context, s *screen.Screen, every time.Duration, text string, look func(context.Context) (string, error)) error {
	for events := s.Events(); ; {
		if err := s.Show(strings.Split(strings.TrimSuffix(text, "\n"), "\n")); err != nil {
			return err
		}
		next := time.NewTimer(every)
		for waiting := true; waiting; {
			select {
			case e, open := <-events:
				switch {
				case !open:
					events = nil // the terminal is gone
				case e.Key == "q" || e.Key == "^C":
					return nil
				case e.Key == "":
					waiting = false
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-next.C:
				waiting = false
			}
		}
		var err error
		text, err = look(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
	}
}
