package sim

import (
	"context"
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

// at is the file system that a name lies on. Names are absolute, and clean.
func (t *mountTable) at(name string) mount {
	m := mount{dir: "/", device: 1}
	// An error is a sled that is gone: its files say so themselves.
	_ = t.world.View(context.Background(), func(tx *world.Tx) error {
		d := zfs.DatasetOf(tx, name)
		if d == nil {
			return nil
		}
		m.dir = d.Mounted
		m.device = d.GUID | 1<<63 // the kernel makes device numbers from the file system's id, too
		if p := zfs.FindPool(tx, zfs.PoolName(d.Name)); p != nil {
			m.lost, m.waits = zfs.Lost(p), zfs.Waits(p)
		}
		return nil
	})
	return m
}

// immutable says whether nothing can be made in a directory.
func (t *mountTable) immutable(dir string) (is bool) {
	_ = t.world.View(context.Background(), func(tx *world.Tx) error {
		is, _ = zfs.Immutable(tx, dir)
		return nil
	})
	return is
}

// wait waits until the file system that a name lies on is no longer lost.
func (t *mountTable) wait(name string) mount {
	_ = t.world.Wait(t.ctx, func(tx *world.Tx) bool {
		p := zfs.PoolAt(tx, name)
		return p == nil || !zfs.Lost(p) || !zfs.Waits(p)
	})
	return t.at(name)
}

// writable asks whether so many more bytes can be written into a file system.
func (t *mountTable) writable(at located, more int) error {
	var l limits
	_ = t.world.View(context.Background(), func(tx *world.Tx) error {
		l = t.limitsOf(tx, at.dir)
		return nil
	})
	switch {
	case l.readOnly:
		return syscall.EROFS
	case l.scarce && more > 0:
		return t.world.View(context.Background(), func(tx *world.Tx) error { return zfs.Room(tx, at.full, uint64(more)) })
	}
	return nil
}

func (t *mountTable) limitsOf(tx *world.Tx, dir string) limits {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limits == nil || t.version != tx.State.Version {
		t.limits, t.version = map[string]limits{}, tx.State.Version
	}
	l, known := t.limits[dir]
	if known {
		return l
	}
	if d := zfs.MountedAt(tx, dir); d != nil {
		l = limits{readOnly: zfs.MountedReadOnly(tx, d), scarce: zfs.Scarce(tx, dir)}
	}
	t.limits[dir] = l
	return l
}
