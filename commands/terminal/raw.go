package terminal

import (
	"sync"

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
