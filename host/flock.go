package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sledctl/sledctl/host/lock"
)

// The pauses between two looks at a lock that another process holds. flock(2)
// cannot be waited for and given up; within one process nobody polls. They grow
// with how long it was waited already: of many who wait one looks soon, and all of
// them together leave time to the one that holds it.
const (
	firstLockPause = 50 * time.Microsecond
	lastLockPause  = 32 * time.Millisecond
	lockPauses     = 8 // a pause is this part of what was waited
)

// fileLock is an flock(2) on an open file. It is never undone by LOCK_UN, only
// by closing: the lock belongs to the open file description, which commands
// that run under it have inherited, and it must last until they end.
type fileLock struct {
	*lock.Held
	file *os.File
}

func newFileLock(file *os.File, leave func()) *fileLock {
	l := &fileLock{file: file}
	l.Held = lock.NewHeld(func() error {
		defer leave()
		return file.Close()
	})
	return l
}

// Write replaces the text about the holder in the lock's file.
func (l *fileLock) Write(data []byte) error {
	if _, err := l.file.WriteAt(data, 0); err != nil {
		return err
	}
	return l.file.Truncate(int64(len(data)))
}

// File is what a command inherits, or nil if the lock is free.
func (l *fileLock) File() *os.File {
	if l.Free() {
		return nil
	}
	return l.file
}

// waitFlock takes the flock of an open file, against other processes.
func waitFlock(ctx context.Context, file *os.File, mode LockMode) error {
	how := unix.LOCK_NB | unix.LOCK_SH
	if mode.Exclusive() {
		how = unix.LOCK_NB | unix.LOCK_EX
	}
	for begun := time.Now(); ; {
		err := unix.Flock(int(file.Fd()), how)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return err
		case mode.Try():
			return ErrLocked
		}
		pause := min(max(firstLockPause, time.Since(begun)/lockPauses), lastLockPause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// lockTable has one fair lock per locked file, shared by Dir and its views.
type lockTable struct {
	mu   sync.Mutex
	fair map[string]*lock.Fair
}

func (t *lockTable) of(name string) *lock.Fair {
	t.mu.Lock()
	defer t.mu.Unlock()
	fair, ok := t.fair[name]
	if !ok {
		fair = &lock.Fair{}
		t.fair[name] = fair
	}
	return fair
}

func (d *dirFiles) Lock(ctx context.Context, name string, mode LockMode) (Lock, error) {
	fair := d.locks.of(d.name(name))
	if err := fair.Acquire(ctx, mode.Exclusive(), mode.Try()); err != nil {
		return nil, d.pathError("lock", name, err)
	}
	file, err := d.lockNamed(ctx, name, mode)
	if err != nil {
		fair.Release(mode.Exclusive())
		return nil, err
	}
	return newFileLock(file, func() { fair.Release(mode.Exclusive()) }), nil
}

// lockNamed locks the file that has the name when it is locked: who held it
// before may have removed it.
func (d *dirFiles) lockNamed(ctx context.Context, name string, mode LockMode) (*os.File, error) {
	for {
		var file *os.File
		err := d.do("lock", name, func(t tree) (err error) {
			file, err = t.OpenFile(rel(name), os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := waitFlock(ctx, file, mode); err != nil {
			file.Close()
			return nil, d.pathError("lock", name, err)
		}
		locked, err := file.Stat()
		if err == nil {
			err = d.do("lock", name, func(t tree) error {
				named, err := t.Lstat(rel(name))
				if err == nil && !os.SameFile(locked, named) {
					err = fs.ErrNotExist
				}
				return err
			})
		}
		if err == nil {
			return file, nil
		}
		file.Close()
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}
