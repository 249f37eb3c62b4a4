package hosttest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/sledctl/sledctl/host"
)

// memFile is an open file in memory. It stays usable when its name is gone.
type memFile struct {
	files  *MemoryFiles
	name   string
	place  place
	flag   int
	offset int
	closed bool
}

const accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

func (f *memFile) error(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return f.files.pathError(op, f.name, err)
}

// usable is called under the lock.
func (f *memFile) usable(op string, not int) error {
	switch {
	case f.closed:
		return f.error(op, fs.ErrClosed)
	case f.flag&accessMode == not:
		return f.error(op, syscall.EBADF)
	}
	return nil
}

func (f *memFile) Read(p []byte) (int, error) {
	f.files.tree.mu.Lock()
	defer f.files.tree.mu.Unlock()
	n, err := f.read(p, f.offset)
	f.offset += n
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.files.tree.mu.Lock()
	defer f.files.tree.mu.Unlock()
	return f.read(p, int(off))
}

func (f *memFile) read(p []byte, off int) (int, error) {
	if err := f.usable("read", os.O_WRONLY); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, f.error("read", syscall.EINVAL)
	}
	data := f.place.node.data
	n := copy(p, data[min(off, len(data)):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	fault := f.files.fail("write", f.name)
	if short, torn := errors.AsType[*ShortWrite](fault); torn {
		p = p[:min(short.Written, len(p))]
	} else if fault != nil {
		return 0, f.error("write", fault)
	}
	f.files.tree.mu.Lock()
	defer f.files.tree.mu.Unlock()
	if err := f.usable("write", os.O_RDONLY); err != nil {
		return 0, err
	}
	if f.flag&os.O_APPEND != 0 {
		f.offset = len(f.place.node.data)
	}
	f.files.tree.write(f.place.node, f.offset, p)
	f.offset += len(p)
	return len(p), f.error("write", fault)
}

func (f *memFile) WriteAt(p []byte, at int64) (int, error) {
	if fault := f.files.fail("write", f.name); fault != nil {
		return 0, f.error("write", fault)
	}
	f.files.tree.mu.Lock()
	defer f.files.tree.mu.Unlock()
	if err := f.usable("write", os.O_RDONLY); err != nil {
		return 0, err
	}
	f.files.tree.write(f.place.node, int(at), p)
	return len(p), nil
}

func (f *memFile) Sync() error {
	if err := f.files.fail("sync", f.name); err != nil {
		return f.error("sync", err)
	}
	f.files.tree.mu.Lock()
	defer f.files.tree.mu.Unlock()
	if f.closed {
		return f.error("sync", fs.ErrClosed)
	}
	f.files.tree.sync(f.place.node)
	return nil
}

func (f *memFile) Stat() (host.Info, error) {
	f.files.tree.mu.Lock()
	defer f.files.tree.mu.Unlock()
	if f.closed {
		return host.Info{}, f.error("stat", fs.ErrClosed)
	}
	return f.place.info(baseOf(f.name)), nil
}

func (f *memFile) Close() error {
	f.files.tree.mu.Lock()
	defer f.files.tree.mu.Unlock()
	if f.closed {
		return f.error("close", fs.ErrClosed)
	}
	f.closed = true
	return nil
}
