package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/commands/progress"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/failure"
)

// ErrInterrupted is the cause of a context that a signal ended.
var ErrInterrupted error = interruption{}

type interruption struct{}

// Error says what has happened.
func (interruption) Error() string { return "interrupted by a signal" }

// Is has it be context.Canceled.
func (interruption) Is(target error) bool { return target == context.Canceled }

// interruptedError is an error because of which a signal was, with what was being
// done, if it says more.
type interruptedError struct{ err error }

func (e *interruptedError) Error() string {
	if text := e.err.Error(); text != ErrInterrupted.Error() && text != context.Canceled.Error() {
		return "interrupted: " + text
	}
	return ErrInterrupted.Error()
}
func (e *interruptedError) Unwrap() error { return e.err }

// oneSignal is how long signals are one and the same: timeout(1) sends its
// second within a millisecond, to the process and then to its group.
const oneSignal = time.Second

// Interruptible has the signals of this process end the run. A pipe that nobody
// reads any more is an error of who writes, not the end of the process. For each of
// the signals the runtime waits for a thread; meanwhile, the run begins, and what changes the
// sled waits for Env.listening. Until then a signal ends the process, as while it is loaded.
func Interruptible(parent context.Context, e *Env) (context.Context, context.CancelFunc) {
	signals, pipes, listening := make(chan os.Signal, 2), make(chan os.Signal, 1), make(chan struct{})
	e.listening = listening
	go func() {
		defer close(listening)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		if !signal.Ignored(syscall.SIGHUP) { // nohup(1) has it ignored
			signal.Notify(signals, syscall.SIGHUP)
		}
		signal.Notify(pipes, syscall.SIGPIPE)
	}()
	return e.Interruptible(parent, signals, os.Exit)
}

// Interruptible ends the context at the first of the signals: the run ends at the
// next step boundary, and what it has made is undone. The next one has exit end the
// process at once; the intent stays, and the next run answers for it. Both say so.
func (e *Env) Interruptible(parent context.Context, signals <-chan os.Signal, exit func(code int)) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	p, done := e.Progress, make(chan struct{})
	go func() {
		select {
		case sig := <-signals:
			p.interrupted(signalName(sig))
			cancel(ErrInterrupted)
		case <-ctx.Done():
			return
		}
		first := time.Now()
		for {
			select {
			case sig := <-signals:
				if time.Since(first) >= oneSignal {
					exit(p.abandoned(signalName(sig)))
					return
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, sync.OnceFunc(func() { close(done); cancel(nil) })
}

func signalName(sig os.Signal) string {
	return map[os.Signal]string{os.Interrupt: "^C", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}[sig]
}

// interrupted says at once what is done about the first signal.
func (p *Progress) interrupted(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.follows {
		return
	}
	p.say(p.board.Interrupted(name, p.moves))
}

// say writes a line that stays, wrapped at words on a terminal.
func (p *Progress) say(line string) {
	const indent = "    "
	line = terminal.Printable(line)
	if p.streams.Err.Terminal {
		line = strings.Join(terminal.Wrapped(line, p.streams.Err.Width()-len(indent)), "\n"+indent)
	}
	_ = p.line().Println(line)
}

// abandoned says what the second signal leaves, and is the exit code.
func (p *Progress) abandoned(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line().Set("")
	lines, left := progress.Abandoned(name, p.board.All())
	for _, line := range lines {
		p.say(line)
	}
	if left {
		return failure.ExitPartial
	}
	return failure.ExitInterrupted
}

// unprintedError is a result that could not be printed, of a command that has
// done what it was asked for.
type unprintedError struct{ err error }

func (e *unprintedError) Error() string {
	return "it is done, but its result could not be printed: " + e.err.Error()
}

func (*unprintedError) Kind() fault.Kind { return fault.Partial }
func (e *unprintedError) Unwrap() error  { return e.err }

// Hint says that nothing is to be repaired.
func (e *unprintedError) Hint() string {
	return "run the same command again to print the result: the change is made"
}

// unprinted tells an output that failed from a command that failed. A command
// that only looks ends as if the pipe that nobody reads had killed it.
func (e *Env) unprinted(err error) error {
	failed := e.Streams.Out.Failed()
	switch {
	case failed == nil, err != nil && !errors.Is(err, failed) && !strings.Contains(err.Error(), failed.Error()):
		return err
	case e.Progress.changed():
		return &unprintedError{failed}
	case e.book.changed(context.Background()): // what was asked for is a record alone
		return &unprintedError{failed}
	case errors.Is(failed, syscall.EPIPE):
		return ExitStatus(128 + int(syscall.SIGPIPE))
	}
	return fmt.Errorf("the result could not be printed: %w", failed)
}
