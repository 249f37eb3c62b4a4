package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host/fault"
)

// LeftoverError is a step that failed and could not take back what it had made: its
// object may be there, half made.
type LeftoverError struct {
	Cause error // why the step failed
	Err   error // why something is left
}

// Error tells both.
func (e *LeftoverError) Error() string {
	return fmt.Sprintf("%v (and what it left could not be removed: %v)", e.Cause, e.Err)
}

func (*LeftoverError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives both.
func (e *LeftoverError) Unwrap() []error { return []error{e.Cause, e.Err} }

// CleanUp undoes what a step left half done when it failed with cause, and returns
// cause. It may take as long as within, also if ctx has ended. The error is a
// *LeftoverError if undo fails with anything but ErrNotFound.
func CleanUp(ctx context.Context, within time.Duration, cause error, undo func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := undo(ctx); err != nil && !errors.Is(err, ErrNotFound) {
		return &LeftoverError{Cause: cause, Err: err}
	}
	return cause
}
