package instance

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

type migrateOptions struct {
	cli.Mutation
	to, command    string
	shared, cancel bool
	yes            bool
}

func newMigrate(env *cli.Env) *cobra.Command {
	var o migrateOptions
	cmd := &cobra.Command{
		Use:   "migrate NAME|UUID --to TARGET",
		Short: "Move a running instance to another sled",
		Long: `Move a running instance to another sled. sledctl runs the target's sledctl with ssh TARGET sledctl, or with the command in
--to-command, split at blanks. It creates the instance's zone and VNICs there, with the same MACs, asks both Propolis servers whether the
VM can move, and moves it; then it removes what is left here. docs/migration.md lists what can be moved, and what to do after a failure.

Until the VM runs on the target, the source keeps it: whatever fails, it runs on one sled. While the outcome is unknown, no other command
changes the instance here; the same command again asks both sides for the outcome, and resumes. --cancel undoes a migration that has not
moved the VM yet.`,
		Example: `  sledctl instance migrate web1 --to sled2
  sledctl instance migrate web1 --to-command 'ssh root@sled2 /opt/sledctl/bin/sledctl'
  sledctl instance migrate web1                # resumes an interrupted migration`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runMigrate(ctx, env, o, args[0]) }),
	}
	o.Mutation.Add(cmd, false)
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "target sled, as ssh knows it")
	flags.StringVar(&o.command, "to-command", "", "command that runs the target's sledctl, instead of ssh")
	flags.BoolVar(&o.shared, "shared-disks", false, "the VM's disks are the same files on both sleds")
	flags.BoolVar(&o.cancel, "cancel", false, "undo an interrupted migration that has not moved the VM")
	flags.BoolVar(&o.yes, "yes", false, "with --cancel: do not ask a target that is off for good")
	env.Complete(cmd, "to", cli.NoWords)
	env.Complete(cmd, "to-command", cli.NoWords)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// words run the target's sledctl; nil: as they were before.
func (o migrateOptions) words() ([]string, error) {
	switch {
	case o.yes && !o.cancel:
		return nil, &cli.UsageError{Text: "instance migrate: --yes is for --cancel"}
	case o.to != "" && o.command != "":
		return nil, &cli.UsageError{Text: "instance migrate: --to and --to-command exclude each other"}
	case strings.HasPrefix(o.to, "-"):
		return nil, &cli.UsageError{Text: "--to " + o.to + ": want the name of a sled"}
	case o.to != "":
		return []string{"ssh", o.to, "sledctl"}, nil
	}
	if words := strings.Fields(o.command); len(words) > 0 {
		return words, nil
	}
	return nil, nil
}

func runMigrate(ctx context.Context, e *cli.Env, o migrateOptions, ref string) error {
	words, err := o.words()
	if err != nil {
		return err
	}
	if err := cli.InstanceList(e).Check(e.Output); err != nil {
		return err
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	done, err := s.Migrate(ctx, env, instance.Departure{
		Verb: "instance migrate", Ref: ref, Target: words, Run: e.Remote, Shared: o.shared, Cancel: o.cancel, Yes: o.yes, DryRun: o.Dry(),
		Tell: func(phase string) { e.Progress.Phase("instance "+ref, phase) },
	})
	switch {
	case errors.Is(err, instance.ErrNoTarget):
		return &cli.UsageError{Text: "instance migrate: --to is missing: which sled?", Advice: "sledctl instance migrate " + ref + " --to TARGET"}
	case err != nil:
		return failure.WithReport(err, done.Reports...)
	case o.Dry():
		return e.PrintPlan(o.Mutation, done.Reports...)
	case o.cancel:
		return e.PrintInstance(context.WithoutCancel(ctx), s, env, done.Record.ID, instance.Settings.Brief)
	}
	return printDeparted(e, done)
}

// printDeparted prints an instance as the target describes it.
func printDeparted(e *cli.Env, d instance.Departed) error {
	shown := cli.ShowInstance(instance.Instance{Record: d.Record, Status: instance.Status{State: record.Absent, Reason: "migrated to " + d.Peer}})
	if d.There != nil {
		shown = cli.Instance{}
		if err := json.Unmarshal(d.There, &shown); err != nil {
			return err
		}
	}
	return cli.InstanceList(e).PrintOne(e.Streams.Out, e.Output, shown)
}
