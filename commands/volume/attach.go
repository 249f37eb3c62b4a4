package volume

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
)

func newAttach(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	c := instance.AttachRequest{Verb: "volume attach"}
	cmd := &cobra.Command{
		Use: "attach NAME INSTANCE", Short: "Give a volume to an instance as its last disk",
		Long: `Give a volume to an instance as its last disk, from its next bring-up on. A VM that runs keeps the disks that it has: stop and
start it to have the other. A volume that a guest may write to is the disk of one instance; those that are --readonly may be
those of several. A volume that the instance has already is left as it is.`,
		Example: `  sledctl volume attach db1 web1
  sledctl volume attach packages web1 --readonly`,
		Args: cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c.Volume, c.Ref, c.DryRun = args[0], args[1], m.Dry()
			return runAttach(ctx, env, m, c)
		}),
	}
	cmd.Flags().BoolVar(&c.ReadOnly, "readonly", false, "the guest only reads it")
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cli.CompleteInTurn(cmd, cli.CompleteVolumes(env), env.CompleteInstances)
	return cmd
}

func newDetach(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	c := instance.AttachRequest{Verb: "volume detach", Detach: true}
	cmd := &cobra.Command{
		Use: "detach NAME INSTANCE", Short: "Take a volume from an instance",
		Long: `Take a volume from an instance, from its next bring-up on. A VM that runs keeps it until it is stopped; then the volume is free.
What is on it stays. A volume that the instance does not have is left as it is.`,
		Example: `  sledctl volume detach db1 web1`,
		Args:    cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c.Volume, c.Ref, c.DryRun = args[0], args[1], m.Dry()
			return runAttach(ctx, env, m, c)
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cli.CompleteInTurn(cmd, cli.CompleteVolumes(env), env.CompleteInstances)
	return cmd
}

func runAttach(ctx context.Context, e *cli.Env, m cli.Mutation, c instance.AttachRequest) error {
	if err := volumeList().Check(e.Output); err != nil {
		return err
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	result, err := s.Attach(ctx, env, c)
	switch {
	case err != nil:
		return failure.WithReport(err, result.Report)
	case m.Dry():
		return e.PrintPlan(m, result.Report)
	case result.Record.Later != nil:
		e.Progress.Say("%s", fmt.Sprintf("instance %q has its disks with its next bring-up: sledctl instance stop %s && sledctl instance start %s", result.Record.Name, result.Record.Name, result.Record.Name))
	}
	return nil
}
