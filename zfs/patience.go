package zfs

import (
	"context"
	"time"

	"github.com/sledctl/sledctl/host"
)

// patiently repeats what is host.ErrBusy (host.Patiently).
//
// Guess free-after-halt: a file system is free within seconds after its zone was halted: what is
// busy is tried again, with pauses from 20 ms to 1 s, until the step's deadline.
// Check: `sledctl trace --slowest 5` after `instance stop`
func patiently(ctx context.Context, try func(attempt int) error) error {
	return host.Patiently(ctx, try)
}

// cleanUpTime is what a step that failed has for taking back what it made,
// beyond the time of its context.
const cleanUpTime = 60 * time.Second

// cleanUp takes back what a failed step has left and tells both errors if that
// fails too. It must not depend on the step's context, which may be why it failed.
func cleanUp(ctx context.Context, cause error, undo func(context.Context) error) error {
	return host.CleanUp(ctx, cleanUpTime, cause, undo)
}

// unlessDone is nil where a command that failed has done its work all the same: it may have been
// killed behind it. The look has the time of a cleaning up, as the step's own may be over.
func unlessDone(ctx context.Context, cause error, done func(context.Context) bool) error {
	if !isCommandError(cause) {
		return cause
	}
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer release()
	if done(ctx) {
		return nil
	}
	return cause
}
