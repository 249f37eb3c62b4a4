package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/image"
)

func newExport(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export NAME FILE",
		Short: "Write the disk of an image to a file",
		Long: `Write the disk of an image to a file, raw; what is zeros becomes a hole of the file. The file must not exist. With - it goes to
standard output.`,
		Example: `  sledctl image export debian-13 debian-13.raw
  sledctl image export debian-13 - | zstd > debian-13.raw.zst`,
		Args: cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runExport(ctx, env, args[0], args[1]) }),
	}
	cli.CompleteArgs(cmd, cli.CompleteImages(env))
	return cmd
}

func runExport(ctx context.Context, e *cli.Env, ref, file string) error {
	_, h, err := e.Reach()
	if err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	r, err := image.Get(view, ref)
	if err != nil {
		return view.Absent(err)
	}
	if file == "-" {
		return image.Export(ctx, h, r, stream{e.Streams.Out})
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return cli.NewFile(file, err)
	}
	s := &sparse{file: out}
	if err = image.Export(ctx, h, r, s); err == nil {
		err = out.Truncate(s.size)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

// stream writes what comes in order.
type stream struct{ io.Writer }

func (s stream) WriteAt(p []byte, _ int64) (int, error) { return s.Write(p) }

// sparse leaves out what is zeros.
type sparse struct {
	file  *os.File
	zeros [4096]byte
	size  int64
}

func (s *sparse) WriteAt(p []byte, at int64) (int, error) {
	for n := 0; n < len(p); n += len(s.zeros) {
		part := p[n:min(n+len(s.zeros), len(p))]
		if bytes.Equal(part, s.zeros[:len(part)]) {
			continue
		}
		if _, err := s.file.WriteAt(part, at+int64(n)); err != nil {
			return n, err
		}
	}
	s.size = at + int64(len(p))
	return len(p), nil
}
