package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/sled/storage"
)

func newStorageRekey(env *Env) *cobra.Command {
	var m mutation
	cmd := &cobra.Command{
		Use: "rekey", Short: "Give every encrypted dataset a key of the latest epoch",
		Long: `Give every encrypted dataset a key of the latest epoch, derived from the latest secret of the key source. Datasets that have
such a key stay as they are: run an interrupted rekey again to finish it. ZFS wraps the data's keys again; it does not encrypt the data again.`,
		Example: `  sledctl storage rekey --dry-run
  sledctl storage rekey`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runStorageRekey(ctx, env, m) }),
	}
	m.add(cmd, false)
	env.addOutput(cmd)
	return cmd
}

func runStorageRekey(ctx context.Context, e *Env, m mutation) error {
	if err := itemList("dataset").Check(e.output); err != nil {
		return err
	}
	s, env, err := settingsOf(e)
	if err != nil {
		return err
	}
	if err := e.stateFile(ctx); err != nil {
		return err // whatever else is missing too
	}
	e.warnOfKeys(s)
	report, err := s.Rekey(ctx, env, m.dry())
	if err != nil {
		return withReport(err, report)
	}
	if m.dry() {
		return e.printPlan(m, report)
	}
	return printItems(ctx, e, "dataset", storage.Item.Encrypted)
}
