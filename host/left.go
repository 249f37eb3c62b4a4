package host

import (
	"fmt"

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
