package instance

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/snapshot"
)

func newSnapshot(env *cli.Env) *cobra.Command {
	cmd := cli.Group("snapshot", "Take snapshots of an instance's disks, and go back to one", `
A snapshot is what all disks of an instance held at one moment, but for those that its guest only reads. It is taken at once, and
takes room only for what the guest overwrites afterwards. All of them must be volumes (sledctl volume list).

If the guest runs, its disks are as after a power failure: file systems and databases recover from that, but what the guest has not
written out is not in the snapshot. Stop the instance first where that matters.`)
	cmd.AddCommand(newSnapshotCreate(env), newSnapshotList(env), newSnapshotRollback(env), newSnapshotDelete(env))
	return cmd
}

func snapshotList() terminal.List[snapshot.Status] {
	return terminal.List[snapshot.Status]{Kind: "Snapshot", Name: func(s snapshot.Status) string { return s.Name }, Columns: []terminal.Column[snapshot.Status]{
		{Name: "instance", Value: func(s snapshot.Status) string { return s.Of }},
		{Name: "name", Value: func(s snapshot.Status) string { return s.Name }},
		{Name: "state", Value: func(s snapshot.Status) string { return string(s.State) }, Style: snapshotStyle},
		{Name: "created", Value: func(s snapshot.Status) string { return s.Created.Format(time.RFC3339) }, Human: func(s snapshot.Status) string { return s.Created.Format("2006-01-02 15:04:05") }},
		{Name: "running", Value: func(s snapshot.Status) string { return strconv.FormatBool(s.Running) }, Human: func(s snapshot.Status) string { return map[bool]string{true: "yes", false: "no"}[s.Running] }},
		{Name: "volumes", Value: func(s snapshot.Status) string { return strings.Join(s.Volumes, ",") }},
		{Name: "reason", Value: func(s snapshot.Status) string { return s.Reason }, Note: true},
	}}
}

func snapshotStyle(s snapshot.Status) terminal.Style {
	switch s.State {
	case snapshot.Ready:
		return terminal.Good
	case snapshot.Unfinished:
		return terminal.Warn
	}
	return terminal.Bad
}

func newSnapshotCreate(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var keep snapshot.Keep
	cmd := &cobra.Command{
		Use: "create INSTANCE [NAME]", Short: "Take a snapshot of all disks of an instance",
		Long: `Take a snapshot of all disks of an instance that its guest may write to, in one moment. Where they lie on several pools, the
instance must be stopped: those of different pools would be of different moments.

With --keep it is one of a schedule, of which cron(8) keeps the time: it is named by the minute, in UTC, and those of the schedule that are
no longer to be kept are deleted. Of the last so many hours, days, weeks and months in which there is one, the latest of each stays; so
do snapshots that volumes are clones of, and those with a name of their own.`,
		Example: `  sledctl instance snapshot create web1 before-upgrade
  sledctl instance snapshot create web1 --keep hourly=24,daily=7,weekly=4`,
		Args: cobra.RangeArgs(1, 2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c := snapshot.Request{Ref: args[0], DryRun: m.Dry()}
			switch {
			case len(args) == 1 && keep == nil:
				return &cli.UsageError{Text: "a name for the snapshot is missing", Advice: "give one; or, for one of a schedule, run: sledctl instance snapshot create " + args[0] + " --keep daily=7"}
			case len(args) == 2 && keep != nil:
				return &cli.UsageError{Text: "--keep: want no name, one of a schedule is named by its time"}
			case keep == nil:
				c.Name = args[1]
				return changeSnapshot(ctx, env, m, c, snapshot.Settings.Create)
			}
			c.Name, c.Reuse, c.Keep = snapshot.ScheduledName(env.Now()), true, keep
			return changeSnapshot(ctx, env, m, c, snapshot.Settings.Schedule)
		}),
	}
	cmd.Flags().Var(cli.FuncFlag{Kind: "PERIOD=N,…", Read: func(s string) (err error) {
		keep, err = snapshot.ParseKeep(s)
		return err
	}}, "keep", "one of a schedule: keep the last N (hourly, daily, weekly, monthly)")
	return snapshotCommand(env, cmd, &m)
}

