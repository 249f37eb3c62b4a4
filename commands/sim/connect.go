package sim

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/failure"
)

func newConnect(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "connect DIR",
		Short: "Connect the simulated sled with another one",
		Long: `Connect the simulated sled with another one, in the directory DIR: they reach each other's addresses, as two sleds of one rack do,
and VMs can move from one to the other. Give each sled its own underlay: on a sled, an address that both have is that sled's.`,
		Example: `  sledctl --host sim:/tmp/sled1 sim connect /tmp/sled2`,
		Args:    cobra.ExactArgs(1),
		RunE:    env.Run(func(ctx context.Context, args []string) error { return runConnect(ctx, env, args[0]) }),
	}
}

func runConnect(ctx context.Context, e *cli.Env, dir string) error {
	here, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	there, err := sim.Open(dir)
	if err != nil {
		return &failure.RefusedError{Err: err, Advice: "to make a sled there, run: sledctl --host sim:" + dir + " sim init"}
	}
	defer there.Close()
	return sim.Connect(ctx, here, there)
}
