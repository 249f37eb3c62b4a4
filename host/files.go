package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/host/lock"
)

// Files is a file system with absolute, slash-separated names. Errors satisfy
// errors.Is with fs.ErrNotExist, fs.ErrExist, syscall.ENOSPC, syscall.EROFS
// and so on, and are *fs.PathError. Implementations are safe for concurrent
// use: Dir (a directory of the real one), those of package sim, and for tests
// those in memory of package hosttest.
type Files interface {
	// Open opens a file with os.O_ flags; perm matters when it is created.
	// Directories cannot be opened.
	Open(name string, flag int, perm fs.FileMode) (File, error)
	// Append adds data to the end of an existing file with one write(2).
	Append(name string, data []byte) error
	Rename(from, to string) error
	Remove(name string) error // a file, a link or an empty directory
	Mkdir(name string, perm fs.FileMode) error
	Chmod(name string, mode fs.FileMode) error
	ReadDir(name string) ([]Info, error) // sorted by name
	Stat(name string) (Info, error)      // does not follow a link at the end
	Sync(name string) error              // fsync(2) of a file
	SyncDir(name string) error           // fsync(2) of a directory
	// Lock takes an flock(2) on the file, made if it is absent, and waits for it
	// until ctx is done. A lock ends with its holder's process. The holder of an
	// exclusive lock may remove the file as its last act: the next one that waits
	// creates the file again.
	Lock(ctx context.Context, name string, mode LockMode) (Lock, error)
	// In is a view whose names cannot leave dir, links included. Its names are
	// absolute again: "/etc" there is dir/etc here.
	In(dir string) (Files, error)
}

// File is an open file.
type File interface {
	io.ReadWriteCloser
	io.ReaderAt
	io.WriterAt // of a device that OpenDevice opened
	Sync() error
	Stat() (Info, error)
}

// Info is what Stat returns.
type Info struct {
	Name   string // base name
	Size   int64
	Mode   fs.FileMode
	Time   time.Time // last change of the contents
	Device uint64    // differs between a mounted dataset and its parent
	Inode  uint64
}

// LockMode says whether others may hold the lock too.
type LockMode int

// The modes. The Try ones do not wait: ErrLocked at once.
const (
	LockExclusive LockMode = iota
	LockShared
	TryExclusive
	TryShared
)

// Exclusive reports whether no other holder may be there at the same time.
func (m LockMode) Exclusive() bool { return m == LockExclusive || m == TryExclusive }

// Try reports whether a taken lock is an error instead of a wait.
func (m LockMode) Try() bool { return m == TryExclusive || m == TryShared }

// ErrLocked is returned by the Try modes, and names nobody: what the holder
// wrote into the file does.
var ErrLocked = lock.ErrTaken

// Lock is a held lock.
type Lock interface {
	// Unlock releases it. Unlocking twice is harmless.
	Unlock() error
	// Write replaces the text about the holder in the lock's file.
	Write(data []byte) error
}

// lockKey carries a lock to the commands that run under it.
type lockKey struct{}

// WithLock returns a context whose mutating commands inherit l: the illumos
// host hands them its descriptor, so that the lock is held until the last of
// them has ended, also when sledctl was killed.
func WithLock(ctx context.Context, l Lock) context.Context {
	return context.WithValue(ctx, lockKey{}, append(locksOf(ctx), l))
}

func locksOf(ctx context.Context) []Lock {
	held, _ := ctx.Value(lockKey{}).([]Lock)
	return held[:len(held):len(held)]
}

// Retain keeps the locks of ctx (see WithLock) from being freed, though their
// holder unlocks them, until release is called. A host calls it for a command
// that still runs after its caller stopped waiting, if the command cannot
// inherit a descriptor.
func Retain(ctx context.Context) (release func()) {
	var all []func()
	for _, l := range locksOf(ctx) {
		if r, ok := l.(interface{ Retain() func() }); ok {
			all = append(all, r.Retain())
		}
	}
	return func() {
		for _, release := range all {
			release()
		}
	}
}

// maxFile bounds what ReadFile reads, in bytes, and maxGrowth what it reads
// beyond the size that the file had: a device has none, and never ends.
const (
	maxFile   = 1 << 30
	maxGrowth = 64 << 20
)

// ErrTooLarge is a file that is not read because of its size.
var ErrTooLarge = errors.New("file is too large to be read")

// ReadFile reads a whole file, of at most 1 GiB. Errors: ErrTooLarge; those of
// Files.
func ReadFile(f Files, name string) ([]byte, error) { return ReadAtMost(f, name, maxFile) }

// ReadAtMost reads a whole file, of at most that many bytes when it is opened.
// Errors: ErrTooLarge; those of Files.
func ReadAtMost(f Files, name string, most int64) ([]byte, error) {
	in, err := f.Open(name, 0, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size > most {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrTooLarge}
	}
	// One more than there is, so that the end is seen without growing.
	data := make([]byte, 0, info.Size+1)
	for {
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if int64(len(data)) > info.Size+maxGrowth {
			return nil, &fs.PathError{Op: "read", Path: name, Err: ErrTooLarge}
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// MkdirAll makes name and its missing parents.
func MkdirAll(f Files, name string, perm fs.FileMode) error {
	if w, ok := f.(wholeFiles); ok {
		return w.mkdirAll(name, perm)
	}
	return mkdirAll(f, name, perm)
}

func mkdirAll(f Files, name string, perm fs.FileMode) error {
	err := f.Mkdir(name, perm)
	if errors.Is(err, fs.ErrNotExist) && name != "/" {
		if err := mkdirAll(f, path.Dir(name), 0o755); err != nil {
			return err
		}
		err = f.Mkdir(name, perm)
	}
	if errors.Is(err, fs.ErrExist) {
		if info, serr := f.Stat(name); serr == nil && info.Mode.IsDir() {
			return nil
		}
	}
	return err
}

// Tail is the end of a regular file, at most limit bytes of it. What is none is
// not opened, and nobody waits for a writer, should it have become a pipe since: in
// a zone a guest may have planted it.
func Tail(f Files, name string, limit int64) ([]byte, Info, error) {
	return section(f, name, func(size int64) int64 { return max(size-limit, 0) }, limit)
}

// After is Tail from an offset on: at most limit bytes.
func After(f Files, name string, offset, limit int64) ([]byte, Info, error) {
	return section(f, name, func(int64) int64 { return offset }, limit)
}

// Guess nonblock-reads-logs: opening a log with O_NONBLOCK reads it as without.
// Check: any bundle
func section(f Files, name string, from func(size int64) int64, limit int64) ([]byte, Info, error) {
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
	data, err := io.ReadAll(io.NewSectionReader(in, from(info.Size), limit))
	return data, info, err
}

// accessMode are the bits of Open's flag that say whether a file is read or
// written.
const accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR
