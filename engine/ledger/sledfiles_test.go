package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host"
)

// route is the file system that a name is on, and its name there.
func (s *sled) route(name string) (*disk, host.Files, string) {
	for _, d := range s.disks {
		if rest, ok := strings.CutPrefix(name, d.mount); ok && d.mounted && (rest == "" || rest[0] == '/') {
			return d, d.files, "/" + strings.TrimPrefix(rest, "/")
		}
	}
	return nil, s.ram, name
}

// change counts a change of the disk, and decides whether it is made.
func (d *disk) change(op string, do func() error) error {
	if d == nil {
		return do()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.note != nil {
		d.note(op)
	}
	if d.budget != 0 {
		d.budget--
		return do()
	}
	err := d.fault()
	switch {
	case err == nil:
		return do()
	case errors.Is(err, errDoneFirst):
		_ = do()
	}
	return &fs.PathError{Op: op, Path: d.mount, Err: err}
}

// errDoneFirst is a kill right after the change.
var errDoneFirst = fmt.Errorf("%w after the change", errKilled)

// failing makes the disk fail from its nth change on: with err, or, if first,
// after that one change was made.
func (d *disk) failing(n int, err error, first bool) {
	d.budget = n
	d.fault = func() error {
		if first {
			first = false
			return errDoneFirst
		}
		return err
	}
}

// working removes the fault.
func (d *disk) working() { d.budget = -1 }

// mark puts the disk's device into an Info.
func (d *disk) mark(info host.Info, err error) (host.Info, error) {
	if d != nil {
		info.Device = d.device
		if d.inode != 0 {
			info.Inode = d.inode
		}
	}
	return info, err
}

func (s *sled) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	d, files, rest := s.route(name)
	var in host.File
	open := func() (err error) {
		in, err = files.Open(rest, flag, perm)
		return err
	}
	if flag == 0 {
		if err := open(); err != nil {
			return nil, err
		}
	} else if err := d.change("open", open); err != nil {
		return nil, err
	}
	return &sledFile{in, d}, nil
}

func (s *sled) Append(name string, data []byte) error {
	d, files, rest := s.route(name)
	if d == nil && s.note != nil {
		s.note()
	}
	err := d.change("append", func() error { return files.Append(rest, data) })
	if errors.Is(err, errHalf) {
		_ = files.Append(rest, data[:len(data)/2])
	}
	return err
}

// errHalf is a disk that is full after half of an append.
var errHalf = fmt.Errorf("half of it: %w", syscall.ENOSPC)

func (s *sled) Rename(from, to string) error {
	d, files, rest := s.route(from)
	other, _, target := s.route(to)
	if d != other {
		return &fs.PathError{Op: "rename", Path: from, Err: syscall.EXDEV}
	}
	if d == nil && s.note != nil {
		s.note()
	}
	return d.change("rename", func() error { return files.Rename(rest, target) })
}

func (s *sled) Remove(name string) error {
	d, files, rest := s.route(name)
	if d == nil && s.note != nil && path.Base(name) == stampName {
		s.note()
	}
	return d.change("remove", func() error { return files.Remove(rest) })
}

func (s *sled) Mkdir(name string, perm fs.FileMode) error {
	d, files, rest := s.route(name)
	return d.change("mkdir", func() error { return files.Mkdir(rest, perm) })
}

func (s *sled) Chmod(name string, mode fs.FileMode) error {
	d, files, rest := s.route(name)
	return d.change("chmod", func() error { return files.Chmod(rest, mode) })
}

func (s *sled) ReadDir(name string) ([]host.Info, error) {
	_, files, rest := s.route(name)
	infos, err := files.ReadDir(rest)
	for i, info := range infos {
		for _, d := range s.disks {
			if d.mounted && path.Dir(d.mount) == path.Join(name, info.Name) {
				infos[i].Device = d.device
			}
		}
	}
	return infos, err
}

func (s *sled) Stat(name string) (host.Info, error) {
	d, files, rest := s.route(name)
	return d.mark(files.Stat(rest))
}

func (s *sled) Sync(name string) error {
	d, files, rest := s.route(name)
	return d.change("sync", func() error { return files.Sync(rest) })
}

func (s *sled) SyncDir(name string) error {
	d, files, rest := s.route(name)
	return d.change("syncdir", func() error { return files.SyncDir(rest) })
}

func (s *sled) Lock(ctx context.Context, name string, mode host.LockMode) (host.Lock, error) {
	return s.ram.Lock(ctx, name, mode)
}

func (s *sled) In(string) (host.Files, error) { return nil, errors.ErrUnsupported }

// sledFile is an open file of a disk.
type sledFile struct {
	host.File
	disk *disk
}

func (f *sledFile) Write(p []byte) (n int, err error) {
	err = f.disk.change("write", func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *sledFile) Sync() error { return f.disk.change("sync", f.File.Sync) }

func (f *sledFile) Stat() (host.Info, error) { return f.disk.mark(f.File.Stat()) }
