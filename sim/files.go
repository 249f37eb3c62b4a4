package sim

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// mountedFiles shows the sled's files as the kernel does: each mounted dataset
// is a device of its own, which nothing can be renamed into or out of, and
// whose mountpoint is busy.
type mountedFiles struct {
	host.Files
	dir    string // of a view: where it begins, else empty
	mounts *mountTable
}

var _ host.Files = (*mountedFiles)(nil)

// hidden is where the world keeps the contents of what is not mounted.
const hidden = "/.datasets"

func (f *mountedFiles) full(name string) string { return path.Join("/", f.dir, name) }

// check refuses what is not part of the sled's file system, and what lies on a
// pool that has lost its disk.
func (f *mountedFiles) check(op, name string) error {
	full := f.full(name)
	switch {
	case full == hidden || strings.HasPrefix(full, hidden+"/"):
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	case f.mounts.at(full).lost:
		return &fs.PathError{Op: op, Path: name, Err: syscall.EIO}
	}
	return nil
}

func (f *mountedFiles) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	if err := f.check("open", name); err != nil {
		return nil, err
	}
	file, err := f.Files.Open(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &mountedFile{File: file, files: f, name: name}, nil
}

func (f *mountedFiles) Stat(name string) (host.Info, error) {
	if err := f.check("stat", name); err != nil {
		return host.Info{}, err
	}
	info, err := f.Files.Stat(name)
	info.Device = f.mounts.at(f.full(name)).device
	return info, err
}

func (f *mountedFiles) ReadDir(name string) ([]host.Info, error) {
	if err := f.check("open", name); err != nil {
		return nil, err
	}
	infos, err := f.Files.ReadDir(name)
	infos = slices.DeleteFunc(infos, func(i host.Info) bool { return path.Join(f.full(name), i.Name) == hidden })
	for i := range infos {
		infos[i].Device = f.mounts.at(path.Join(f.full(name), infos[i].Name)).device
	}
	return infos, err
}

func (f *mountedFiles) Append(name string, data []byte) error {
	return f.unlessLost("append", name, func() error { return f.Files.Append(name, data) })
}

func (f *mountedFiles) Mkdir(name string, perm fs.FileMode) error {
	return f.unlessLost("mkdir", name, func() error { return f.Files.Mkdir(name, perm) })
}

func (f *mountedFiles) Chmod(name string, mode fs.FileMode) error {
	return f.unlessLost("chmod", name, func() error { return f.Files.Chmod(name, mode) })
}

func (f *mountedFiles) Sync(name string) error {
	return f.unlessLost("sync", name, func() error { return f.Files.Sync(name) })
}

func (f *mountedFiles) SyncDir(name string) error {
	return f.unlessLost("sync", name, func() error { return f.Files.SyncDir(name) })
}

func (f *mountedFiles) Lock(ctx context.Context, name string, mode host.LockMode) (host.Lock, error) {
	if err := f.check("lock", name); err != nil {
		return nil, err
	}
	return f.Files.Lock(ctx, name, mode)
}

func (f *mountedFiles) unlessLost(op, name string, do func() error) error {
	if err := f.check(op, name); err != nil {
		return err
	}
	return do()
}

func (f *mountedFiles) Rename(from, to string) error {
	if err := f.check("rename", from); err != nil {
		return err
	}
	source, target := f.mounts.at(f.full(from)), f.mounts.at(path.Dir(f.full(to)))
	switch {
	case source.dir == f.full(from) || f.mounts.at(f.full(to)).dir == f.full(to):
		return &fs.PathError{Op: "rename", Path: from, Err: syscall.EBUSY}
	case source.device != target.device:
		return &fs.PathError{Op: "rename", Path: from, Err: syscall.EXDEV}
	}
	return f.Files.Rename(from, to)
}

func (f *mountedFiles) Remove(name string) error {
	if f.mounts.at(f.full(name)).dir == f.full(name) {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.EBUSY}
	}
	return f.unlessLost("remove", name, func() error { return f.Files.Remove(name) })
}

func (f *mountedFiles) In(dir string) (host.Files, error) {
	if err := f.check("open", dir); err != nil {
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
}

func (f *mountedFile) Stat() (host.Info, error) {
	info, err := f.File.Stat()
	info.Device = f.files.mounts.at(f.files.full(f.name)).device
	return info, err
}

func (f *mountedFile) Read(p []byte) (int, error) {
	if err := f.files.check("read", f.name); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *mountedFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.files.check("read", f.name); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, offset)
}

func (f *mountedFile) Write(p []byte) (int, error) {
	if err := f.files.check("write", f.name); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *mountedFile) Sync() error {
	return f.files.unlessLost("sync", f.name, f.File.Sync)
}

// mountTable is /etc/mnttab as far as datasets go, worked out anew when the
// sled has changed.
type mountTable struct {
	world *world.World

	mu      sync.Mutex
	version uint64
	mounts  map[string]mount // by directory
}

type mount struct {
	dir    string
	device uint64
	lost   bool // its pool has lost its disk
}

// at is the file system that a name lies on.
func (t *mountTable) at(name string) mount {
	t.mu.Lock()
	defer t.mu.Unlock()
	// An error is a sled that is gone: its files say so themselves.
	_ = t.world.View(context.Background(), func(tx *world.Tx) error {
		if t.mounts == nil || t.version != tx.State.Version {
			t.refresh(tx.State)
		}
		return nil
	})
	for dir := path.Clean(name); ; dir = path.Dir(dir) {
		if m, ok := t.mounts[dir]; ok || dir == "/" {
			return m
		}
	}
}

func (t *mountTable) refresh(s *world.State) {
	t.version, t.mounts = s.Version, map[string]mount{"/": {dir: "/", device: 1}}
	lost := map[string]bool{}
	for _, p := range s.Pools {
		lost[p.Name] = p.Imported && p.Lost()
	}
	for _, d := range s.Datasets {
		if d.Mounted != "" {
			pool, _, _ := strings.Cut(d.Name, "/")
			// The kernel makes device numbers from the file system's id, too.
			t.mounts[d.Mounted] = mount{dir: d.Mounted, device: d.GUID | 1<<63, lost: lost[pool]}
		}
	}
}
