package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
)

// RefusedError is a change that sledctl did not make, with what would allow it.
type RefusedError struct {
	Err    error
	Advice string
}

func (e *RefusedError) Error() string { return e.Err.Error() }

func (*RefusedError) Kind() fault.Kind { return fault.Refused }
func (e *RefusedError) Unwrap() error  { return e.Err }

// Hint is the advice: it comes before the hint of what is wrapped.
func (e *RefusedError) Hint() string { return e.Advice }

// TimeoutError is a command whose --timeout passed.
type TimeoutError struct {
	Limit time.Duration
	Err   error
}

func (e *TimeoutError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("deadline of %s passed: %s", e.Limit.Round(time.Millisecond), Text(e.Err)), ": "+timeIsUp)
}

func (*TimeoutError) Kind() fault.Kind { return fault.Deadline }
func (e *TimeoutError) Unwrap() error  { return e.Err }

// timeIsUp and interrupted stand for the texts of package context.
const (
	timeIsUp    = "time is up"
	interrupted = "interrupted"
)

// Text returns the text of an error, in which sledctl's phrases replace those of
// package context.
func Text(err error) string {
	return strings.NewReplacer(context.DeadlineExceeded.Error(), timeIsUp, context.Canceled.Error(), interrupted).Replace(err.Error())
}

// reportedError is an error together with the reports of its operations.
type reportedError struct {
	err     error
	reports []operation.Report
}

func (e *reportedError) Error() string { return e.err.Error() }
func (e *reportedError) Unwrap() error { return e.err }

// WithReport keeps the reports of the operations next to the error, for Of.
func WithReport(err error, reports ...operation.Report) error {
	if err == nil {
		return nil
	}
	return &reportedError{err: err, reports: reports}
}

// is reports whether an error is, or wraps, one of a type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
