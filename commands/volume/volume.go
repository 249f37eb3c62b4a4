// Package volume is sledctl volume.
package volume

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/volume"
)

// New is the command volume.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("volume", "List, create and delete volumes, the disks of VMs", "")
	cmd.AddCommand(newList(env), newGet(env), newCreate(env), newResize(env), newRename(env), newSet(env), newAttach(env), newDetach(env), newReceive(env), newAdopt(env), newDelete(env))
	return cmd
}

func volumeList() terminal.List[volume.Status] {
	type column = terminal.Column[volume.Status]
	bytes := func(name string, of func(volume.Status) uint64) column {
		return column{
			Name: name, Right: true,
			Value: func(v volume.Status) string { return strconv.FormatUint(of(v), 10) },
			Human: func(v volume.Status) string { return terminal.FormatSize(of(v)) },
		}
	}
	extra := func(c column) column {
		c.Extra = true
		return c
	}
	yes := func(name string, of func(volume.Status) bool) column {
		return column{Name: name, Extra: true, Value: func(v volume.Status) string { return strconv.FormatBool(of(v)) }}
	}
	short := terminal.ShortPools(nil)
	return terminal.List[volume.Status]{Kind: "Volume", Name: func(v volume.Status) string { return v.Name }, Columns: []column{
		{Name: "name", Value: func(v volume.Status) string { return v.Name }},
		{Name: "state", Value: func(v volume.Status) string { return string(v.State) }, Style: stateStyle},
		bytes("size", func(v volume.Status) uint64 { return v.Size }),
		bytes("used", func(v volume.Status) uint64 { return v.Used }),
		{Name: "instances", Value: func(v volume.Status) string { return strings.Join(v.Instances, ",") }},
		{Name: "pool", Value: func(v volume.Status) string { return v.Pool }, Human: func(v volume.Status) string { return short(v.Pool) }},
		{Name: "reason", Value: func(v volume.Status) string { return v.Reason }, Note: true},
		yes("thin", func(v volume.Status) bool { return v.Thin }),
		yes("protected", func(v volume.Status) bool { return v.Protected }),
		yes("delete_with_instance", func(v volume.Status) bool { return v.Follows }),
		{Name: "image", Value: func(v volume.Status) string { return v.Image }, Extra: true},
		extra(bytes("block_size", func(v volume.Status) uint64 { return v.Block })),
		{Name: "path", Value: func(v volume.Status) string { return v.Device }, Extra: true},
		{Name: "dataset", Value: func(v volume.Status) string { return v.Dataset }, Extra: true},
		{Name: "id", Value: func(v volume.Status) string { return v.ID }, Extra: true},
		{Name: "arrives", Value: func(v volume.Status) string { return v.Arrives }, Extra: true},
	}}
}

func stateStyle(v volume.Status) terminal.Style {
	switch v.State {
	case volume.Ready:
		return terminal.Good
	case volume.Making, volume.Arrives:
		return terminal.Warn
	}
	return terminal.Bad
}

func newList(env *cli.Env) *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the volumes, and the instances that have them",
		Long: `List the volumes, and the instances that have them. USED is what a volume takes of its pool, with what the pool keeps back for it.
Volumes that sledctl did not create are not listed: zfs list -t volume shows them.`,
		Example: `  sledctl volume list
  sledctl volume list --instance web1
  sledctl volume list -H --columns name,path`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runList(ctx, env, of) }),
	}
	cmd.Flags().StringVar(&of, "instance", "", "list only the volumes of the instance with this `NAME` or UUID")
	env.CompleteFlag(cmd, "instance", env.CompleteInstances)
	env.AddOutput(cmd)
	return cmd
}

func runList(ctx context.Context, e *cli.Env, of string) error {
	if err := volumeList().Check(e.Output); err != nil {
		return err
	}
	pick := func(volume.Status) bool { return true }
	if of != "" {
		r, err := e.OfInstance(ctx, of)
		if err != nil {
			return err
		}
		pick = func(v volume.Status) bool {
			for _, d := range r.AllDisks() {
				if d.Path == v.Device {
					return true
				}
			}
			return false
		}
	}
	all, err := statuses(ctx, e, pick)
	if err != nil {
		return err
	}
	return volumeList().Print(e.Streams.Out, e.Output, all)
}

// statuses are those of the volumes that are picked.
func statuses(ctx context.Context, e *cli.Env, pick func(volume.Status) bool) ([]volume.Status, error) {
	s, env, err := cli.Volumes(e)
	if err != nil {
		return nil, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx, env.Host, view)
	var picked []volume.Status
	for _, v := range all {
		if pick(v) {
			picked = append(picked, v)
		}
	}
	return picked, err
}

