package image

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"

	"github.com/sledctl/sledctl/host"
)

// The windows of compressions, in bytes: a file that asks for a larger one is refused. Those of
// `xz -9` and `zstd -19 --long=25`.
const (
	maxXZ   = 64 << 20
	maxZstd = 32 << 20
)

// unpack is the reader of what is packed.
func unpack(pack string, in io.Reader) (io.Reader, func(), error) {
	switch pack {
	case "gzip":
		r, err := gzip.NewReader(in)
		return r, func() {}, err
	case "xz":
		r, err := xz.NewReader(in, maxXZ)
		return r, func() {}, err
	}
	r, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstd))
	if err != nil {
		return nil, nil, err
	}
	return r, r.Close, nil
}

// openPacked measures the disk in a packed file, which means to unpack all of it: so it is known to be
// complete before anybody writes a byte of it.
func openPacked(ctx context.Context, name, pack string, file io.ReaderAt, length int64) (*Image, error) {
	walk := func(ctx context.Context, yield func(int64, int64, []byte) error) error {
		return walkPacked(ctx, name, pack, io.NewSectionReader(file, 0, length), -1, yield)
	}
	i := &Image{Format: "raw", Compression: pack, walk: walk}
	s := sieve{yield: func(_, length int64, data []byte) error {
		if data != nil {
			i.Data += length
		}
		return nil
	}}
	var start []byte
	err := walk(ctx, func(at, length int64, data []byte) error {
		if at == 0 {
			start = bytes.Clone(data[:min(startLength, len(data))])
		}
		return s.take(at, length, data)
	})
	if err != nil {
		return nil, err
	}
	if s.at == 0 {
		return nil, &Refused{Reason: "it is packed by " + pack + ", and nothing is in it"}
	}
	i.Size = s.at
	return i, wholeDisk(start, i.Size)
}

// walkPacked yields what a packed file holds, which must be a raw disk.
func walkPacked(ctx context.Context, name, pack string, in io.Reader, size int64, yield func(int64, int64, []byte) error) error {
	r, done, err := unpack(pack, bufio.NewReaderSize(in, chunk))
	if err != nil {
		return ofPack(pack, err)
	}
	defer done()
	err = walkStream(ctx, &unpacked{r, pack}, size, func(at, length int64, data []byte) error {
		if at == 0 {
			if k := recognise(data[:min(startLength, len(data))], nil); k.name != "raw" {
				return refusePacked(name, pack, k)
			}
		}
		if at+length > MaxSize {
			return &Refused{Reason: fmt.Sprintf("its disk has more than %d bytes", int64(MaxSize))}
		}
		return yield(at, length, data)
	})
	return err
}

// refusePacked says how to get at what is in a packed file.
func refusePacked(name, pack string, k kind) error {
	inside := k.name
	if k.pack != "" {
		inside = "packed once more, by " + k.pack
	}
	return &Refused{
		Reason: fmt.Sprintf("it is packed by %s, and in it is %s; only raw disks are read while they are unpacked", pack, inside),
		Next:   "to unpack it, run: " + unpackCommand(pack, name),
	}
}

func unpackCommand(pack, name string) string {
	return map[string]string{"gzip": "gunzip -k ", "xz": "unxz -k ", "zstd": "unzstd "}[pack] + host.Quote(name)
}

// unpacked gives the errors of unpacking their type.
type unpacked struct {
	io.Reader
	pack string
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = ofPack(u.pack, err)
	}
	return n, err
}

// ofPack tells an error of the file from one of what it holds.
func ofPack(pack string, err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF || errors.Is(err, xz.ErrBuf) {
		return &Refused{Reason: "it is packed by " + pack + ", and its end is missing"}
	}
	return &Refused{Reason: fmt.Sprintf("it is packed by %s, and cannot be unpacked: %v", pack, err)}
}

// Stream recognises the disk in what comes from a pipe, by its first bytes. Size is that of the
// disk, in bytes, which cannot be known before the pipe's end: the walk fails where it has more or
// fewer. Errors: *Refused; those of reading.
func Stream(in io.Reader, size int64) (*Image, error) {
	buffered := bufio.NewReaderSize(in, chunk)
	start, err := buffered.Peek(startLength)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(start) == 0 {
		return nil, &Refused{Reason: "it is empty"}
	}
	k := recognise(start, nil)
	i := &Image{Format: "raw", Compression: k.pack, Size: size, Data: size}
	switch {
	case k.pack != "":
		i.walk = func(ctx context.Context, yield func(int64, int64, []byte) error) error {
			return walkPacked(ctx, "FILE", k.pack, buffered, size, yield)
		}
	case k.name == "qcow2":
		return nil, &Refused{
			Reason: "it is a qcow2 from a pipe; its tables may lie anywhere in it, so only one in a file is read",
			Next:   "to import it from a file, run: cat > FILE && sledctl image import FILE",
		}
	case k.name != "raw":
		return nil, k.refuse("FILE")
	default:
		i.walk = func(ctx context.Context, yield func(int64, int64, []byte) error) error {
			return walkStream(ctx, buffered, size, yield)
		}
	}
	if k.pack == "" {
		if err := wholeDisk(start, size); err != nil {
			return nil, err
		}
	}
	return i, nil
}
