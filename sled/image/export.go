package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// MissingError is an image whose volume or snapshot is gone.
type MissingError struct{ Record }

// Error names the volume.
func (e *MissingError) Error() string {
	return fmt.Sprintf("image %q: its volume %s, or the snapshot of it, is gone", e.Name, e.Dataset)
}

func (*MissingError) Kind() fault.Kind { return fault.Refused }

// Hint names the command.
func (e *MissingError) Hint() string {
	return "to remove its record, run: sledctl image delete " + e.Name
}

// exported is how much is read of a volume at once, in bytes.
const exported = 1 << 20

// Export writes the disk of an image, raw, byte by byte. It reads the volume, which is as its snapshot:
// nothing but an import writes to one.
// Errors: *MissingError; those of reading and of out.
func Export(ctx context.Context, h host.Host, r Record, out io.WriterAt) error {
	inv, err := look(ctx, h)
	if err != nil {
		return err
	}
	all := r.Places()
	i := slices.IndexFunc(all, func(p Place) bool { return p.whole(inv) })
	if i < 0 {
		return &MissingError{Record: r}
	}
	volume, err := h.Files().Open(naming.VolumeDevice(all[i].Dataset), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer volume.Close()
	buffer := make([]byte, exported)
	for at := int64(0); at < r.Size; at += exported {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buffer[:min(exported, r.Size-at)]
		if n, err := volume.ReadAt(part, at); n < len(part) {
			return fmt.Errorf("read image %q at %d: %w", r.Name, at+int64(n), errors.Join(err, io.ErrUnexpectedEOF))
		}
		if _, err := out.WriteAt(part, at); err != nil {
			return err
		}
	}
	return nil
}
