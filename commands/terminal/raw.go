package terminal

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Raw lets every key through as it is, ^C too, until restore is called. It may
// be called again, and from anywhere.
func (i Input) Raw() (restore func(), err error) {
	if i.file == nil { // typed in a test
		return func() {}, nil
	}
	fd := int(i.file.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { _ = term.Restore(fd, before) }), nil
}

// ReadWithin reads what is typed within a time; 0 bytes and no error: nothing was.
func (i Input) ReadWithin(p []byte, wait time.Duration) (int, error) {
	if i.file == nil {
		return i.Read(p)
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(i.file.Fd()), Events: unix.POLLIN}}, int(wait.Milliseconds()))
	if n == 0 || errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return i.Read(p)
}
