package zfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host"
)

// How long what is busy is left alone: twice as long each time.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// patiently repeats what is host.ErrBusy until the context ends. Attempts are
// counted from 0.
//
// Guess free-after-halt: a file system is free within seconds after its zone was halted: what is
// busy is tried again, with pauses from 20 ms to 1 s, until the step's deadline.
// Check: `sledctl trace --slowest 5` after `instance stop`
func patiently(ctx context.Context, try func(attempt int) error) error {
	began := time.Now()
	pause := firstPause
	for attempt := 0; ; attempt++ {
		err := try(attempt)
		if !errors.Is(err, host.ErrBusy) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: busy for %v: %w", err, time.Since(began).Round(time.Millisecond), context.Cause(ctx))
		}
		pause = min(2*pause, longestPause)
	}
}

// cleanUpTime is what a step that failed has for taking back what it made,
// beyond the time of its context.
const cleanUpTime = 60 * time.Second

// cleanUp takes back what a failed step has left and tells both errors if that
// fails too. It must not depend on the step's context, which may be why it failed.
func cleanUp(ctx context.Context, cause error, undo func(context.Context) error) error {
	return host.CleanUp(ctx, cleanUpTime, cause, undo)
}
