package node

import (
	"context"
	"time"
)

// Guard is the process on the sled that halts VMs once the lease is over.
type Guard interface {
	// Clock is the guard's clock, in nanoseconds.
	Clock() int64
	// Watch has it halt a run, too, before the run is started. The claim was read at a time
	// of the clock; what is left is how long the run may still be started.
	Watch(ctx context.Context, r Run, read int64) (left time.Duration, err error)
	// Renewed tells it that a renewal that was asked for at a time has succeeded.
	Renewed(ctx context.Context, asked int64) error
}
