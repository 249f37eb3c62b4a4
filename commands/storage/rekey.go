package storage

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/storage"
)

func newRekey(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	cmd := &cobra.Command{
		Use: "rekey", Short: "Give every encrypted dataset a key of the latest epoch",
		Long: `Give every encrypted dataset a key of the latest epoch, derived from the latest secret of the key source. Datasets that have
such a key stay as they are: run an interrupted rekey again to finish it. ZFS wraps the data's keys again; it does not encrypt the data again.`,
		Example: `  sledctl storage rekey --dry-run
  sledctl storage rekey`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runRekey(ctx, env, m) }),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	return cmd
}

func runRekey(ctx context.Context, e *cli.Env, m cli.Mutation) error {
	if err := itemList("dataset").Check(e.Output); err != nil {
		return err
	}
	s, env, err := settingsOf(e)
	if err != nil {
		return err
	}
	if err := e.StateFile(ctx); err != nil {
		return err // whatever else is missing too
	}
	e.WarnOfKeys(s)
	report, err := s.Rekey(ctx, env, m.Dry())
	if err != nil {
		return failure.WithReport(err, report)
	}
	if m.Dry() {
		return e.PrintPlan(m, report)
	}
	return printItems(ctx, e, "dataset", storage.Item.Encrypted)
}
