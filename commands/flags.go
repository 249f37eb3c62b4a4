package commands

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

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

func eachFlag(cmd *cobra.Command, add func(name string)) {
	visit := func(f *pflag.Flag) { add(f.Name) }
	cmd.Flags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)
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

// specFlags are the flags that describe an instance (docs/instance.md).
type specFlags struct {
	wanted instance.Wanted
	file   string
	spec   string
}

func (f *specFlags) add(env *Env, cmd *cobra.Command, file bool) {
	flags, w := cmd.Flags(), &f.wanted
	flags.Var(intFlag{&w.CPUs}, "cpus", "virtual CPUs, 1 to 32")
	flags.Var(sizeFlag{&w.Memory}, "memory", "guest memory, e.g. 8G")
	flags.Var(funcFlag{"PATH[,readonly]", func(s string) error {
		d, err := record.ParseDisk(s)
		w.Disks = append(w.Disks, d)
		return err
	}}, "disk", "volume or file of the host; repeatable")
	flags.Var(funcFlag{"[over=LINK][,mac=M][,vlan=V]", func(s string) error {
		n, err := record.ParseNIC(s)
		w.NICs = append(w.NICs, n)
		return err
	}}, "nic", "guest NIC; repeatable")
	flags.Var(funcFlag{"dhcp|addrconf|IP/PREFIX[,gateway=IP]", func(s string) error {
		a, err := record.ParseAddress(s)
		w.Address = &a
		return err
	}}, "address", "control address (default: the next free one of the underlay)")
	flags.Var(funcFlag{"POOL", func(s string) error { w.Pool = &s; return nil }}, "pool", "pool for the zone (default: the pool with the fewest zones)")
	flags.StringVar(&w.Name, "name", "", "name for an instance given by UUID")
	env.completeFlag(cmd, "pool", env.completePools)
	for _, name := range []string{"cpus", "memory", "nic", "address", "name"} {
		env.complete(cmd, name, noWords)
	}
	flags.StringVar(&f.spec, "spec", "", "`FILE` with a Propolis spec (JSON) or config (TOML); - is stdin")
	if file {
		flags.StringVarP(&f.file, "file", "f", "", "`FILE` that describes the instance; - is stdin")
	}
}

// ref takes the instance from the command line.
func (f *specFlags) ref(args []string) {
	if len(args) > 0 {
		f.wanted.Ref = args[0]
	}
}
