package sim

import (
	"context"
	"strings"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// mountTable is /etc/mnttab as far as datasets go, worked out again when the
// sled has changed.
type mountTable struct {
	world *world.World
	ctx   context.Context // until the sled is closed

	mu      sync.Mutex
	version uint64
	mounts  map[string]mount  // by directory
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
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current()
	for dir := name; ; dir = dir[:max(0, strings.LastIndexByte(dir, '/'))] {
		if m, ok := t.mounts[dir]; ok {
			return m
		}
		if dir == "" {
			return t.mounts["/"]
		}
	}
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

// writable asks whether so many more bytes can be written into a file system. The
// table is never locked within a View: who brings it up to date takes them the
// other way round.
func (t *mountTable) writable(at located, more int) error {
	t.mu.Lock()
	l, known := t.limits[at.dir]
	t.mu.Unlock()
	if !known {
		var version uint64
		_ = t.world.View(context.Background(), func(tx *world.Tx) error {
			version = tx.State.Version
			if d := zfs.MountedAt(tx, at.dir); d != nil {
				l = limits{readOnly: zfs.MountedReadOnly(tx, d), scarce: zfs.Scarce(tx, at.dir)}
			}
			return nil
		})
		t.mu.Lock()
		if t.version == version {
			t.limits[at.dir] = l
		}
		t.mu.Unlock()
	}
	switch {
	case l.readOnly:
		return syscall.EROFS
	case l.scarce && more > 0:
		return t.world.View(context.Background(), func(tx *world.Tx) error { return zfs.Room(tx, at.full, uint64(more)) })
	}
	return nil
}

// current brings the table up to date.
func (t *mountTable) current() {
	// An error is a sled that is gone: its files say so themselves.
	_ = t.world.View(context.Background(), func(tx *world.Tx) error {
		if t.mounts == nil || t.version != tx.State.Version {
			t.refresh(tx)
		}
		return nil
	})
}

func (t *mountTable) refresh(tx *world.Tx) {
	if t.mounts == nil {
		t.mounts, t.limits = map[string]mount{}, map[string]limits{}
	}
	clear(t.mounts)
	clear(t.limits)
	t.version, t.mounts["/"] = tx.State.Version, mount{dir: "/", device: 1}
	pools := map[string]mount{}
	for _, p := range tx.State.Pools {
		if p.Imported {
			pools[p.Name] = mount{lost: zfs.Lost(p), waits: zfs.Waits(p)}
		}
	}
	for _, d := range tx.State.Datasets {
		if d.Mounted == "" {
			continue
		}
		pool, _, _ := strings.Cut(d.Name, "/")
		m := pools[pool]
		m.dir = d.Mounted
		m.device = d.GUID | 1<<63 // the kernel makes device numbers from the file system's id, too
		t.mounts[d.Mounted] = m
	}
}
