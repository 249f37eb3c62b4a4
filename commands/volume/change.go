package volume

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/volume"
)

func newResize(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	c := volume.ChangeRequest{Verb: "volume resize"}
	cmd := &cobra.Command{
		Use: "resize NAME", Short: "Make a volume larger",
		Long: `Make a volume larger, also one that a VM has as a disk: the guest sees its new size when the VM is started next. The size is
rounded up to a multiple of 128K. sledctl refuses (exit 8) to make a volume smaller, and what its pool has no room for.`,
		Example: `  sledctl volume resize db1 --size 200G`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if c.Size == nil {
				return &cli.UsageError{Text: "volume resize: --size is missing", Advice: "run: sledctl volume resize " + args[0] + " --size 40G"}
			}
			c.Ref = args[0]
			return runChange(ctx, env, m, c)
		}),
	}
	cmd.Flags().Var(cli.SizeFlag{Value: &c.Size, Least: record.LeastDisk}, "size", "new size of the volume, e.g. 40G")
	ofOne(env, cmd, &m)
	return cmd
}

func newRename(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	c := volume.ChangeRequest{Verb: "volume rename"}
	cmd := &cobra.Command{
		Use: "rename NAME NEW-NAME", Short: "Rename a volume that no instance has",
		Long: `Rename a volume that no instance has, with its dataset. sledctl refuses (exit 8) one that is a disk of an instance, since the
instance knows it by its path.`,
		Example: `  sledctl volume rename db1 old-db1`,
		Args:    cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c.Ref, c.Name = args[0], args[1]
			return runChange(ctx, env, m, c)
		}),
	}
	ofOne(env, cmd, &m)
	return cmd
}

func newSet(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Protect a volume, or let it go with its instance",
		Long: `Protect a volume, or let it go with its instance. volume delete refuses one that is protected. A volume goes with the instance that has it as a
disk if it is set to --delete-with-instance; by default it stays.`,
		Example: `  sledctl volume set db1 --protect
  sledctl volume set scratch --delete-with-instance`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	cmd.RunE = env.Run(func(ctx context.Context, args []string) error {
		c := volume.ChangeRequest{Verb: "volume set", Ref: args[0], Guard: oneOf(flags, "protect", "no-protect"), Follow: oneOf(flags, "delete-with-instance", "keep")}
		if c.Guard == nil && c.Follow == nil {
			return &cli.UsageError{Text: "volume set: nothing is to be set", Advice: "add --protect, --no-protect, --delete-with-instance or --keep"}
		}
		return runChange(ctx, env, m, c)
	})
	flags.Bool("protect", false, "have volume delete refuse it")
	flags.Bool("no-protect", false, "have volume delete remove it")
	flags.Bool("delete-with-instance", false, "have instance delete remove it, too")
	flags.Bool("keep", false, "have instance delete keep it")
	cmd.MarkFlagsMutuallyExclusive("protect", "no-protect")
	cmd.MarkFlagsMutuallyExclusive("delete-with-instance", "keep")
	ofOne(env, cmd, &m)
	return cmd
}

// oneOf is what one of two flags says; nil: neither was given.
func oneOf(flags *pflag.FlagSet, yes, no string) *bool {
	for _, name := range []string{yes, no} {
		if flags.Changed(name) {
			on := name == yes
			return &on
		}
	}
	return nil
}

// ofOne gives a command what those that change one volume have.
func ofOne(env *cli.Env, cmd *cobra.Command, m *cli.Mutation) {
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, cli.CompleteVolumes(env))
}

func runChange(ctx context.Context, e *cli.Env, m cli.Mutation, c volume.ChangeRequest) error {
	if err := volumeList().Check(e.Output); err != nil {
		return err
	}
	s, env, err := cli.Volumes(e)
	if err != nil {
		return err
	}
	c.DryRun = m.Dry()
	is, report, err := s.Change(ctx, env, c)
	switch {
	case err != nil:
		return failure.WithReport(err, report)
	case m.Dry():
		return e.PrintPlan(m, report)
	}
	return volumeList().PrintOne(e.Streams.Out, e.Output, is)
}

func newAdopt(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	cmd := &cobra.Command{
		Use: "adopt", Short: "Record the volumes that a lost ledger knew",
		Long: `Record the volumes that a lost ledger knew: those that carry sledctl's mark and have no record. Their names and sizes are read from
the sled, and nothing there is changed. That one was protected is not known any longer.`,
		Example: `  sledctl volume adopt`,
		Args:    cobra.NoArgs,
		RunE:    env.Run(func(ctx context.Context, _ []string) error { return runAdopt(ctx, env, m) }),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	return cmd
}

func runAdopt(ctx context.Context, e *cli.Env, m cli.Mutation) error {
	if err := volumeList().Check(e.Output); err != nil {
		return err
	}
	s, env, err := cli.Volumes(e)
	if err != nil {
		return err
	}
	adopted, report, err := s.Adopt(ctx, env, m.Dry())
	if err != nil {
		return failure.WithReport(err, report)
	}
	if m.Dry() {
		return e.PrintPlan(m, report)
	}
	var all []volume.Status
	for _, r := range adopted {
		all = append(all, volume.Status{Record: r, State: volume.Ready, Device: r.Path(), Instances: []string{}})
	}
	return volumeList().Print(e.Streams.Out, e.Output, all)
}
