package sim

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

func newFault(env *cli.Env) *cobra.Command {
	cmd := cli.Group("fault", "Arm, list and clear faults of the simulated sled", "")
	cmd.AddCommand(newFaultAdd(env), newFaultList(env), newFaultClear(env))
	return cmd
}

func newFaultAdd(env *cli.Env) *cobra.Command {
	var f world.Fault
	cmd := &cobra.Command{
		Use:     "add NAME --match WORDS",
		Short:   "Arm a fault of the simulated sled",
		Long:    faultHelp,
		Example: faultExamples,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			f.Name = args[0]
			return runFaultAdd(ctx, env, f)
		}),
	}
	faultFlags(cmd.Flags(), &f)
	cli.CompleteArgs(cmd, func(context.Context) []string { return world.FaultNames() })
	return cmd
}

// faultFlags are the flags that say which commands a fault hits, and how.
func faultFlags(flags *pflag.FlagSet, f *world.Fault) {
	flags.StringVar(&f.Match, "match", "", "commands to hit: words of the command line, in order")
	flags.IntVar(&f.Times, "times", 1, "number of times (0: always)")
	flags.IntVar(&f.Skip, "skip", 0, "number of matches to let pass first")
	flags.StringVar(&f.Text, "stderr", "", "text that the command prints; or the disk, the zone or the version")
	flags.IntVar(&f.Exit, "exit", 1, "exit code of the command")
	flags.DurationVar(&f.Delay, "delay", 0, "time that the command takes in addition")
}

func runFaultAdd(ctx context.Context, e *cli.Env, f world.Fault) error {
	known := world.FaultNames()
	found := false
	for _, name := range known {
		found = found || name == f.Name
	}
	if !found {
		hint := "give one of " + cli.OrWords(known)
		if near := naming.Nearest(f.Name, known); near != "" {
			hint = "did you mean: " + near
		}
		return &cli.UsageError{Text: fmt.Sprintf("unknown fault %q", f.Name), Advice: hint}
	}
	if world.Delays(f.Name) && f.Delay <= 0 {
		return &cli.UsageError{Text: "--delay is missing: how much longer it takes", Advice: "give --delay 10s"}
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"times", f.Times}, {"skip", f.Skip}, {"exit", f.Exit}} {
		if n.value < 0 {
			return &cli.UsageError{Text: fmt.Sprintf("--%s %d: want a number from 0", n.flag, n.value)}
		}
	}
	if f.Name == world.FaultOldServer {
		if _, err := spec.ParseVersion(cmp.Or(f.Text, "5")); err != nil {
			return &cli.UsageError{Text: "--stderr: " + err.Error()}
		}
	}
	if f.Delay < 0 {
		return &cli.UsageError{Text: fmt.Sprintf("--delay %v: want a duration of at least 0, e.g. 10s", f.Delay)}
	}
	if f.Match == "" {
		return &cli.UsageError{Text: "--match is missing", Advice: `give --match "zoneadm clone"`}
	}
	sled, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	return sled.World().Update(ctx, func(tx *world.Tx) error {
		if (f.Name == world.FaultLoseDisk || f.Name == world.FaultFailDisk) && zfs.FindDisk(tx, f.Text) == nil {
			return unknownDisk(tx, f.Text)
		}
		tx.Arm(f)
		return nil
	})
}

func newFaultList(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the armed faults", Example: `  sledctl sim fault list`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runFaultList(ctx, env) }),
	}
	env.AddOutput(cmd)
	return cmd
}

func runFaultList(ctx context.Context, e *cli.Env) error {
	sled, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	var faults []world.Fault
	err = sled.World().View(ctx, func(tx *world.Tx) error {
		for _, f := range tx.State.Faults {
			faults = append(faults, *f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	type column = terminal.Column[world.Fault]
	list := terminal.List[world.Fault]{Kind: "Fault", Name: func(f world.Fault) string { return f.Name }, Columns: []column{
		{Name: "name", Value: func(f world.Fault) string { return f.Name }},
		{Name: "match", Value: func(f world.Fault) string { return f.Match }},
		{Name: "times", Value: func(f world.Fault) string { return strconv.Itoa(f.Times) }, Right: true},
		{Name: "skip", Value: func(f world.Fault) string { return strconv.Itoa(f.Skip) }, Right: true},
		{Name: "delay", Value: func(f world.Fault) string { return f.Delay.Round(time.Millisecond).String() }, Right: true},
		{Name: "stderr", Value: func(f world.Fault) string { return f.Text }},
	}}
	return list.Print(e.Streams.Out, e.Output, faults)
}

func newFaultClear(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "clear", Short: "Disarm all faults", Example: `  sledctl sim fault clear`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			return sled.World().Update(ctx, func(tx *world.Tx) error { tx.State.Faults = nil; return nil })
		}),
	}
}
