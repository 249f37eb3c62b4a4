package sim

import (
	"context"
	"path"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/sim/world"
)

// mountTable is /etc/mnttab as far as datasets go, worked out anew when the
// sled has changed.
type mountTable struct {
	world *world.World
	ctx   context.Context // until the sled is closed

	mu      sync.Mutex
	version uint64
	mounts  map[string]mount // by directory
	scarce  map[string]bool  // by directory: what is written there may not fit; as far as anybody asked
	fixed   map[string]bool  // directories that are immutable
}

type mount struct {
	dir      string
	device   uint64
	lost     bool // its pool has lost its disk
	waits    bool // and whoever asks is to wait
	readOnly bool
}

// at is the file system that a name lies on.
func (t *mountTable) at(name string) mount {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current()
	for dir := path.Clean(name); ; dir = path.Dir(dir) {
		if m, ok := t.mounts[dir]; ok || dir == "/" {
			return m
		}
	}
}

// immutable says whether nothing can be made in a directory.
func (t *mountTable) immutable(dir string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current()
	return t.fixed[path.Clean(dir)]
}

// wait waits until the file system that a name lies on is no longer lost.
func (t *mountTable) wait(name string) mount {
	_ = t.world.Wait(t.ctx, func(tx *world.Tx) bool {
		p := tx.PoolAt(name)
		return p == nil || !p.Lost() || !p.Waits()
	})
	return t.at(name)
}

// room asks whether so many more bytes fit into a file system. The table is never
// locked within a View: who brings it up to date takes them the other way round.
func (t *mountTable) room(m mount, name string, more int) error {
	t.mu.Lock()
	scarce, known := t.scarce[m.dir]
	t.mu.Unlock()
	if !known {
		var version uint64
		_ = t.world.View(context.Background(), func(tx *world.Tx) error {
			scarce, version = tx.Scarce(m.dir), tx.State.Version
			return nil
		})
		t.mu.Lock()
		if t.version == version {
			t.scarce[m.dir] = scarce
		}
		t.mu.Unlock()
	}
	if !scarce {
		return nil
	}
	return t.world.View(context.Background(), func(tx *world.Tx) error { return tx.Room(name, uint64(more)) })
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
	t.version, t.mounts = tx.State.Version, map[string]mount{"/": {dir: "/", device: 1}}
	t.fixed, t.scarce = map[string]bool{}, map[string]bool{}
	pools := map[string]*world.Pool{}
	for _, p := range tx.State.Pools {
		if p.Imported {
			pools[p.Name] = p
		}
	}
	for _, d := range tx.State.Datasets {
		if d.Mounted == "" {
			continue
		}
		pool, _, _ := strings.Cut(d.Name, "/")
		// The kernel makes device numbers from the file system's id, too.
		m := mount{dir: d.Mounted, device: d.GUID | 1<<63, readOnly: tx.MountedReadOnly(d)}
		if p := pools[pool]; p != nil {
			m.lost, m.waits = p.Lost(), p.Waits()
		}
		t.mounts[d.Mounted] = m
	}
	for _, d := range tx.State.Datasets {
		for _, name := range d.Immutable {
			if dir := path.Join(d.Mounted, name); d.Mounted != "" && (name == "/" || t.mounts[dir].dir == "") {
				t.fixed[dir] = true
			}
		}
	}
}
