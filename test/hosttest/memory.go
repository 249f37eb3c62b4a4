// Package hosttest has file systems in memory, for tests: Memory, with faults
// and mountpoints as a test wants them, and PowerCuts, which forgets what was
// not flushed.
package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/host/lock"
)

// MemoryFiles is a file system in memory, with faults and mountpoints as a
// test wants them. Permissions are kept and shown, not enforced.
type MemoryFiles struct {
	tree  *memTree
	views []string // the directories of the views that this one lies in
}

var _ host.Files = (*MemoryFiles)(nil)

// Memory returns an empty file system in memory. Its locks work in a
// testing/synctest bubble.
func Memory() *MemoryFiles { return &MemoryFiles{tree: newMemTree()} }

// Files is Memory as sim.New and world.Memory take it.
func Files() host.Files { return Memory() }

// Fail makes fault decide, before each operation, whether it fails; nil removes
// the faults. Op is the name of the Files method in lower case, or
// "write"; name is absolute, from the top also in a view. A *ShortWrite makes
// a write or append fail halfway.
func (m *MemoryFiles) Fail(fault func(op, name string) error) {
	m.tree.mu.Lock()
	defer m.tree.mu.Unlock()
	m.tree.fault = fault
}

// ShortWrite is a fault: of what was to be written, Written bytes were.
type ShortWrite struct {
	Written int
	Err     error
}

func (e *ShortWrite) Error() string { return e.Err.Error() }

func (*ShortWrite) Kind() fault.Kind { return fault.Failed }
func (e *ShortWrite) Unwrap() error  { return e.Err }

// SetDevice makes dir a mountpoint: its Device and that of all below it is
// device, and nothing can be renamed across it. 0 makes it a plain directory
// again. The top is device 1.
func (m *MemoryFiles) SetDevice(dir string, device uint64) error {
	return m.at("mount", dir, false, func(p place) error {
		switch {
		case p.node == nil:
			return syscall.ENOENT
		case !p.node.mode.IsDir():
			return syscall.ENOTDIR
		}
		p.node.device = device
		return nil
	})
}

// Symlink makes name a link to target.
func (m *MemoryFiles) Symlink(target, name string) error {
	return m.at("symlink", name, false, func(p place) error {
		if p.node != nil {
			return syscall.EEXIST
		}
		n := m.tree.newNode(fs.ModeSymlink | 0o777)
		n.target = target
		m.tree.apply(edit{p.parent(), p.base, n})
		return nil
	})
}

// full is the name from the top, for messages and faults.
func (m *MemoryFiles) full(name string) string {
	full := "/"
	for _, view := range m.views {
		full = path.Join(full, absolute(view))
	}
	return path.Join(full, absolute(name))
}

func (m *MemoryFiles) fail(op, name string) error {
	m.tree.mu.Lock()
	fault := m.tree.fault
	m.tree.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(op, m.full(name))
}

func (m *MemoryFiles) pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return &fs.PathError{Op: op, Path: m.full(name), Err: err}
}

// at runs work on the place of a name, under the lock.
func (m *MemoryFiles) at(op, name string, follow bool, work func(place) error) error {
	if err := m.fail(op, name); err != nil {
		return m.pathError(op, name, err)
	}
	m.tree.mu.Lock()
	defer m.tree.mu.Unlock()
	p, err := m.find(name, follow)
	if err == nil {
		err = work(p)
	}
	return m.pathError(op, name, err)
}

// find goes through the views to the name.
func (m *MemoryFiles) find(name string, follow bool) (place, error) {
	dirs := []*node{m.tree.root}
	for i, view := range m.views {
		p, err := find(dirs, i > 0, view, true)
		switch {
		case err != nil:
			return place{}, err
		case p.node == nil:
			return place{}, syscall.ENOENT
		case p.node.entries == nil:
			return place{}, syscall.ENOTDIR
		}
		dirs = p.dirs
		if p.node != p.parent() {
			dirs = append(dirs, p.node)
		}
	}
	return find(dirs, len(m.views) > 0, name, follow)
}

