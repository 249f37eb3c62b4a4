package qcow2

import (
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// mostAtOnce is how much data is read from the file and yielded at once, if clusters of the
// disk follow each other in the file.
const mostAtOnce = 1 << 20

// walk gathers what can be yielded at once.
type walk struct {
	image *Image
	yield func(at, length int64, data []byte) error
	done  int64 // how much of the disk has been yielded

	from, length int64 // data that waits, in the file; it belongs at done
	buffer       []byte
	unpack       unpacker
}

// cluster takes the next cluster of the disk that is not a hole.
func (w *walk) cluster(at int64, e entry) error {
	h := w.image.header
	rest := min(h.cluster(), h.size-at)
	if e.length == 0 && w.length > 0 && at == w.done+w.length && e.at == w.from+w.length && w.length+rest <= mostAtOnce {
		w.length += rest
		return nil
	}
	if err := w.reach(at); err != nil {
		return err
	}
	if e.length == 0 {
		w.from, w.length = e.at, rest
		return nil
	}
	data := w.room(h.cluster())
	if err := w.unpack.cluster(w.image, e, data); err != nil {
		return fmt.Errorf("compressed cluster %d: %w", at>>h.clusterBits, err)
	}
	w.done += rest
	return w.yield(at, rest, data[:rest])
}

// reach yields what waits, and the hole behind it.
func (w *walk) reach(at int64) error {
	if w.length > 0 {
		data := w.room(w.length)
		if err := w.image.read(data, w.from, fmt.Sprintf("the cluster at %#x", w.from)); err != nil {
			return err
		}
		from := w.done
		w.done, w.length = w.done+w.length, 0
		if err := w.yield(from, int64(len(data)), data); err != nil {
			return err
		}
	}
	if at == w.done {
		return nil
	}
	from := w.done
	w.done = at
	return w.yield(from, at-from, nil)
}

func (w *walk) flush() error { return w.reach(w.image.header.size) }

func (w *walk) room(n int64) []byte {
	if int64(cap(w.buffer)) < n {
		w.buffer = make([]byte, max(n, mostAtOnce))
	}
	return w.buffer[:n]
}

// unpacker unpacks compressed clusters, one after another.
type unpacker struct {
	in      *bufio.Reader
	deflate io.ReadCloser
	zstd    *zstd.Decoder
}

// cluster fills data with the compressed cluster at e. What follows it in the file is of no
// interest: the length of e is one of sectors, and others share the last.
func (u *unpacker) cluster(i *Image, e entry, data []byte) error {
	section := io.NewSectionReader(i.file, e.at, min(e.length, i.length-e.at))
	if u.in == nil {
		u.in = bufio.NewReaderSize(section, 64<<10)
	} else {
		u.in.Reset(section)
	}
	from, err := u.reader(i.header)
	if err == nil {
		_, err = io.ReadFull(from, data)
	}
	var lost interface{ Timeout() bool } // an error of the file, not of what it holds
	switch {
	case err == nil:
		return nil
	case errors.As(err, &lost):
		return err
	}
	return bad("its data at %#x cannot be unpacked: %v", e.at, err)
}

func (u *unpacker) reader(h header) (io.Reader, error) {
	if !h.zstd {
		if u.deflate == nil {
			u.deflate = flate.NewReader(u.in)
			return u.deflate, nil
		}
		return u.deflate, u.deflate.(flate.Resetter).Reset(u.in, nil)
	}
	if u.zstd == nil {
		var err error
		u.zstd, err = zstd.NewReader(u.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20), zstd.IgnoreChecksum(true))
		return u.zstd, err
	}
	return u.zstd, u.zstd.Reset(u.in)
}
