// Package qcow2 reads disks from images in QEMU's format qcow2, versions 2 and 3, as
// docs/interop/qcow2.rst of QEMU describes it. It only reads, and takes nothing on trust: Open
// checks the header and every table before it returns, so that what writes what Walk yields
// has seen no byte of a file that contradicts itself.
//
// What an image can refer to outside of its file (a backing file, an external data file) is
// refused, as is what cannot be read without a secret (encryption) and what was not closed
// cleanly. Internal snapshots are passed over: the disk is as it was last.
package qcow2

import (
	"context"
	"fmt"
	"io"

	"github.com/sledctl/sledctl/host/fault"
)

// Image is a disk in a qcow2 file whose tables have been checked.
type Image struct {
	file   io.ReaderAt
	length int64 // of the file
	header header
	l1     []uint64 // where each L2 table lies; 0: all that it would describe reads as zeros
	// data is what the tables call data, in bytes of the disk: at least as much as is not zero.
	data int64
}

// Magic is what a qcow2 file begins with (and one of the older format qcow).
const Magic = "QFI\xfb"

// Open checks the header and all tables of a file with that many bytes. A file that
// cannot be read as a disk is an *Error; other errors are the file's.
//
// It keeps at most 32 MiB of tables, and as much of what each cluster is used for
// while it checks.
func Open(file io.ReaderAt, length int64) (*Image, error) {
	i := &Image{file: file, length: length}
	if err := i.readHeader(); err != nil {
		return nil, err
	}
	used, err := newUse(i.header, length)
	if err != nil {
		return nil, err
	}
	for _, check := range []func(*use) error{i.claimHeader, i.readL1, i.checkL2, i.checkRefcounts} {
		if err := check(used); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// Size is the size of the disk in bytes, a multiple of 512.
func (i *Image) Size() int64 { return i.header.size }

// Data is how much of the disk may be other than zero, in bytes.
func (i *Image) Data() int64 { return i.data }

// Compression is how clusters are compressed, if any is: "deflate" or "zstd".
func (i *Image) Compression() string {
	if i.header.zstd {
		return "zstd"
	}
	return "deflate"
}

// Error is a file that is not read as a disk.
type Error struct {
	Reason string
	// Convertible says that `qemu-img convert` makes an image of it that can be read;
	// Repair that `qemu-img check -r all` may.
	Convertible, Repair bool
}

func (e *Error) Error() string { return e.Reason }

// Kind is that the file is refused.
func (*Error) Kind() fault.Kind { return fault.Refused }

func bad(format string, args ...any) error { return &Error{Reason: fmt.Sprintf(format, args...)} }

// read fills p from the file. A file that ends before is an *Error that says which part is
// cut off.
func (i *Image) read(p []byte, at int64, what string) error {
	n, err := i.file.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case err == nil || err == io.EOF:
		return bad("the file ends within %s, at %d bytes", what, at+int64(n))
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// Walk yields the disk from its beginning to its end: stretches of data, and holes, which read as
// zeros and have no data. Data is valid until yield returns. An error of yield ends the
// walk. A compressed cluster that cannot be unpacked is an *Error.
func (i *Image) Walk(ctx context.Context, yield func(at, length int64, data []byte) error) error {
	w := &walk{image: i, yield: yield}
	return i.eachCluster(func(n int64, e entry) error {
		if n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return w.cluster(n<<i.header.clusterBits, e)
	}, w.flush)
}
