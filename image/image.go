// Package image reads disks out of the files in which they are passed around: raw, qcow2, and
// raw packed by gzip, xz or zstd. What a file is, its content says; its name counts for nothing.
//
// Open takes a file, and returns only after all that can be checked without unpacking
// a disk twice over has been checked: the tables of a qcow2, and the whole of a packed file, since nothing before its
// end says how long its disk is. Stream takes a pipe, which can be read once: its disk's
// size must be known beforehand, and a qcow2 is refused, because its tables may lie at its end.
//
// Memory is bounded, whatever the file says: by the tables of a qcow2 (64 MiB), and by
// the windows of xz (64 MiB) and zstd (32 MiB).
package image

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/image/qcow2"
)

// Sector is the unit of every disk's size, in bytes.
const Sector = 512

// MaxSize is the largest disk that is read, in bytes.
const MaxSize = 1 << 46

// Image is a disk in a file.
type Image struct {
	// Format is "raw" or "qcow2", Compression "gzip", "xz", "zstd" or empty; of a qcow2,
	// "deflate" or "zstd" if clusters are compressed that way.
	Format, Compression string
	// Size is that of the disk, in bytes: a multiple of Sector.
	Size int64
	// Data is at most how much of the disk is not zero, in bytes.
	Data int64

	walk func(ctx context.Context, yield func(at, length int64, data []byte) error) error
}

// Walk yields the disk from its beginning to its end: stretches of data, and holes, which read as
// zeros and have no data. Data is valid until yield returns, and an error of yield ends the walk.
// An Image of Stream can be walked once. Errors: *Refused for what the file holds; those of reading it.
func (i *Image) Walk(ctx context.Context, yield func(at, length int64, data []byte) error) error {
	s := sieve{yield: yield}
	if err := i.walk(ctx, s.take); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	if s.at != i.Size {
		return &Refused{Reason: fmt.Sprintf("its disk ends at %d bytes instead of %d: it has changed while it was read", s.at, i.Size)}
	}
	return nil
}

// Refused is a file that is not taken as a disk.
type Refused struct {
	Reason string
	Next   string // what to type; empty: nothing helps
}

func (e *Refused) Error() string  { return e.Reason }
func (*Refused) Kind() fault.Kind { return fault.Refused }

// Hint says what to type.
func (e *Refused) Hint() string { return e.Next }

// Open recognises the disk in a file of so many bytes. The name is for the hints of
// errors only. Errors: *Refused; those of reading.
func Open(ctx context.Context, name string, file io.ReaderAt, length int64) (*Image, error) {
	start := make([]byte, min(length, startLength))
	if _, err := file.ReadAt(start, 0); err != nil && err != io.EOF {
		return nil, err
	}
	end := make([]byte, min(length, Sector))
	if _, err := file.ReadAt(end, length-int64(len(end))); err != nil && err != io.EOF {
		return nil, err
	}
	kind := recognise(start, end)
	switch {
	case length == 0:
		return nil, &Refused{Reason: "it is empty"}
	case kind.pack != "":
		return openPacked(ctx, name, kind.pack, file, length)
	case kind.name == "qcow2":
		return openQcow2(name, file, length)
	case kind.name != "raw":
		return nil, kind.refuse(name)
	}
	if err := wholeDisk(start, length); err != nil {
		return nil, err
	}
	return Raw(file, length), nil
}

// Raw is the disk that a file, or a device, is byte by byte, whatever it begins with.
func Raw(file io.ReaderAt, size int64) *Image {
	return &Image{Format: "raw", Size: size, Data: size, walk: func(ctx context.Context, yield func(int64, int64, []byte) error) error {
		return walkStream(ctx, io.NewSectionReader(file, 0, size), size, yield)
	}}
}

func openQcow2(name string, file io.ReaderAt, length int64) (*Image, error) {
	q, err := qcow2.Open(file, length)
	if err != nil {
		return nil, ofQcow2(name, err)
	}
	return &Image{Format: "qcow2", Size: q.Size(), Data: q.Data(), Compression: q.Compression(), walk: func(ctx context.Context, yield func(int64, int64, []byte) error) error {
		return ofQcow2(name, q.Walk(ctx, yield))
	}}, nil
}

// ofQcow2 adds the command to what is refused.
func ofQcow2(name string, err error) error {
	e, ok := errors.AsType[*qcow2.Error](err)
	switch {
	case !ok:
		return err
	case e.Convertible:
		return &Refused{Reason: e.Error(), Next: convert(name)}
	case e.Repair:
		return &Refused{Reason: e.Error(), Next: repair(name)}
	}
	return &Refused{Reason: err.Error()}
}
