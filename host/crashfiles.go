package host

import (
	"context"
	"io/fs"
	"os"
	"path"
)

// crashFiles are the files of a crashing host.
type crashFiles struct {
	files Files
	*crash
}

func (f *crashFiles) error(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: ErrCrashed}
}

// change is a point: do is what happens there.
func (f *crashFiles) change(op, name string, do func() error) error {
	fate := f.point(op + " " + name)
	var err error
	if fate != before {
		err = do()
	}
	f.die(fate)
	if fate != alive {
		return f.error(op, name)
	}
	return err
}

// look is an operation that changes nothing.
func look[T any](f *crashFiles, op, name string, do func() (T, error)) (T, error) {
	if f.Crashed() {
		var none T
		return none, f.error(op, name)
	}
	return do()
}

func (f *crashFiles) Open(name string, flag int, perm fs.FileMode) (File, error) {
	return f.open(name, flag, func() (File, error) { return f.files.Open(name, flag, perm) })
}

func (f *crashFiles) openSecret(name string, flag int, line Line) (File, error) {
	return f.open(name, flag, func() (File, error) { return openSecret(f.files, name, flag, line) })
}

func (f *crashFiles) open(name string, flag int, inner func() (File, error)) (File, error) {
	var file File
	open := func() (err error) {
		file, err = inner()
		return err
	}
	var err error
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		err = f.change("open", name, open)
	} else {
		_, err = look(f, "open", name, func() (File, error) { return nil, open() })
	}
	if err != nil {
		if file != nil {
			file.Close()
		}
		return nil, err
	}
	return &crashFile{file, f, name}, nil
}

func (f *crashFiles) Append(name string, data []byte) error {
	return f.write("append", name, data, func(p []byte) error { return f.files.Append(name, p) })
}

// write is a change that can be done by half.
func (f *crashFiles) write(op, name string, data []byte, do func([]byte) error) error {
	fate := f.point(op + " " + name)
	var err error
	switch fate {
	case alive, after:
		err = do(data)
	case during:
		_ = do(data[:len(data)/2])
	}
	f.die(fate)
	if fate != alive {
		return f.error(op, name)
	}
	return err
}

func (f *crashFiles) Rename(from, to string) error {
	return f.change("rename", from, func() error { return f.files.Rename(from, to) })
}

func (f *crashFiles) Remove(name string) error {
	return f.change("remove", name, func() error { return f.files.Remove(name) })
}

// Mkdir is a point only where it makes the directory: how often steps that run side by
// side find that it is there, or that its parent is not, is a matter of luck.
func (f *crashFiles) Mkdir(name string, perm fs.FileMode) error {
	f.making.Lock()
	defer f.making.Unlock()
	_, missing := f.files.Stat(name)
	_, orphaned := f.files.Stat(path.Dir(name))
	if missing == nil || orphaned != nil {
		_, err := look(f, "mkdir", name, func() (Info, error) { return Info{}, f.files.Mkdir(name, perm) })
		return err
	}
	return f.change("mkdir", name, func() error { return f.files.Mkdir(name, perm) })
}

func (f *crashFiles) Chmod(name string, mode fs.FileMode) error {
	return f.change("chmod", name, func() error { return f.files.Chmod(name, mode) })
}

func (f *crashFiles) ReadDir(name string) ([]Info, error) {
	return look(f, "readdir", name, func() ([]Info, error) { return f.files.ReadDir(name) })
}

func (f *crashFiles) Stat(name string) (Info, error) {
	return look(f, "stat", name, func() (Info, error) { return f.files.Stat(name) })
}

func (f *crashFiles) Sync(name string) error {
	_, err := look(f, "sync", name, func() (Info, error) { return Info{}, f.files.Sync(name) })
	return err
}

func (f *crashFiles) SyncDir(name string) error {
	_, err := look(f, "syncdir", name, func() (Info, error) { return Info{}, f.files.SyncDir(name) })
	return err
}

// Lock also stops waiting at the crash.
func (f *crashFiles) Lock(ctx context.Context, name string, mode LockMode) (Lock, error) {
	if f.Crashed() {
		return nil, f.error("lock", name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.dead, cancel)()
	l, err := f.files.Lock(ctx, name, mode)
	if err == nil {
		f.onDeath(func() { _ = l.Unlock() })
	}
	if f.Crashed() {
		return nil, f.error("lock", name)
	}
	if err != nil {
		return nil, err
	}
	return &crashLock{l, f.crash}, nil
}

func (f *crashFiles) In(dir string) (Files, error) {
	return look(f, "open", dir, func() (Files, error) {
		in, err := f.files.In(dir)
		if err != nil {
			return nil, err
		}
		return &crashFiles{in, f.crash}, nil
	})
}

// crashFile is an open file, until the crash.
type crashFile struct {
	File
	files *crashFiles
	name  string
}

func (f *crashFile) Read(p []byte) (int, error) {
	return look(f.files, "read", f.name, func() (int, error) { return f.File.Read(p) })
}

func (f *crashFile) ReadAt(p []byte, off int64) (int, error) {
	return look(f.files, "read", f.name, func() (int, error) { return f.File.ReadAt(p, off) })
}

func (f *crashFile) Write(p []byte) (int, error) {
	n := 0
	err := f.files.write("write", f.name, p, func(p []byte) (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *crashFile) WriteAt(p []byte, at int64) (int, error) {
	n := 0
	err := f.files.write("write", f.name, p, func(p []byte) (err error) {
		n, err = f.File.WriteAt(p, at)
		return err
	})
	return n, err
}

func (f *crashFile) Sync() error {
	_, err := look(f.files, "sync", f.name, func() (int, error) { return 0, f.File.Sync() })
	return err
}

func (f *crashFile) Stat() (Info, error) {
	return look(f.files, "stat", f.name, func() (Info, error) { return f.File.Stat() })
}

// crashLock is a lock, until the crash. Commands inherit what is behind it.
type crashLock struct {
	Lock
	*crash
}

func (l *crashLock) Write(data []byte) error {
	if l.Crashed() {
		return ErrCrashed
	}
	return l.Lock.Write(data)
}

func (l *crashLock) Retain() func() {
	if r, ok := l.Lock.(interface{ Retain() func() }); ok {
		return r.Retain()
	}
	return func() {}
}

// File is what a command on a real host inherits.
func (l *crashLock) File() *os.File {
	if f, ok := l.Lock.(interface{ File() *os.File }); ok {
		return f.File()
	}
	return nil
}
