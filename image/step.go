package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Write writes a disk to a device that reads as zeros, as a new volume does: what is a hole is
// not written. Whose step it is makes the device, and removes it if this fails.
//
// Guess volume-takes-writes: what is written to /dev/zvol/rdsk/DATASET of a new volume, at any sector,
// is there once the device was synced and closed, and the rest reads as zeros (zvol_write of
// usr/src/uts/common/fs/zfs/zvol.c).
// Check: `sledctl image import FILE --name a; sledctl image export a OUT; cmp FILE OUT`
type Write struct {
	Image  *Image
	From   string // the file, for messages
	Device string
	// Check, if set, is asked when all was written: an error of its own fails the step.
	Check func() error
	// Progress, if set, is told how much of the disk is done, in bytes.
	Progress func(done int64)
}

// Verb names the step.
func (Write) Verb() string { return "image.write" }

// Limit is the operator's: how long a disk takes, its size decides. What is interrupted
// is given up at once.
func (Write) Limit() (most time.Duration, waits bool) { return 0, true }

// Undo is nil: what was written goes with the device.
func (Write) Undo() any { return nil }

func (s Write) what() string {
	return fmt.Sprintf("the disk of %s, %d bytes without its holes", s.From, s.Image.Size)
}

// Explain is one line, for all that is written.
func (s Write) Explain() []host.Line { return []host.Line{host.DeviceLine(s.Device, s.what())} }

// Do writes it. Errors: *Refused for what turns out to be wrong with the file; those of reading
// it, and of the device.
func (s Write) Do(ctx context.Context, h host.Host) error {
	device, err := host.OpenDevice(h.Files(), s.Device, s.what())
	if err != nil {
		return fmt.Errorf("write to volume: %w", err)
	}
	flush := newFlusher(device.Sync)
	err = s.pour(ctx, device, flush)
	flush.end(err == nil)
	if err == nil && s.Check != nil {
		err = s.Check()
	}
	err = errors.Join(err, <-flush.ended)
	if err = errors.Join(err, device.Close()); err != nil {
		return fmt.Errorf("write the disk of %s: %w", s.From, err)
	}
	return nil
}

// pour writes all that is no hole.
func (s Write) pour(ctx context.Context, device io.WriterAt, flush *flusher) error {
	return s.Image.Walk(ctx, func(at, length int64, data []byte) error {
		if data != nil {
			if _, err := device.WriteAt(data, at); err != nil {
				return err
			}
			flush.wrote(len(data))
		}
		if s.Progress != nil {
			s.Progress(at + length)
		}
		return nil
	})
}
