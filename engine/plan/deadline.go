package plan

import (
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host/fault"
)

// Limited is a Step that may take longer than a minute, or that only waits. Its
// packages meet this interface without importing it, and say where their figures come
// from: they are several times the slowest published durations, because a deadline that
// fires leaves work behind.
type Limited interface {
	// Limit is how long the step may take (0: as long as the operator allows), and
	// whether it only waits: then it is abandoned at once when the run ends early. One
	// that changes the host is let finish.
	Limit() (most time.Duration, waits bool)
}

func limitOf(s Step) (most time.Duration, waits bool) {
	if limited, ok := s.(Limited); ok {
		return limited.Limit()
	}
	return time.Minute, false
}

// UndoTime is how long taking back may last, beyond the run's own deadline.
const UndoTime = time.Minute

// LimitError is a step that took longer than its kind may, however much time the
// operator allows.
type LimitError struct {
	Verb  string
	Limit time.Duration
	Err   error
}

// Error is the step's, which says how far it came.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%v (%s may take %s)", e.Err, e.Verb, e.Limit)
}

// Unwrap gives it.
func (e *LimitError) Unwrap() error { return e.Err }

func (*LimitError) Kind() fault.Kind { return fault.Deadline }
