package instance

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// InsufficientMemoryError is memory that the VMM reservoir does not have: Propolis takes a
// guest's memory from it when the VM is made, which would fail.
type InsufficientMemoryError struct {
	Memory uint64
	State  reservoir.State
}

// Error shows what there is.
func (e *InsufficientMemoryError) Error() string {
	return fmt.Sprintf(
		"memory is %d MiB, and of the VMM reservoir's %d MiB %d MiB are free", e.Memory>>20, e.State.Size()>>20,
		e.State.Free>>20,
	)
}

func (*InsufficientMemoryError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (e *InsufficientMemoryError) Unwrap() error { return host.ErrRefused }

// Hint says what would make room.
func (e *InsufficientMemoryError) Hint() string {
	return "stop another instance, ask for less memory, or give the reservoir more: instance.reservoir, then sledctl bootstrap"
}

// observeReservoir asks the reservoir, where one is configured.
func observeReservoir(ctx context.Context, configured bool, h host.Host) (*reservoir.State, error) {
	if !configured {
		return nil, nil
	}
	state, err := reservoir.Query(ctx, h)
	return &state, err
}

// fits reports whether there is memory for a new life. What the instance's present
// one has is given back first.
func fits(spec record.Spec, room *reservoir.State, old record.Record, booted bool) error {
	if room == nil {
		return nil
	}
	free := room.Free
	if booted && old.Run != nil && old.Run.Ensured {
		free += old.Spec.Memory
	}
	if spec.Memory > free {
		return &InsufficientMemoryError{Memory: spec.Memory, State: *room}
	}
	return nil
}
