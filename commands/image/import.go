package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/image"
)

// importing is what is asked for.
type importing struct {
	cli.Mutation
	name, pool, sha256 string
	size               *uint64 // of the disk in a pipe
}

func newImport(env *cli.Env) *cobra.Command {
	var o importing
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Make an image of a disk in a file",
		Long: `Make an image of a disk in a file: a volume, and a snapshot of it that disks are cloned from. The file is a raw disk, one
packed by gzip, xz or zstd, or a qcow2; its content says which. All that can be known to be wrong with it is found before
anything is created: it is refused with exit 8, and the command that converts it, if there is one. What reads as zeros
takes no room. Importing the same file again changes nothing. With - the disk comes from standard input, raw or packed, and
--size says how large it is: that is not known before its end.`,
		Example: `  sledctl image import debian-13-generic-amd64.qcow2 --name debian-13
  sledctl image import disk.raw.zst --sha256 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae -n`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runImport(ctx, env, o, args[0]) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "name of the image (default: that of the file)")
	flags.StringVar(&o.pool, "pool", "", "`POOL` to keep it on (default: the one with the most room)")
	flags.StringVar(&o.sha256, "sha256", "", "`DIGEST` that the file must have, in hexadecimal")
	flags.Var(cli.SizeFlag{Value: &o.size}, "size", "size of the disk that comes from standard input, e.g. 2G")
	env.CompleteFlag(cmd, "pool", env.CompletePools)
	o.Add(cmd, false)
	env.AddOutput(cmd)
	return cmd
}

func runImport(ctx context.Context, e *cli.Env, o importing, file string) error {
	if err := imageList().Check(e.Output); err != nil {
		return err
	}
	if o.sha256 != "" && (len(o.sha256) != 64 || strings.Trim(o.sha256, "0123456789abcdefABCDEF") != "") {
		return &cli.UsageError{Text: fmt.Sprintf("--sha256 %s: want 64 hexadecimal digits", o.sha256)}
	}
	named := o.name != ""
	if !named {
		o.name = nameOf(file)
	}
	switch piped := file == "-"; {
	case piped && (o.size == nil || !named):
		return &cli.UsageError{Text: "image import -: want --name, and --size with the size of the disk", Advice: "run: sledctl image import - --name NAME --size SIZE"}
	case !piped && o.size != nil:
		return &cli.UsageError{Text: "--size is about a disk from standard input: want - instead of a file"}
	}
	if err := image.ValidateName(o.name); err != nil {
		if !named {
			return &cli.UsageError{Text: fmt.Sprintf("%s cannot name an image", file), Advice: "give it a name with --name"}
		}
		return err
	}
	_, op, err := e.Operation()
	if err != nil {
		return err
	}
	if _, err := op.Ledger(ctx); err != nil { // to read a file may take minutes
		return err
	}
	source, done, err := o.source(ctx, e, file)
	if err != nil {
		return err
	}
	defer done()
	pools, err := e.ZonePools(ctx, op.Host)
	if err == nil {
		err = cli.WholePools(ctx, e, &o.pool)
	}
	if err != nil {
		return err
	}
	made, report, err := image.Import(ctx, op, image.Want{Name: o.name, Pool: o.pool, Source: source, Progress: e.Progress.Copies()}, pools, o.Dry())
	switch {
	case err != nil:
		return failure.WithReport(err, report)
	case o.Dry():
		return e.PrintPlan(o.Mutation, report)
	}
	return imageList().PrintOne(e.Streams.Out, e.Output, made)
}

// source opens what is imported.
func (o importing) source(ctx context.Context, e *cli.Env, file string) (s image.Source, done func(), err error) {
	if file == "-" {
		if e.Streams.In.Terminal {
			return s, nil, &cli.UsageError{Text: "image import -: standard input is a terminal", Advice: "run: zstd -dc FILE | sledctl image import - --name NAME --size SIZE"}
		}
		s, err = image.Pipe(ctx, e.Streams.In, int64(*o.size), o.sha256)
		return s, func() {}, err
	}
	in, err := os.Open(file)
	if err != nil {
		return s, nil, cli.NamedFile(file, err)
	}
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &failure.RefusedError{Err: fmt.Errorf("%s is no regular file", file)}
	}
	if err == nil {
		s, err = image.Open(ctx, file, in, info.Size(), o.sha256)
	}
	if err != nil {
		return s, nil, errors.Join(err, in.Close())
	}
	return s, func() { _ = in.Close() }, nil
}
