package sled

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/keeper"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func newKeeper(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var from string
	cmd := &cobra.Command{
		Use: "keeper [KEEPER]", Short: "Show or change who keeps the sled",
		Long: `Show or change who keeps the sled: the operator, a fleet or nexus, the control plane of a rack. Only the keeper places new instances on
the sled; each instance has a keeper, too, who alone changes it (instance keeper). A sled that was never handed over is the operator's.

To hand the sled over changes no instance and no VM. The operator can take it back at any time, e.g. while the fleet's engine is gone;
with --from, sledctl refuses (exit 5) if another one keeps the sled by now.`,
		Example: "  sledctl sled keeper\n  sledctl sled keeper fleet --from operator",
		Args:    cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return showKeeper(ctx, env)
			}
			return handOver(ctx, env, m, args[0], from)
		}),
	}
	m.Add(cmd, false)
	cmd.Flags().StringVar(&from, "from", "", "who must keep the sled now (default: any)")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, cli.CompleteKeepers)
	env.CompleteFlag(cmd, "from", cli.CompleteKeepers)
	return cmd
}

func showKeeper(ctx context.Context, e *cli.Env) error {
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	k, _, err := record.KeeperOf(view)
	if err != nil {
		return err
	}
	return printKeeper(e, k)
}

func handOver(ctx context.Context, e *cli.Env, m cli.Mutation, to, from string) error {
	c := keeper.SledRequest{Verb: "sled keeper", Asks: record.Operator, DryRun: m.Dry()}
	var err error
	if c.To, err = record.ParseKeeper(to); err != nil {
		return err
	}
	if from != "" {
		if c.From, err = record.ParseKeeper(from); err != nil {
			return err
		}
	}
	if err := keeperList(e).Check(e.Output); err != nil {
		return err
	}
	_, env, err := e.Operation()
	if err != nil {
		return err
	}
	now, report, err := keeper.HandOverSled(ctx, env, c)
	if err != nil {
		return failure.WithReport(err, report)
	}
	if m.Dry() {
		return e.PrintPlan(m, report)
	}
	return printKeeper(e, now)
}

func printKeeper(e *cli.Env, k record.SledKeeper) error {
	return keeperList(e).PrintOne(e.Streams.Out, e.Output, k)
}

// keeperList is how the keeper of a sled is printed.
func keeperList(e *cli.Env) terminal.List[record.SledKeeper] {
	type column = terminal.Column[record.SledKeeper]
	return terminal.List[record.SledKeeper]{
		Kind: "Keeper", Name: func(k record.SledKeeper) string { return string(k.Keeper) },
		Table: []string{"keeper", "since"},
		Columns: []column{
			{Name: "keeper", Value: func(k record.SledKeeper) string { return string(k.Keeper) }},
			{Name: "since", Value: func(k record.SledKeeper) string {
				if k.Since.IsZero() {
					return ""
				}
				return k.Since.Format(time.RFC3339)
			}, Human: func(k record.SledKeeper) string {
				if k.Since.IsZero() {
					return "always"
				}
				return terminal.Ago(e.Now(), k.Since)
			}},
		},
	}
}
