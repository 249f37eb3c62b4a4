package sim

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// mountTable is /etc/mnttab as far as datasets go.
type mountTable struct {
	world *world.World
	ctx   context.Context // until the sled is closed

	mu      sync.Mutex        // taken within a View, never around one
	version uint64            // of the sled that the limits are of
	limits  map[string]limits // by directory, as far as anybody has written there
}

type mount struct {
	dir    string
	device uint64
	lost   bool // its pool has lost its disk
	waits  bool // and a caller has to wait
}

// limits are what may keep something from being written into a file system.
type limits struct {
	readOnly bool
	scarce   bool // it may not fit
}

// moment is the mount table at one version of the sled: whatever a call asks of it, the
// sled is looked at once.
type moment struct {
	*mountTable
	tx     *world.Tx
	waited bool // until a lost disk came back, or the sled ended
}

// waitingError is a file system that has lost its disk, and whose callers wait for it.
type waitingError struct{ name string }

func (e *waitingError) Error() string { return e.name + ": its pool has lost its disk" }

// judge has fn decide at a moment. With failmode=wait a call waits for zpool clear
// (zpoolprops(7)), or for the sled's end.
func (t *mountTable) judge(fn func(moment) error) error {
	err := t.judged(false, fn)
	if waiting, ok := errors.AsType[*waitingError](err); ok {
		_ = t.world.Wait(t.ctx, func(tx *world.Tx) bool {
			p := zfs.PoolAt(tx, waiting.name)
			return p == nil || !zfs.Lost(p) || !zfs.Waits(p)
		})
		err = t.judged(true, fn)
	}
	return err
}

// judged ignores a sled that is gone: its files say so themselves.
func (t *mountTable) judged(waited bool, fn func(moment) error) (err error) {
	_ = t.world.View(context.Background(), func(tx *world.Tx) error {
		err = fn(moment{mountTable: t, tx: tx, waited: waited})
		return nil
	})
	return err
}

// at is the file system that a name lies on. Names are absolute, and clean.
func (m moment) at(name string) mount {
	found := mount{dir: "/", device: 1}
	d := zfs.DatasetOf(m.tx, name)
	if d == nil {
		return found
	}
	found.dir = d.Mounted
	found.device = d.GUID | 1<<63 // the kernel makes device numbers from the file system's id, too
	if p := zfs.FindPool(m.tx, zfs.PoolName(d.Name)); p != nil {
		found.lost, found.waits = zfs.Lost(p), zfs.Waits(p)
	}
	return found
}

// located is where a name lies.
type located struct {
	mount
	full string // the name from the top, clean
}

// check refuses what is not part of the sled's file system, and what lies on a
// pool that has lost its disk.
func (m moment) check(op, full string) (located, error) {
	at := located{full: full}
	if rest, below := strings.CutPrefix(full, hidden); below && (rest == "" || rest[0] == '/') {
		return at, &fs.PathError{Op: op, Path: full, Err: fs.ErrNotExist}
	}
	at.mount = m.at(full)
	switch {
	case at.lost && at.waits && !m.waited:
		return at, &waitingError{full}
	case at.lost:
		return at, &fs.PathError{Op: op, Path: full, Err: syscall.EIO}
	}
	return at, nil
}

// change is check for what writes: the file system is read-only (readonly in
// zfsprops(7) and zpoolprops(7)), or has no room for so much more.
func (m moment) change(op, full string, more int) error {
	at, err := m.check(op, full)
	if err != nil {
		return err
	}
	l := m.limitsOf(at.dir)
	switch {
	case l.readOnly:
		err = syscall.EROFS
	case l.scarce && more > 0:
		err = zfs.Room(m.tx, full, uint64(more))
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: full, Err: err}
	}
	return nil
}

// entry is change for what makes or removes an entry of a directory. A
// directory that is immutable loses and gets none (zfs_zaccess in
// usr/src/uts/common/fs/zfs/zfs_acl.c).
func (m moment) entry(op, full string, more int) error {
	dir, err := m.check(op, path.Dir(full))
	if err != nil {
		return err
	}
	fixed, _ := zfs.Immutable(m.tx, dir.full)
	if !fixed && more == 0 {
		fixed, _ = zfs.Immutable(m.tx, full)
	}
	if fixed {
		return &fs.PathError{Op: op, Path: full, Err: syscall.EPERM}
	}
	return m.change(op, full, more)
}

// rename is entry for both names: a mountpoint is busy, and nothing leaves its file
// system.
func (m moment) rename(from, to string) error {
	source, err := m.check("rename", from)
	switch {
	case err != nil:
		return err
	case source.dir == from || m.at(to).dir == to:
		return &fs.PathError{Op: "rename", Path: from, Err: syscall.EBUSY}
	case source.device != m.at(path.Dir(to)).device:
		return &fs.PathError{Op: "rename", Path: from, Err: syscall.EXDEV}
	}
	if err := m.entry("rename", from, 0); err != nil {
		return err
	}
	return m.entry("rename", to, 0)
}

// remove is entry for a name that goes: no mountpoint does.
func (m moment) remove(full string) error {
	if m.at(full).dir == full {
		return &fs.PathError{Op: "remove", Path: full, Err: syscall.EBUSY}
	}
	return m.entry("remove", full, 0)
}

// Guess files-count-by-length: files count against quotas and pools by their length, and only below
// a quota, or in pools below 64 GiB.
// Check: nothing: sledctl asks ZFS
func (m moment) limitsOf(dir string) limits {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limits == nil || m.version != m.tx.State.Version {
		m.limits, m.version = map[string]limits{}, m.tx.State.Version
	}
	l, known := m.limits[dir]
	if known {
		return l
	}
	if d := zfs.MountedAt(m.tx, dir); d != nil {
		l = limits{readOnly: zfs.MountedReadOnly(m.tx, d), scarce: zfs.Scarce(m.tx, dir)}
	}
	m.limits[dir] = l
	return l
}
