package instance

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/keeper"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func newKeeper(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var generation uint64
	cmd := &cobra.Command{
		Use: "keeper NAME|UUID KEEPER", Short: "Give an instance to another keeper",
		Long: `Give an instance to another keeper: the operator, a fleet or nexus, the control plane of a rack. Only the keeper changes the instance;
sledctl refuses what others ask for (exit 8). A VM that runs goes on, and nothing on the host changes.

An instance that the operator takes over is as any other: it stays recorded when its VM ends, and comes up again after a reboot of the
sled. So make sure first that its keeper does not run it on another sled. A fleet takes over a VM that runs, with --generation.`,
		Example: `  sledctl instance keeper web1 operator
  sledctl instance keeper web1 fleet --generation 3`,
		Args: cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			to, err := record.ParseKeeper(args[1])
			if err != nil {
				return err
			}
			return env.ChangeInstance(ctx, m, func(ctx context.Context, s instance.Settings, op operation.Env) (instance.Result, error) {
				return keeper.HandOver(ctx, s, op, keeper.Request{
					Verb: "instance keeper", Ref: args[0], To: to, Generation: generation, Asks: record.Operator, DryRun: m.Dry(),
				})
			})
		}),
	}
	m.Add(cmd, false)
	cmd.Flags().Uint64Var(&generation, "generation", 0, "the fleet's, above the last one of the instance")
	env.AddOutput(cmd)
	cli.CompleteInTurn(cmd, env.CompleteInstances, cli.CompleteKeepers)
	return cmd
}