func newSnapshotRollback(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	cmd := &cobra.Command{
		Use: "rollback INSTANCE NAME", Short: "Take the disks of a stopped instance back to a snapshot",
		Long: `Take the disks of a stopped instance back to a snapshot. What was written since is lost: -n shows which volumes that are. The
snapshot must be the latest of each disk; it stays. If the command is killed, the instance does not start until the same command has
finished.`,
		Example: `  sledctl instance stop web1 && sledctl instance snapshot rollback web1 before-upgrade && sledctl instance start web1`,
		Args:    cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c := snapshot.Request{Ref: args[0], Name: args[1], DryRun: m.Dry()}
			return changeSnapshot(ctx, env, m, c, snapshot.Settings.Rollback)
		}),
	}
	return snapshotCommand(env, cmd, &m)
}

// snapshotCommand gives a command that is about one snapshot its flags.
func snapshotCommand(env *cli.Env, cmd *cobra.Command, m *cli.Mutation) *cobra.Command {
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cli.CompleteInTurn(cmd, env.CompleteInstances, cli.Recorded(env, snapshot.All, func(r snapshot.Record) string { return r.Name }))
	return cmd
}

// changeSnapshot does what takes a snapshot, or goes back to one.
func changeSnapshot(
	ctx context.Context, e *cli.Env, m cli.Mutation, c snapshot.Request, do func(snapshot.Settings, context.Context, operation.Env, snapshot.Request) (snapshot.Status, operation.Report, error),
) error {
	if err := snapshotList().Check(e.Output); err != nil {
		return err
	}
	s, env, err := cli.Snapshots(ctx, e)
	if err != nil {
		return err
	}
	is, report, err := do(s, ctx, env, c)
	switch {
	case err != nil:
		return failure.WithReport(err, report)
	case m.Dry():
		return e.PrintPlan(m, report)
	}
	return snapshotList().PrintOne(e.Streams.Out, e.Output, is)
}

func newSnapshotList(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list [INSTANCE]", Aliases: []string{"ls"}, Short: "List the snapshots of an instance, or of all",
		Long: `List the snapshots of an instance, or of all, the oldest first. RUNNING says whether the guest ran. A snapshot stays when its
instance is deleted, as its volumes do.`,
		Example: `  sledctl instance snapshot list web1`,
		Args:    cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if err := snapshotList().Check(env.Output); err != nil {
				return err
			}
			s, op, err := cli.Snapshots(ctx, env)
			if err != nil {
				return err
			}
			view, err := env.View(ctx)
			if err != nil {
				return err
			}
			ref := strings.Join(args, "")
			all, err := s.List(ctx, op.Host, view, ref)
			if err == nil && len(all) == 0 && ref != "" {
				_, err = s.Instance(view, ref) // whether it is one
			}
			if err != nil {
				return err
			}
			return snapshotList().Print(env.Streams.Out, env.Output, all)
		}),
	}
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

func newSnapshotDelete(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var mustExist bool
	cmd := &cobra.Command{
		Use: "delete INSTANCE NAME", Aliases: []string{"rm"}, Short: "Delete a snapshot; the disks stay as they are",
		Example: `  sledctl instance snapshot delete web1 before-upgrade`,
		Args:    cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			s, op, err := cli.Snapshots(ctx, env)
			if err != nil {
				return err
			}
			gone, report, err := s.Delete(ctx, op, snapshot.Request{Ref: args[0], Name: args[1], DryRun: m.Dry()})
			switch {
			case err != nil:
				return failure.WithReport(err, report)
			case !gone && mustExist:
				return &snapshot.NotFoundError{Instance: args[0], Name: args[1]}
			case m.Dry():
				return env.PrintPlan(m, report)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if it does not exist")
	return snapshotCommand(env, cmd, &m)
}
