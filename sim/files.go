package sim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// mountedFiles shows the sled's files as the kernel does: each mounted dataset
// is a device of its own, which nothing can be renamed into or out of, whose
// mountpoint is busy, which may be read-only, full, or have lost its disk; and
// disks are devices (devicefile.go).
type mountedFiles struct {
	host.Files
	dir    string // of a view: where it begins, else empty
	mounts *mountTable
}

var _ host.Files = (*mountedFiles)(nil)

// hidden is where the world keeps the contents of what is not mounted.
const hidden = "/.datasets"

func (f *mountedFiles) full(name string) string {
	if f.dir == "" && strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join("/", f.dir, name)
}

// check says where a name lies, unless it cannot be got at.
func (f *mountedFiles) check(op, name string) (at located, err error) {
	at = located{mount: mount{dir: "/", device: 1}, full: f.full(name)}
	err = f.mounts.judge(func(m moment) (err error) { at, err = m.check(op, at.full); return err })
	return at, named(err, name)
}

// change is the work of what writes, if nothing is in its way.
func (f *mountedFiles) change(op, name string, more int, do func() error) error {
	if err := f.mounts.judge(func(m moment) error { return m.change(op, f.full(name), more) }); err != nil {
		return named(err, name)
	}
	return do()
}

// entry is change for what makes or removes an entry of a directory.
func (f *mountedFiles) entry(op, name string, more int, do func() error) error {
	if err := f.mounts.judge(func(m moment) error { return m.entry(op, f.full(name), more) }); err != nil {
		return named(err, name)
	}
	return do()
}

// named is the error with the name as the caller has it.
func named(err error, name string) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		e.Path = name
	}
	return err
}

// emptyFile is what an entry of a directory takes.
const emptyFile = 512

func (f *mountedFiles) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	at, err := f.check("open", name)
	if err != nil {
		return nil, err
	}
	if deviceMode(at.full) != 0 {
		return f.openDevice(at.full, flag)
	}
	if volume := zfs.VolumeAt(at.full); volume != "" && f.there(name) {
		return f.openVolume(at.full, volume, flag)
	}
	var file host.File
	open := func() (err error) {
		file, err = f.Files.Open(name, flag, perm)
		return err
	}
	switch {
	case flag&os.O_CREATE != 0 && !f.there(name):
		err = f.entry("open", name, emptyFile, open)
	case flag&(os.O_WRONLY|os.O_RDWR) != 0:
		err = f.change("open", name, 0, open)
	default:
		err = open()
	}
	if err != nil {
		return nil, err
	}
	opened := &mountedFile{File: file, files: f, name: name}
	if info, err := file.Stat(); err == nil && flag&os.O_APPEND != 0 {
		opened.at = info.Size
	}
	return opened, nil
}

func (f *mountedFiles) there(name string) bool {
	_, err := f.Files.Stat(name)
	return err == nil
}

// Guess device-numbers-differ: device numbers of datasets: only their being different is relied on.
// Check: `stat -c %d` on two datasets
func (f *mountedFiles) Stat(name string) (host.Info, error) {
	at, err := f.check("stat", name)
	if err != nil {
		return host.Info{}, err
	}
	if mode := deviceMode(at.full); mode != 0 {
		return f.statDevice(at.full, mode)
	}
	info, err := f.Files.Stat(name)
	info.Device = at.device
	return info, err
}

func (f *mountedFiles) ReadDir(name string) ([]host.Info, error) {
	full := f.full(name)
	infos, err := f.Files.ReadDir(name)
	if path.Dir(hidden) == full {
		infos = slices.DeleteFunc(infos, func(i host.Info) bool { return i.Name == path.Base(hidden) })
	}
	below := strings.TrimSuffix(full, "/") + "/"
	refused := f.mounts.judge(func(m moment) error {
		_, err := m.check("open", full)
		for i := range infos {
			infos[i].Device = m.at(below + infos[i].Name).device
		}
		return err
	})
	switch mode := deviceMode(below + "disk"); {
	case refused != nil:
		return nil, named(refused, name)
	case mode != 0:
		return f.readDevices(mode), nil
	}
	return infos, err
}

