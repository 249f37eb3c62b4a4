package terminal

import (
	"context"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// lookEvery is how often, in milliseconds, WhileRead looks whether it is still wanted.
const lookEvery = 250

// WhileRead returns a context that ends as soon as no process reads the stream any longer: one that
// follows something silent would not notice before it has something to write. The cause is
// syscall.EPIPE then, which Failed returns too.
func (s *Stream) WhileRead(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if s.file != nil {
		go func() {
			for ctx.Err() == nil {
				look := []unix.PollFd{{Fd: int32(s.file.Fd())}} // what is asked for anyway: whether the other end is gone
				if _, err := unix.Poll(look, lookEvery); err != nil && !errors.Is(err, unix.EINTR) {
					return
				}
				if look[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
					var gone error = syscall.EPIPE
					s.failed.CompareAndSwap(nil, &gone)
					cancel(gone)
				}
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}
