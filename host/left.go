package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host/fault"
)

// LeftError is a step that failed and could not take back what it had made: its
// object may be there, half made.
type LeftError struct {
	Cause error // why the step failed
	Err   error // why something is left
}

// Error tells both.
func (e *LeftError) Error() string {
	return fmt.Sprintf("%v (and what it left could not be removed: %v)", e.Cause, e.Err)
}

func (*LeftError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives both.
func (e *LeftError) Unwrap() []error { return []error{e.Cause, e.Err} }

// CleanUp undoes what a step left half done when it failed with cause, and returns
// cause. It may take as long as within, also if ctx has ended. The error is a
// *LeftError if undo fails with anything but ErrNotFound.
func CleanUp(ctx context.Context, within time.Duration, cause error, undo func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := undo(ctx); err != nil && !errors.Is(err, ErrNotFound) {
		return &LeftError{Cause: cause, Err: err}
	}
	return cause
}