func newGet(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get NAME", Short: "Show a volume",
		Example: `  sledctl volume get db1
  sledctl volume get db1 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runGet(ctx, env, args[0]) }),
	}
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, cli.CompleteVolumes(env))
	return cmd
}

func runGet(ctx context.Context, e *cli.Env, ref string) error {
	if err := volumeList().Check(e.Output); err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	r, err := volume.Find(view, ref)
	if err != nil {
		return view.Absent(err)
	}
	all, err := statuses(ctx, e, func(v volume.Status) bool { return v.ID == r.ID })
	if err != nil {
		return err
	}
	return volumeList().PrintOne(e.Streams.Out, e.Output, all[0])
}

func newCreate(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var want volume.Wanted
	var size, block *uint64
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a volume, to be a disk of a VM",
		Long: `Create a volume, to be a disk of a VM: sledctl instance ensure web1 --disk NAME. It lies on the pool with the most room, or on
--pool, and is encrypted where the pool's zones are. Its size is rounded up to a multiple of 128K. The pool keeps room for all
of it, unless it is --thin. With --image it begins as that image, on the pool of the image or, with --pool, on another, to which
the image is copied first, and is at least as large: it is cloned, which takes no time, and no room for what both have in common
(but the pool keeps room for all of it, if it may change). A volume that exists as it is asked for is left as it is; one that
differs is a conflict (exit 5).

sledctl refuses (exit 8) what the pool has no room for, and says who holds what. 1/32 of the pool stays free.`,
		Example: `  sledctl volume create db1 --size 100G
  sledctl volume create scratch --size 1T --thin --block-size 64K
  sledctl volume create web1-root --image debian-13 --size 20G`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			want.Name = args[0]
			if size == nil && want.Image == "" {
				return &cli.UsageError{Text: "volume create: --size is missing", Advice: "run: sledctl volume create " + args[0] + " --size 20G"}
			}
			if size != nil {
				want.Size = *size
			}
			if block != nil {
				want.Block = *block
			}
			return runCreate(ctx, env, m, want)
		}),
	}
	flags := cmd.Flags()
	flags.Var(cli.SizeFlag{Value: &size, Least: record.LeastDisk}, "size", "size of the volume, e.g. 20G (default: that of the image)")
	flags.StringVar(&want.Image, "image", "", "have it begin as the image of this `NAME`")
	flags.Var(cli.SizeFlag{Value: &block}, "block-size", "size of its blocks, 512 to 128K (default: 8K)")
	flags.StringVar(&want.Pool, "pool", "", "`POOL` for the volume (default: the one with the most room)")
	flags.BoolVar(&want.Thin, "thin", false, "keep no room for it: it can be larger than what is free")
	flags.BoolVar(&want.Protect, "protect", false, "have volume delete refuse it")
	flags.BoolVar(&want.Follow, "delete-with-instance", false, "have instance delete remove it with the instance")
	env.CompleteFlag(cmd, "pool", env.CompletePools)
	env.CompleteFlag(cmd, "image", cli.CompleteImages(env))
	cli.CompleteArgs(cmd, cli.CompleteVolumes(env)) // to run it again
	m.Add(cmd, true)
	env.AddOutput(cmd)
	return cmd
}

func runCreate(ctx context.Context, e *cli.Env, m cli.Mutation, want volume.Wanted) error {
	if err := volumeList().Check(e.Output); err != nil {
		return err
	}
	s, env, err := cli.Volumes(e)
	if err != nil {
		return err
	}
	if err := cli.WholePools(ctx, e, &want.Pool); err != nil {
		return err
	}
	made, report, err := s.Create(ctx, env, want, m.Dry(), m.Keep)
	switch {
	case err != nil:
		return failure.WithReport(err, report)
	case m.Dry():
		return e.PrintPlan(m, report)
	}
	return volumeList().PrintOne(e.Streams.Out, e.Output, made)
}

func newDelete(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var yes, mustExist bool
	cmd := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Delete a volume, with what is on it",
		Long: `Delete a volume, with what is on it. sledctl refuses (exit 8) one that is a disk of an instance, one that is protected, and one
that has snapshots. Deleting a volume that does not exist does nothing.`,
		Example: `  sledctl volume delete scratch`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			s, op, err := cli.Volumes(env)
			if err != nil {
				return err
			}
			there, report, err := s.Delete(ctx, op, volume.DeleteRequest{Ref: args[0], Yes: yes, DryRun: m.Dry()})
			switch {
			case err != nil:
				return failure.WithReport(err, report)
			case !there && mustExist:
				return &cli.NotFoundError{What: "volume " + args[0], List: "sledctl volume list"}
			case m.Dry():
				return env.PrintPlan(m, report)
			}
			return nil
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "delete it although it is protected")
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if it does not exist")
	cli.CompleteArgs(cmd, cli.CompleteVolumes(env))
	return cmd
}
