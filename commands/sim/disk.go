package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sled/failure"
)

func newDisk(env *cli.Env) *cobra.Command {
	cmd := cli.Group("disk", "Remove, insert and break disks of the simulated sled", `
These commands do what an operator or a defect does to disks. A disk is named by its name or its serial number. A pool whose disk is
missing or fails is suspended; when the disk works again, zpool clear resumes the pool.`)
	cmd.AddCommand(newDiskList(env), newDiskRemove(env), newDiskInsert(env), newDiskFail(env), newDiskFill(env),
		newDiskHeal(env), newDiskImage(env))
	return cmd
}

func newDiskList(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the slots and the disks in them", Example: `  sledctl sim disk list`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runDiskList(ctx, env) }),
	}
	env.AddOutput(cmd)
	return cmd
}

func runDiskList(ctx context.Context, e *cli.Env) error {
	sled, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	s, err := sled.Snapshot(ctx)
	if err != nil {
		return err
	}
	type column = terminal.Column[sim.DiskSnapshot]
	list := terminal.List[sim.DiskSnapshot]{Kind: "Disk", Name: func(d sim.DiskSnapshot) string { return d.Name }, Columns: []column{
		{Name: "name", Value: func(d sim.DiskSnapshot) string { return d.Name }},
		{Name: "kind", Value: func(d sim.DiskSnapshot) string { return d.Kind }},
		{Name: "slot", Value: func(d sim.DiskSnapshot) string { return strconv.Itoa(d.Slot) }, Right: true},
		{Name: "serial", Value: func(d sim.DiskSnapshot) string { return d.Serial }},
		{Name: "state", Value: func(d sim.DiskSnapshot) string { return d.State }},
		{Name: "image", Value: func(d sim.DiskSnapshot) string { return map[bool]string{true: "yes"}[d.Image] }},
		{Name: "pool", Value: func(d sim.DiskSnapshot) string { return d.Pool }},
	}}
	return list.Print(e.Streams.Out, e.Output, s.Disks)
}

// onDisks is a command that does something to each of the disks it names, or to
// none of them.
func onDisks(env *cli.Env, cmd *cobra.Command, do func(tx *world.Tx, disk string) error) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = env.Run(func(ctx context.Context, args []string) error {
		sled, _, err := simulatedSled(env)
		if err != nil {
			return err
		}
		return sled.World().Update(ctx, func(tx *world.Tx) error {
			for _, name := range args {
				if zfs.FindDisk(tx, name) == nil {
					return unknownDisk(tx, name)
				}
			}
			for _, name := range args {
				err := do(tx, name)
				if _, wrong := errors.AsType[*cli.UsageError](err); wrong {
					return err
				}
				if err != nil {
					return &failure.RefusedError{Err: err}
				}
			}
			return nil
		})
	})
	cli.CompleteArgs(cmd, func(ctx context.Context) []string {
		sled, _, err := simulatedSled(env)
		if err != nil {
			return nil
		}
		s, err := sled.Snapshot(ctx)
		if err != nil {
			return nil
		}
		var names []string
		for _, d := range s.Disks {
			names = append(names, d.Name)
		}
		return names
	})
	return cmd
}

func unknownDisk(tx *world.Tx, name string) error {
	var known []string
	for _, d := range tx.State.Disks {
		known = append(known, d.Name)
	}
	e := &cli.UsageError{Text: fmt.Sprintf("there is no disk %q", name), Advice: "to see their names, run: sledctl sim disk list"}
	if near := naming.Nearest(name, known); near != "" {
		e.Advice = "did you mean: " + near
	}
	return e
}

func newDiskRemove(env *cli.Env) *cobra.Command {
	return onDisks(env, &cobra.Command{
		Use: "remove DISK ...", Short: "Pull disks out of their slots",
		Example: `  sledctl sim disk remove c11t0d0
  sledctl sim disk remove c1t0d0 c2t0d0    # both M.2s`,
	}, func(tx *world.Tx, disk string) error { zfs.LoseDisk(tx, disk); return nil })
}

func newDiskInsert(env *cli.Env) *cobra.Command {
	var blank, stale bool
	cmd := onDisks(env, &cobra.Command{
		Use: "insert DISK ...", Short: "Put disks into their slots",
		Long: `Put disks into their slots. Disks that were removed return as they were. With --blank the slot gets another disk, with another serial
number and nothing on it. With --stale the disk returns with the content of its image (sim disk image); no pool on it may be imported then.`,
		Example: `  sledctl sim disk insert c11t0d0
  sledctl sim disk insert c11t0d0 --blank`,
	}, func(tx *world.Tx, disk string) error {
		switch {
		case blank && stale:
			return &cli.UsageError{Text: "--blank and --stale exclude each other", Advice: "to see the flags, run: sledctl sim disk insert --help"}
		case blank:
			return zfs.ReplaceDisk(tx, disk)
		case stale:
			return zfs.RestoreImage(tx, disk)
		}
		zfs.InsertDisk(tx, disk)
		return nil
	})
	cmd.Flags().BoolVar(&blank, "blank", false, "insert another disk, with nothing on it")
	cmd.Flags().BoolVar(&stale, "stale", false, "insert the disk with the content of its image")
	return cmd
}

func newDiskFail(env *cli.Env) *cobra.Command {
	return onDisks(env, &cobra.Command{
		Use: "fail DISK ...", Short: "Make all I/O of disks end with errors",
		Example: `  sledctl sim disk fail c11t0d0`,
	}, func(tx *world.Tx, disk string) error { zfs.FailDisk(tx, disk); return nil })
}

func newDiskFill(env *cli.Env) *cobra.Command {
	free := "0"
	cmd := onDisks(env, &cobra.Command{
		Use: "fill DISK ...", Short: "Fill the pools on disks",
		Long:    `Fill the pools on disks, so that writes end with ENOSPC. sledctl writes no data for it; sim disk heal undoes it.`,
		Example: `  sledctl sim disk fill c1t0d0 --free 64K`,
	}, func(tx *world.Tx, disk string) error {
		size, err := terminal.ParseSize(free)
		if err != nil {
			return &cli.UsageError{Text: fmt.Sprintf("--free %q: %v", free, err), Advice: "give --free 64K"}
		}
		return zfs.FillDisk(tx, disk, size)
	})
	cmd.Flags().StringVar(&free, "free", free, "space to leave free, e.g. 64K")
	return cmd
}

func newDiskHeal(env *cli.Env) *cobra.Command {
	return onDisks(env, &cobra.Command{
		Use: "heal DISK ...", Short: "Undo what fail and fill did",
		Example: `  sledctl sim disk heal c11t0d0`,
	}, func(tx *world.Tx, disk string) error { zfs.HealDisk(tx, disk); return nil })
}

func newDiskImage(env *cli.Env) *cobra.Command {
	return onDisks(env, &cobra.Command{
		Use: "image DISK ...", Short: "Remember what is on disks, for insert --stale",
		Example: `  sledctl sim disk image c1t0d0
  sledctl sim disk remove c1t0d0 && sledctl sim reboot
  sledctl sim disk insert c1t0d0 --stale`,
	}, func(tx *world.Tx, disk string) error { return zfs.TakeImage(tx, disk) })
}
