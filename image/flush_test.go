package image_test

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/image"
)

// tape is a device that keeps how much had been written whenever it was flushed, and nothing else.
type tape struct {
	host.File
	ends int64               // what it has room for
	sync func(nth int) error // nil: it works

	mu      sync.Mutex
	wrote   int64
	flushed []int64
	closed  bool
}

var errTape = errors.New("the tape is torn")

func (d *tape) WriteAt(p []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at+int64(len(p)) > d.ends {
		return 0, errTape
	}
	d.wrote += int64(len(p))
	return len(p), nil
}

func (d *tape) Sync() error {
	d.mu.Lock()
	d.flushed = append(d.flushed, d.wrote)
	nth := len(d.flushed)
	d.mu.Unlock()
	if d.sync == nil {
		return nil
	}
	return d.sync(nth)
}

func (d *tape) Close() error { d.closed = true; return nil }

// tapeHost has nothing but the device.
type tapeHost struct {
	host.Host
	device *tape
}

func (h tapeHost) Files() host.Files { return tapeFiles{device: h.device} }

type tapeFiles struct {
	host.Files
	device *tape
}

func (f tapeFiles) Open(string, int, fs.FileMode) (host.File, error) { return f.device, nil }

// ones is a file without a zero.
type ones struct{}

func (ones) ReadAt(p []byte, _ int64) (int, error) {
	copy(p, "1")
	for n := 1; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
	return len(p), nil
}

// A large disk is flushed while it is written, and once more when all of it is. None of these
// flushes may fail.
func TestADiskIsFlushedWhileItIsWritten(t *testing.T) {
	const mib = 1 << 20
	fails := func(nth int) func(int) error {
		return func(n int) error {
			if n == nth {
				return errTape
			}
			return nil
		}
	}
	for name, test := range map[string]struct {
		size, ends int64
		sync       func(nth int) error
		check      error
		least      int // flushes
		whole      bool
		want       error
	}{
		"small":                  {size: mib, ends: mib, least: 1, whole: true},
		"large":                  {size: 200 * mib, ends: 200 * mib, least: 2, whole: true},
		"the only flush fails":   {size: mib, ends: mib, sync: fails(1), least: 1, want: errTape},
		"one on the way fails":   {size: 200 * mib, ends: 200 * mib, sync: fails(1), least: 1, want: errTape},
		"another file":           {size: mib, ends: mib, check: fs.ErrInvalid, least: 1, want: fs.ErrInvalid},
		"no room":                {size: mib, ends: 0, want: errTape},
		"no room for all of it":  {size: 200 * mib, ends: 100 * mib, want: errTape},
		"no room, a flush fails": {size: 200 * mib, ends: 100 * mib, sync: fails(1), want: errTape},
	} {
		t.Run(name, func(t *testing.T) {
			d := &tape{ends: test.ends, sync: test.sync}
			step := image.Write{Image: image.Raw(ones{}, test.size), From: "disk.raw", Device: "/dev/v", Check: func() error { return test.check }}
			err := step.Do(t.Context(), tapeHost{device: d})
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if len(d.flushed) < test.least || !d.closed {
				t.Errorf("flushed at %v, closed: %t; want at least %d flushes", d.flushed, d.closed, test.least)
			}
			if test.whole && (d.wrote != test.size || d.flushed[len(d.flushed)-1] != test.size) {
				t.Errorf("%d bytes written, flushed at %v; want %d", d.wrote, d.flushed, test.size)
			}
		})
	}
}

// What is found out about the file by the side, and the last flush, do not wait for each other.
func TestTheLastFlushIsByTheSide(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	flushing, checking := make(chan struct{}), make(chan struct{})
	meet := func(here, there chan struct{}) error {
		close(here)
		select {
		case <-there:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	d := &tape{ends: 1 << 20, sync: func(int) error { return meet(flushing, checking) }}
	step := image.Write{Image: image.Raw(ones{}, 1<<20), From: "disk.raw", Device: "/dev/v", Check: func() error { return meet(checking, flushing) }}
	if err := step.Do(t.Context(), tapeHost{device: d}); err != nil {
		t.Error(err)
	}
}
