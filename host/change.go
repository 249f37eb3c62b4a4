package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/sledctl/sledctl/host/fault"
)

// StillRunningError is a command that changes something and had not ended when
// its context did. It goes on; its locks are free when it has ended.
type StillRunningError struct {
	PID     int // also its process group
	Command Command
	Output  string // the file that holds its standard output while it runs
	Err     error  // the context's
}

// Error names the process and the command line.
func (e *StillRunningError) Error() string {
	return fmt.Sprintf("%s: %v: process %d (%s)", e.Command.Program, ErrStillRunning, e.PID, e.Command.Shell())
}

func (*StillRunningError) Kind() fault.Kind { return fault.Deadline }

// Unwrap gives ErrStillRunning and the context's error.
func (e *StillRunningError) Unwrap() []error { return []error{ErrStillRunning, e.Err} }

// startKey carries the function that WithStart was given.
type startKey struct{}

// WithStart returns a context in which started is called whenever a command
// that changes something has become a process, with its process group. The
// holder of a lock writes the group into the lock's file, so that processes
// that wait can name it after sledctl was killed.
func WithStart(ctx context.Context, started func(group int, c Command)) context.Context {
	return context.WithValue(ctx, startKey{}, started)
}

// change runs a command that changes something, and does not wait beyond the
// context.
func (h *Illumos) change(ctx context.Context, c Command, cmd *exec.Cmd) (Result, error) {
	out, err := h.openOutput(cmd.Args[0], c.Stdin)
	if err == nil && c.Input != nil {
		err = out.openPipe()
	}
	if err != nil {
		return Result{}, fmt.Errorf("running %s: %w", c.Program, err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = out.stdin(), out.stdout, out.stderr
	cmd.ExtraFiles = inherited(ctx)
	if err := cmd.Start(); err != nil {
		out.close()
		return Result{}, fmt.Errorf("running %s: %w", c.Program, err)
	}
	waits := ctx
	if c.Input != nil { // it ends without its input, and has a moment for that
		var release func()
		waits, release = lingering(ctx, inputGrace)
		defer release()
		out.feed(ctx, c.Input)
	}
	if started, ok := ctx.Value(startKey{}).(func(int, Command)); ok {
		started(cmd.Process.Pid, c)
	}
	type end struct {
		result Result
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		result, err := finish(c, cmd, out)
		ended <- end{result, err}
	}()
	select {
	case e := <-ended:
		return e.result, e.err
	case <-waits.Done():
		return Result{}, &StillRunningError{PID: cmd.Process.Pid, Command: c, Output: out.stdout.Name(), Err: ctx.Err()}
	}
}

// finish waits for the command, however long it takes.
func finish(c Command, cmd *exec.Cmd, out *output) (Result, error) {
	defer out.close()
	exit, err := exitOf(cmd, cmd.Wait())
	if err != nil {
		return Result{}, fmt.Errorf("running %s: %w", c.Program, err)
	}
	result, err := out.result(c)
	result.Exit = exit
	if broken := out.broken(exit); broken != nil {
		err = errors.Join(err, &InputError{Program: c.Program, Err: broken})
	}
	return result, err
}

// InputError is the input of a command that ended before it was all read. The command has ended, too; its
// result says how.
type InputError struct {
	Program string
	Err     error // the reader's, or why the context has ended
}

// Error names the command.
func (e *InputError) Error() string {
	return fmt.Sprintf("input of %s ended early: %v", e.Program, e.Err)
}

func (*InputError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *InputError) Unwrap() error { return e.Err }

// inputGrace is how long a command may take that has lost its input: what it has half made goes.
const inputGrace = 10 * time.Second

// lingering ends so long after a context.
func lingering(ctx context.Context, grace time.Duration) (context.Context, func()) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return later, func() { stop(); cancel() }
}

// inherited are the descriptors of the context's locks.
//
// Guess zoneadmd-closes-descriptors: zoneadmd closes every descriptor that it inherited, the lock's
// among them, when it becomes a daemon.
// Check: after `sledctl instance ensure web1`: `pfiles $(pgrep zoneadmd)`, and an `ensure` at once
// says nothing of exit 6
// State: settled by usr/src/cmd/zoneadmd/zoneadmd.c:2078, 2145
//
// Guess hook-keeps-no-lock: no brand's hook leaves a process behind that keeps the lock's
// descriptor.
// Check: `sledctl instance ensure web1` twice, one right after the other: no exit 6
func inherited(ctx context.Context) []*os.File {
	var files []*os.File
	for _, l := range locksOf(ctx) {
		if f, ok := l.(interface{ File() *os.File }); ok && f.File() != nil {
			files = append(files, f.File())
		}
	}
	return files
}
