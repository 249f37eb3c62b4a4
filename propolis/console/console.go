// Package console is a session with a serial console that counts its bytes: a
// connection that breaks is made again from the byte at which it broke, so that
// what is shown is what the guest wrote, once and whole.
//
// Propolis names each byte of a console by its offset since the machine was
// made, keeps the first and the last mebibyte, and gives a stream from any
// offset that it still has (bin/propolis-server/src/lib/serial in
// oxidecomputer/propolis). A stream tells no offsets: so the one where it begins
// is always found before it is opened, and counted on from there.
package console

import (
	"context"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/host/fault"
)

// Line is the far end of a console.
type Line interface {
	// Find gives the offset at which a place is: the end, for one beyond it.
	// Errors: ErrAbsent; *LostError.
	Find(ctx context.Context, p Place) (offset uint64, err error)
	// Open streams what is written from an offset on.
	Open(ctx context.Context, offset uint64) (Stream, error)
	// Page reads some of what was written from an offset on; nothing at the end.
	// Errors are as Find's.
	Page(ctx context.Context, offset uint64) ([]byte, error)
}

// Stream is a connection to a console.
type Stream interface {
	// Read gives what is written next. Errors: ErrStopped; *MovedError; all
	// others mean that the connection broke.
	Read(ctx context.Context) ([]byte, error)
	// Write types. All or nothing of it was taken.
	Write(ctx context.Context, data []byte) error
	Close()
}

// Place is where to begin: at a byte since the machine was made, or so many
// back from the end.
type Place struct {
	Byte uint64
	Back bool
}

// Kept is how much of its end a console keeps at least, in bytes.
const Kept = 1 << 20

// How a console ends, or why there is none.
var (
	ErrStopped = errors.New("the machine has stopped")
	ErrAbsent  = errors.New("there is no machine")
)

// MovedError is a machine that has migrated: its console goes on at another
// server.
type MovedError struct {
	Destination string // IP:PORT
	Offset      uint64 // to go on from
}

// Error names the place.
func (e *MovedError) Error() string { return "the machine has migrated to " + e.Destination }

func (*MovedError) Kind() fault.Kind { return fault.Failed }

// LostError is a place whose output is no longer kept.
type LostError struct{ Place Place }

// Error names the place.
func (e *LostError) Error() string {
	if e.Place.Back {
		return fmt.Sprintf("the output %d bytes back is no longer kept", e.Place.Byte)
	}
	return fmt.Sprintf("the output from byte %d on is no longer kept", e.Place.Byte)
}

func (*LostError) Kind() fault.Kind { return fault.Failed }
