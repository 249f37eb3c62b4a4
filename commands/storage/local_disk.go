package storage

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/localdisk"
)

func newLocalDisk(env *cli.Env) *cobra.Command {
	cmd := cli.Group("local-disk", "List, create and delete local disks that VMs have as disks", `
A local disk lies in POOL/local_storage_unencrypted, or in POOL/crypt/local_storage if it is encrypted, as Oxide's sled agent lays it out. A control
plane makes it by its id (POST /local-storage of the agent), and so do these commands. It outlives the VMs that have it.`)
	cmd.AddCommand(newLocalDiskList(env), newLocalDiskEnsure(env), newLocalDiskDelete(env))
	return cmd
}

func localDisks() localdisk.Settings { return localdisk.Settings{User: record.DiskUser} }

// shownLocalDisk is a local disk as it is printed.
type shownLocalDisk struct {
	localdisk.Record
	Device   string `json:"device"`
	Instance string `json:"instance"` // that has it as a disk
}

func localDiskList() terminal.List[shownLocalDisk] {
	type column = terminal.Column[shownLocalDisk]
	return terminal.List[shownLocalDisk]{Kind: "Volume", Name: func(v shownLocalDisk) string { return v.ID.String() }, Columns: []column{
		{Name: "id", Value: func(v shownLocalDisk) string { return v.ID.String() }},
		{Name: "pool", Value: func(v shownLocalDisk) string { return v.Pool }},
		{Name: "size", Value: func(v shownLocalDisk) string { return terminal.ExactSize(v.Size) }, Right: true},
		{Name: "encrypted", Value: func(v shownLocalDisk) string { return fmt.Sprint(v.Encrypted) }},
		{Name: "instance", Value: func(v shownLocalDisk) string { return v.Instance }},
		{Name: "quota", Value: func(v shownLocalDisk) string { return terminal.ExactSize(v.Quota) }, Right: true, Extra: true},
		{Name: "device", Value: func(v shownLocalDisk) string { return v.Device }, Extra: true},
	}}
}

func newLocalDiskList(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the recorded local disks",
		Example: `  sledctl storage local-disk list
  sledctl storage local-disk list -o json`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runVolumeList(ctx, env) }),
	}
	env.AddOutput(cmd)
	return cmd
}

func runVolumeList(ctx context.Context, e *cli.Env) error {
	if err := localDiskList().Check(e.Output); err != nil {
		return err
	}
	shown, err := localDisksShown(ctx, e)
	if err != nil {
		return err
	}
	return localDiskList().Print(e.Streams.Out, e.Output, shown)
}

func localDisksShown(ctx context.Context, e *cli.Env) ([]shownLocalDisk, error) {
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	all, err := localdisk.All(view)
	var shown []shownLocalDisk
	for _, r := range all {
		user, err := localDisks().User(view, r.Device())
		if err != nil {
			return nil, err
		}
		shown = append(shown, shownLocalDisk{Record: r, Device: r.Device(), Instance: user})
	}
	return shown, err
}

// ids offers those of the recorded local disks.
func ids(e *cli.Env) func(context.Context) []string {
	return cli.Recorded(e, localdisk.All, func(r localdisk.Record) string { return r.ID.String() })
}

// placeFlags are the flags that say where a local disk lies.
func placeFlags(env *cli.Env, cmd *cobra.Command, p *localdisk.Place) {
	cmd.Flags().StringVar(&p.Pool, "pool", "", "`POOL` of a U.2 (default: the local disk's, or the only possible one)")
	env.CompleteFlag(cmd, "pool", env.CompletePools)
	cmd.Flags().BoolVar(&p.Encrypted, "encrypted", false, "in the encrypted part of the pool")
}

func localDiskID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return id, &cli.UsageError{Text: fmt.Sprintf("local disk %q: want a UUID", text)}
	}
	return id, nil
}

func newLocalDiskEnsure(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var want localdisk.Wanted
	var size, quota *uint64
	cmd := &cobra.Command{
		Use: "ensure ID", Short: "Create a local disk, or give it another quota",
		Long: `Create a local disk, or give it another quota. All of its space is reserved. The size of a local disk that exists is not changed. The local disk is a
disk of an instance that names its device: instance ensure --disk DEVICE.`,
		Example: `  sledctl storage local-disk ensure $(uuidgen) --size 10G
  sledctl storage local-disk ensure 3d3e6b10-7f0a-4c61-9a5e-0d9a0b7c5a11 --size 10G --encrypted`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if size == nil {
				return &cli.UsageError{Text: "storage local-disk ensure: --size is missing"}
			}
			want.Size = *size
			if quota != nil {
				want.Quota = *quota
			}
			return runVolumeEnsure(ctx, env, m, args[0], want)
		}),
	}
	m.Add(cmd, true)
	placeFlags(env, cmd, &want.Place)
	cmd.Flags().Var(cli.SizeFlag{Value: &size}, "size", "of the local disk")
	cmd.Flags().Var(cli.SizeFlag{Value: &quota}, "quota", "of the dataset in which it lies (default: 70M more for each GiB)")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, ids(env))
	return cmd
}

func runVolumeEnsure(ctx context.Context, e *cli.Env, m cli.Mutation, text string, want localdisk.Wanted) error {
	if err := localDiskList().Check(e.Output); err != nil {
		return err
	}
	var err error
	if want.ID, err = localDiskID(text); err != nil {
		return err
	}
	_, env, err := e.Operation()
	if err != nil {
		return err
	}
	if err := cli.WholePools(ctx, e, &want.Pool); err != nil {
		return err
	}
	made, report, err := localDisks().Ensure(ctx, env, want, m.Dry(), m.Keep)
	if err != nil {
		return failure.WithReport(err, report)
	}
	if m.Dry() {
		return e.PrintPlan(m, report)
	}
	user, err := localDisks().User(report.View, made.Device())
	if err != nil {
		return err
	}
	return localDiskList().PrintOne(e.Streams.Out, e.Output, shownLocalDisk{Record: made, Device: made.Device(), Instance: user})
}

func newLocalDiskDelete(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var place localdisk.Place
	var mustExist bool
	cmd := &cobra.Command{
		Use: "delete ID", Aliases: []string{"rm"}, Short: "Delete a local disk and all data on it",
		Example: `  sledctl storage local-disk delete 3d3e6b10-7f0a-4c61-9a5e-0d9a0b7c5a11`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			return runVolumeDelete(ctx, env, m, args[0], place, mustExist)
		}),
	}
	m.Add(cmd, false)
	placeFlags(env, cmd, &place)
	env.AddOutput(cmd)
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if it does not exist")
	cli.CompleteArgs(cmd, ids(env))
	return cmd
}

func runVolumeDelete(ctx context.Context, e *cli.Env, m cli.Mutation, text string, p localdisk.Place, mustExist bool) error {
	var err error
	if p.ID, err = localDiskID(text); err != nil {
		return err
	}
	_, env, err := e.Operation()
	if err != nil {
		return err
	}
	if err := cli.WholePools(ctx, e, &p.Pool); err != nil {
		return err
	}
	gone, report, err := localDisks().Delete(ctx, env, p, m.Dry())
	switch {
	case err != nil:
		return failure.WithReport(err, report)
	case m.Dry():
		return e.PrintPlan(m, report)
	case !gone && mustExist:
		return &cli.NotFoundError{What: "local disk " + p.ID.String(), List: "sledctl storage local-disk list"}
	}
	return nil
}