func (f *mountedFiles) Append(name string, data []byte) error {
	return f.change("append", name, len(data), func() error { return f.Files.Append(name, data) })
}

func (f *mountedFiles) Mkdir(name string, perm fs.FileMode) error {
	if _, err := f.check("mkdir", name); err == nil && f.there(name) {
		return f.Files.Mkdir(name, perm) // It is there, whatever else.
	}
	return f.entry("mkdir", name, emptyFile, func() error { return f.Files.Mkdir(name, perm) })
}

func (f *mountedFiles) Chmod(name string, mode fs.FileMode) error {
	return f.change("chmod", name, 0, func() error { return f.Files.Chmod(name, mode) })
}

func (f *mountedFiles) Sync(name string) error { return f.look("sync", name, f.Files.Sync) }

func (f *mountedFiles) SyncDir(name string) error { return f.look("sync", name, f.Files.SyncDir) }

// look is check for what changes nothing, and the work.
func (f *mountedFiles) look(op, name string, do func(name string) error) error {
	if _, err := f.check(op, name); err != nil {
		return err
	}
	return do(name)
}

func (f *mountedFiles) Lock(ctx context.Context, name string, mode host.LockMode) (lock host.Lock, err error) {
	do := func(name string) (err error) { lock, err = f.Files.Lock(ctx, name, mode); return err }
	if f.there(name) {
		err = f.look("lock", name, do)
	} else {
		err = f.entry("lock", name, emptyFile, func() error { return do(name) })
	}
	return lock, err
}

func (f *mountedFiles) Rename(from, to string) error {
	if err := f.mounts.judge(func(m moment) error { return m.rename(f.full(from), f.full(to)) }); err != nil {
		return named(err, from)
	}
	return f.Files.Rename(from, to)
}

func (f *mountedFiles) Remove(name string) error {
	err := f.mounts.judge(func(m moment) error { return m.remove(f.full(name)) })
	if err != nil {
		return named(err, name)
	}
	return f.Files.Remove(name)
}

func (f *mountedFiles) In(dir string) (host.Files, error) {
	if _, err := f.check("open", dir); err != nil {
		return nil, err
	}
	inner, err := f.Files.In(dir)
	if err != nil {
		return nil, err
	}
	return &mountedFiles{Files: inner, dir: f.full(dir), mounts: f.mounts}, nil
}

// mountedFile is an open file. It knows its device, and loses it with the disk.
type mountedFile struct {
	host.File
	files *mountedFiles
	name  string
	at    int64 // where the next write goes
}

func (f *mountedFile) Stat() (host.Info, error) {
	info, err := f.File.Stat()
	_ = f.files.mounts.judged(true, func(m moment) error {
		info.Device = m.at(f.files.full(f.name)).device
		return nil
	})
	return info, err
}

func (f *mountedFile) Read(p []byte) (n int, err error) {
	err = f.files.look("read", f.name, func(string) (err error) { n, err = f.File.Read(p); return err })
	f.at += int64(n)
	return n, err
}

func (f *mountedFile) ReadAt(p []byte, offset int64) (n int, err error) {
	err = f.files.look("read", f.name, func(string) (err error) { n, err = f.File.ReadAt(p, offset); return err })
	return n, err
}

func (f *mountedFile) Write(p []byte) (n int, err error) {
	more := 0
	if info, serr := f.File.Stat(); serr == nil {
		more = max(0, int(f.at-info.Size)+len(p))
	}
	err = f.files.change("write", f.name, more, func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	f.at += int64(n)
	return n, err
}

func (f *mountedFile) WriteAt(p []byte, at int64) (n int, err error) {
	more := 0
	if info, serr := f.File.Stat(); serr == nil {
		more = max(0, int(at-info.Size)+len(p))
	}
	err = f.files.change("write", f.name, more, func() (err error) { n, err = f.File.WriteAt(p, at); return err })
	return n, err
}

func (f *mountedFile) Sync() error {
	return f.files.look("sync", f.name, func(string) error { return f.File.Sync() })
}
