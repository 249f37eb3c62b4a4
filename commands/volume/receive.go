package volume

import (
	"context"
	"io"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zfs"
)

func newReceive(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var c volume.ReceiveRequest
	var size, block *uint64
	var stream volume.Stream
	cmd := &cobra.Command{
		Use: "receive NAME", Short: "Create a volume that moves here with its instance",
		Long: `Create a volume that moves here with its instance, or update it, from standard input, as zfs send prints it. instance migrate --offline runs this
command on the target (docs/migration.md). The first stream is of all of the volume, and creates it; the others, with --since, are of
what has changed. A volume that has the snapshot already is left as it is, and the stream is not read.

Until its instance has arrived, the volume is the disk of no instance, and is not renamed or resized; sledctl volume delete removes it. Of a stream
that is not whole nothing is taken. A volume of the name that is no copy of the one that moves is a conflict (exit 5).`,
		Example: `  zfs send rpool/volume_web1-0@s | ssh sled2 sledctl volume receive web1-0 --size 20G \
    --snapshot 8231546543219 --for 59ce2ee3-b8a6-4b8c-a1c8-0d0a1e0e2f4b`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c.Name, c.DryRun, c.Stream = args[0], m.Dry(), &stream
			switch {
			case size == nil:
				return &cli.UsageError{Text: "volume receive: --size is missing"}
			case stream.GUID == "":
				return &cli.UsageError{Text: "volume receive: --snapshot is missing"}
			case uuid.Validate(c.Arrives) != nil:
				return &cli.UsageError{Text: "--for " + c.Arrives + ": want the UUID of an instance"}
			case env.Streams.In.Terminal && !c.DryRun:
				return &cli.UsageError{Text: "volume receive: standard input is a terminal", Advice: "run: zfs send SNAPSHOT | sledctl volume receive " + c.Name}
			}
			if c.Size = *size; block != nil {
				c.Block = *block
			}
			return runReceive(ctx, env, m, c)
		}),
	}
	flags := cmd.Flags()
	flags.Var(cli.SizeFlag{Value: &size}, "size", "size of the volume, e.g. 20G")
	flags.Var(cli.SizeFlag{Value: &block}, "block-size", "size of its blocks, 512 to 128K (default: 8K)")
	flags.StringVar(&c.Pool, "pool", "", "`POOL` for the volume (default: the one with the most room)")
	flags.BoolVar(&c.Thin, "thin", false, "keep no room for it: it can be larger than what is free")
	flags.BoolVar(&c.Protect, "protect", false, "have volume delete refuse it")
	flags.BoolVar(&c.Follow, "delete-with-instance", false, "have instance delete remove it with the instance")
	flags.StringVar(&c.Arrives, "for", "", "`UUID` of the instance with which it moves here")
	flags.StringVar(&stream.GUID, "snapshot", "", "`GUID` of the snapshot that is sent")
	flags.StringVar(&c.Since, "since", "", "`GUID` of the snapshot since which it is sent (default: all)")
	env.CompleteFlag(cmd, "pool", env.CompletePools)
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, cli.CompleteVolumes(env))
	return cmd
}

func runReceive(ctx context.Context, e *cli.Env, m cli.Mutation, c volume.ReceiveRequest) error {
	if err := volumeList().Check(e.Output); err != nil {
		return err
	}
	s, env, err := cli.Volumes(e)
	if err == nil {
		err = cli.WholePools(ctx, e, &c.Pool)
	}
	if err != nil {
		return err
	}
	c.Stream.Source = zfs.Source{Line: "zfs send", Open: func(ctx context.Context, _ host.Host) (io.ReadCloser, error) {
		return io.NopCloser(image.Arriving(ctx, e.Streams.In)), nil
	}}
	is, report, err := s.Receive(ctx, env, c)
	switch {
	case err != nil:
		return failure.WithReport(err, report)
	case m.Dry():
		return e.PrintPlan(m, report)
	}
	return volumeList().PrintOne(e.Streams.Out, e.Output, is)
}
