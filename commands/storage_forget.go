package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newStorageForget(env *Env) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "forget DISK", Short: "Expect a disk no more: it was taken out, or its pool was exchanged on purpose",
		Long: `Drop the record of a disk. As long as there is one, its absence is reported, and any pool on it but the recorded one is
refused. The disk itself is not touched.`,
		Example: `  sledctl storage forget u2:3 --yes`,
		Args:    cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, disks []string) error {
			return runStorageForget(ctx, env, disks[0], yes)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	completeArgs(cmd, env.completeDisks)
	return cmd
}

func runStorageForget(ctx context.Context, e *Env, disk string, yes bool) error {
	s, env, err := e.storage()
	if err != nil {
		return err
	}
	r, err := s.Forget(ctx, env, disk, true)
	if err != nil {
		return err
	}
	if err := e.Streams.Confirm(ctx, "forgetting disk "+r.Name, fmt.Sprintf("Forget disk %s (%s), with pool %s?", r.Name, r.Serial, r.Pool), yes); err != nil {
		return err
	}
	_, err = s.Forget(ctx, env, disk, false)
	return err
}
