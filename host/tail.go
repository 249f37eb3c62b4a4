package host

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// Tail is the end of a regular file, at most limit bytes of it. What is none is
// not opened, and nobody waits for a writer, should it have become a pipe since: in
// a zone a guest may have planted it.
func Tail(f Files, name string, limit int64) ([]byte, Info, error) {
	info, err := f.Stat(name)
	if err != nil {
		return nil, info, err
	}
	if !info.Mode.IsRegular() {
		return nil, info, fmt.Errorf("%s is no regular file", name)
	}
	in, err := f.Open(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, info, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.NewSectionReader(in, max(info.Size-limit, 0), limit))
	return data, info, err
}
