package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
)

// addGlobal gives the root the flags of every command.
func (e *Env) addGlobal(root *cobra.Command) {
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if e.flags.timeout < 0 {
			return &usageError{text: fmt.Sprintf("--timeout %s: want a duration above 0, as 90s", e.flags.timeout)}
		}
		return nil
	}
	flags := root.PersistentFlags()
	flags.StringVar(&e.flags.host, "host", "", "`SLED` to work on: illumos, sim or sim:DIR (SLEDCTL_HOST)")
	flags.StringVar(&e.flags.config, "config", "", "configuration `FILE` (SLEDCTL_CONFIG; "+configFile+")")
	flags.DurationVar(&e.flags.timeout, "timeout", 0, "limit for the whole command, e.g. 90s or 5m (0: none)")
	flags.BoolVar(&e.flags.degraded, "degraded", false, "continue although a copy of the ledger is missing")
	flags.BoolVar(&e.flags.wait, "wait", false, "wait for another process's lock instead of exiting with 6")
	flags.StringVar(&e.flags.crashAt, "crash-at", "", "simulated sled: die at the N-th change, N[:before|:after]")
	flags.BoolVarP(&e.progress.verbose, "verbose", "v", false, "print each step when it ends")
}

// addOutput gives a command -o, -H and --columns.
func (e *Env) addOutput(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP((*string)(&e.output.Format), "output", "o", "", "`FORMAT`: table, json, tsv or name (default: table, in a pipe tsv)")
	flags.BoolVarP(&e.output.NoHeader, "no-header", "H", false, "do not print the header line")
	flags.StringSliceVar(&e.output.Columns, "columns", nil, "`NAME,...` of the columns to print, in this order")
	e.complete(cmd, "output", func() []string { return terminal.Formats() })
	e.complete(cmd, "columns", noWords)
}

// noWords offers nothing, where file names would be wrong.
func noWords() []string { return nil }

// mutation are the flags of every command that changes something.
type mutation struct {
	dryRun   bool
	explain  bool
	keep     bool
	detailed bool
}

func (m *mutation) add(cmd *cobra.Command, keep bool) {
	flags := cmd.Flags()
	flags.BoolVarP(&m.dryRun, "dry-run", "n", false, "print what would change, and why; change nothing")
	flags.BoolVar(&m.explain, "explain", false, "--dry-run that also prints each host command")
	flags.BoolVar(&m.detailed, "detailed-exitcode", false, "with --dry-run: exit 10 if something would change")
	if keep {
		flags.BoolVar(&m.keep, "keep", false, "on failure, keep what was created, for inspection")
	}
}

// dry says whether nothing is to be done.
func (m mutation) dry() bool { return m.dryRun || m.explain }

// printPlan prints what a dry run would have done.
func (e *Env) printPlan(m mutation, reports ...operation.Report) error {
	if e.output.Format == terminal.FormatJSON {
		return printPlanJSON(e.Streams, reports)
	}
	some := false
	for _, r := range reports {
		text, err := r.Plan.Text(m.explain)
		if err != nil {
			return err
		}
		some = some || text != ""
		if _, err := fmt.Fprint(e.Streams.Out, text); err != nil {
			return err
		}
	}
	if !some {
		e.progress.say("nothing to do")
	}
	if some && m.detailed {
		return errDifferences
	}
	return nil
}

// sizeFlag is a flag that takes a size as zfs(8) writes them.
type sizeFlag struct{ value **uint64 }

func (f sizeFlag) String() string {
	if f.value == nil || *f.value == nil {
		return ""
	}
	return terminal.ExactSize(**f.value)
}
func (sizeFlag) Type() string { return "size" }
func (f sizeFlag) Set(s string) error {
	n, err := terminal.ParseSize(s)
	if err != nil {
		return err
	}
	*f.value = &n
	return nil
}

// intFlag is a number that may be left out.
type intFlag struct{ value **int }

func (f intFlag) String() string {
	if f.value == nil || *f.value == nil {
		return ""
	}
	return fmt.Sprint(**f.value)
}
func (intFlag) Type() string { return "number" }
func (f intFlag) Set(s string) error {
	var n int
	if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil {
		return fmt.Errorf("want a whole number")
	}
	*f.value = &n
	return nil
}

// funcFlag is a flag that is read by a function.
type funcFlag struct {
	kind string
	set  func(string) error
}

func (funcFlag) String() string       { return "" }
func (f funcFlag) Type() string       { return f.kind }
func (f funcFlag) Set(s string) error { return f.set(s) }

// belongs marks a flag that a command accepts and that is described in the help
// of another command, which is its value.
const belongs = "described by"

// describedBy marks flags of a command as those of another, which describes them.
func describedBy(cmd *cobra.Command, by string, names ...string) {
	for _, name := range names {
		_ = cmd.Flags().SetAnnotation(name, belongs, []string{by}) // it fails only for a flag that does not exist
	}
}
