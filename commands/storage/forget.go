package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/storage"
)

func newForget(env *cli.Env) *cobra.Command {
	var yes, mustExist bool
	cmd := &cobra.Command{
		Use: "forget DISK", Short: "Drop the record of a disk that was removed or replaced",
		Long: `Drop the record of a disk that was removed or replaced. As long as the record exists, sledctl reports the disk's absence and
refuses any pool on it other than the recorded one. The disk itself is not touched. If its pool neither answers nor can be
imported, sledctl forgets with it what lay there: volumes, images, snapshots and bases. Instances stay known.`,
		Example: `  sledctl storage forget u2:3 --yes`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, disks []string) error {
			return runForget(ctx, env, disks[0], yes, mustExist)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if the disk has no record")
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeDisks(ctx, env) })
	return cmd
}

func runForget(ctx context.Context, e *cli.Env, disk string, yes, mustExist bool) error {
	s, env, err := settingsOf(e)
	if err != nil {
		return err
	}
	r, err := s.Forget(ctx, env, disk, true)
	if unknown, ok := errors.AsType[*storage.UnknownError](err); ok && !mustExist {
		env.Warn(unknown) // an earlier run has done it, or the name is misspelt
		return nil
	}
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Forget disk %s (%s), with pool %s?", r.Name, r.Serial, r.Pool)
	if len(r.Also) > 0 {
		question = fmt.Sprintf("Forget disk %s (%s), with pool %s and what lay on it: %s?", r.Name, r.Serial, r.Pool, strings.Join(r.Also, ", "))
	}
	if err := e.Streams.Confirm(ctx, "forgetting disk "+r.Name, question, yes); err != nil {
		return err
	}
	_, err = s.Forget(ctx, env, disk, false)
	if errors.Is(err, host.ErrNotFound) {
		return nil // somebody else has, since
	}
	return err
}
