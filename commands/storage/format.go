package storage

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/storage"
)

func newFormat(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	yes := false
	cmd := &cobra.Command{
		Use: "format DISK ...", Short: "Create pools and datasets on disks that are verified blank",
		Long: `Create pools and datasets on disks that are verified blank. A disk is named by its name, slot (u2:3) or serial number. sledctl
always refuses a disk that is not verified blank: it never overwrites data. If the command is killed, run it again to finish the pool.`,
		Example: `  sledctl storage format u2:3
  sledctl storage format c14t0d0 --yes`,
		Args: cobra.MinimumNArgs(1),
		RunE: env.Run(func(ctx context.Context, disks []string) error { return runFormat(ctx, env, m, disks, yes) }),
	}
	m.Add(cmd, false)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeDisks(ctx, env) })
	return cmd
}

func runFormat(ctx context.Context, e *cli.Env, m cli.Mutation, disks []string, yes bool) error {
	if err := itemList("disk").Check(e.Output); err != nil {
		return err
	}
	s, env, err := settingsOf(e)
	if err != nil {
		return err
	}
	s.Format = disks
	e.WarnOfKeys(s)
	if !m.Dry() {
		if _, err := s.FormatDisks(ctx, env, true); err != nil {
			return err
		}
		what := "formatting " + strings.Join(disks, ", ")
		if err := e.Streams.Confirm(ctx, what, "Format "+strings.Join(disks, ", ")+"?", yes); err != nil {
			return err
		}
	}
	reports, err := s.FormatDisks(ctx, env, m.Dry())
	if err != nil {
		return failure.WithReport(err, reports...)
	}
	if m.Dry() {
		return e.PrintPlan(m, reports...)
	}
	return printItems(ctx, e, "disk", func(i storage.Item) bool {
		return i.Kind == "disk" && slices.ContainsFunc(disks, func(word string) bool { return word == i.Name || word == i.On || word == i.Serial })
	})
}