func (m *MemoryFiles) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	var file *memFile
	exclusive := flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL
	err := m.at("open", name, !exclusive, func(p place) error {
		switch {
		case p.node == nil && flag&os.O_CREATE == 0:
			return syscall.ENOENT
		case p.node == nil:
			p.node = m.tree.newNode(perm.Perm())
			m.tree.apply(edit{p.parent(), p.base, p.node})
		case exclusive:
			return syscall.EEXIST
		case p.node.mode.IsDir():
			return syscall.EISDIR
		case flag&os.O_TRUNC != 0:
			m.tree.truncate(p.node)
		}
		file = &memFile{files: m, name: name, place: p, flag: flag}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (m *MemoryFiles) Append(name string, data []byte) error {
	err := m.fail("append", name)
	short, torn := errors.AsType[*ShortWrite](err)
	if torn {
		data = data[:min(short.Written, len(data))]
	} else if err != nil {
		return m.pathError("append", name, err)
	}
	m.tree.mu.Lock()
	defer m.tree.mu.Unlock()
	p, ferr := m.find(name, true)
	switch {
	case ferr != nil:
		return m.pathError("append", name, ferr)
	case p.node == nil:
		return m.pathError("append", name, syscall.ENOENT)
	case p.node.mode.IsDir():
		return m.pathError("append", name, syscall.EISDIR)
	}
	m.tree.write(p.node, len(p.node.data), data)
	return m.pathError("append", name, err)
}

func (m *MemoryFiles) Rename(from, to string) error {
	return m.at("rename", from, false, func(p place) error {
		if p.node == nil {
			return syscall.ENOENT
		}
		q, err := m.find(to, false)
		switch {
		case err != nil:
			return err
		case p.base == ".":
			return syscall.EBUSY
		case q.node != nil && q.node.mode.IsDir():
			return syscall.EEXIST
		case q.node != nil && p.node.mode.IsDir():
			return syscall.ENOTDIR
		case slices.Contains(q.dirs, p.node):
			return syscall.EINVAL
		case p.parentDevice() != q.parentDevice():
			return syscall.EXDEV
		case p.node == q.node:
			return nil
		}
		m.tree.apply(edit{p.parent(), p.base, nil}, edit{q.parent(), q.base, p.node})
		return nil
	})
}

func (m *MemoryFiles) Remove(name string) error {
	return m.at("remove", name, false, func(p place) error {
		switch {
		case p.node == nil:
			return syscall.ENOENT
		case p.base == "." || p.node.device != 0:
			return syscall.EBUSY
		case len(p.node.entries) > 0:
			return syscall.ENOTEMPTY
		}
		m.tree.apply(edit{p.parent(), p.base, nil})
		return nil
	})
}

func (m *MemoryFiles) Mkdir(name string, perm fs.FileMode) error {
	return m.at("mkdir", name, false, func(p place) error {
		if p.node != nil {
			return syscall.EEXIST
		}
		m.tree.apply(edit{p.parent(), p.base, m.tree.newNode(fs.ModeDir | perm.Perm())})
		return nil
	})
}

func (m *MemoryFiles) Chmod(name string, mode fs.FileMode) error {
	return m.at("chmod", name, true, func(p place) error {
		if p.node == nil {
			return syscall.ENOENT
		}
		p.node.mode = p.node.mode.Type() | mode.Perm()
		return nil
	})
}

func (m *MemoryFiles) Stat(name string) (host.Info, error) {
	var info host.Info
	err := m.at("stat", name, false, func(p place) error {
		if p.node == nil {
			return syscall.ENOENT
		}
		info = p.info(baseOf(name))
		return nil
	})
	return info, err
}

func (m *MemoryFiles) ReadDir(name string) ([]host.Info, error) {
	var list []host.Info
	err := m.at("readdir", name, true, func(p place) error {
		switch {
		case p.node == nil:
			return syscall.ENOENT
		case p.node.entries == nil:
			return syscall.ENOTDIR
		}
		list = make([]host.Info, 0, len(p.node.entries))
		dirs := append(p.dirs[:len(p.dirs):len(p.dirs)], p.node)
		for base, n := range p.node.entries {
			list = append(list, place{dirs: dirs, base: base, node: n}.info(base))
		}
		slices.SortFunc(list, func(a, b host.Info) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return list, err
}

func (m *MemoryFiles) Sync(name string) error {
	return m.at("sync", name, true, func(p place) error {
		switch {
		case p.node == nil:
			return syscall.ENOENT
		case p.node.mode.IsDir():
			return syscall.EISDIR
		}
		m.tree.sync(p.node)
		return nil
	})
}

func (m *MemoryFiles) SyncDir(name string) error {
	return m.at("syncdir", name, true, func(p place) error {
		switch {
		case p.node == nil:
			return syscall.ENOENT
		case !p.node.mode.IsDir():
			return syscall.ENOTDIR
		}
		m.tree.syncDir(p.node)
		return nil
	})
}

func (m *MemoryFiles) Lock(ctx context.Context, name string, mode host.LockMode) (host.Lock, error) {
	named := func(create bool) (n *node, err error) {
		err = m.at("lock", name, true, func(p place) error {
			switch {
			case p.node == nil && create:
				p.node = m.tree.newNode(0o600)
				m.tree.apply(edit{p.parent(), p.base, p.node})
			case p.node != nil && p.node.mode.IsDir():
				return syscall.EISDIR
			}
			n = p.node
			return nil
		})
		return n, err
	}
	for {
		n, err := named(true)
		if err != nil {
			return nil, err
		}
		if err := n.lock.Acquire(ctx, mode.Exclusive(), mode.Try()); err != nil {
			return nil, m.pathError("lock", name, err)
		}
		now, err := named(false)
		if err == nil && now == n {
			free := func() error { n.lock.Release(mode.Exclusive()); return nil }
			return &memLock{Held: lock.NewHeld(free), tree: m.tree, node: n}, nil
		}
		n.lock.Release(mode.Exclusive()) // its last holder has removed it
		if err != nil {
			return nil, err
		}
	}
}

func (m *MemoryFiles) In(dir string) (host.Files, error) {
	view := &MemoryFiles{tree: m.tree, views: append(m.views[:len(m.views):len(m.views)], dir)}
	_, err := view.Stat("/")
	if err != nil {
		return nil, err
	}
	return view, nil
}

// memLock is a lock on a file in memory.
type memLock struct {
	*lock.Held
	tree *memTree
	node *node
}

func (l *memLock) Write(data []byte) error {
	l.tree.mu.Lock()
	defer l.tree.mu.Unlock()
	l.tree.truncate(l.node)
	l.tree.write(l.node, 0, data)
	return nil
}
