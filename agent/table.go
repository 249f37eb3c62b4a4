package agent

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
)

// VM is one VM as it was at one generation. It never changes.
type VM struct {
	ID       uuid.UUID // of its Propolis
	Instance string    // id of the instance that it is an incarnation of
	Name     string
	State    api.VMState
	Reason   string
	In, Out  *api.Migration
	Seen     uint64 // its Propolis' generation; 0: it was not asked
	Gen      uint64
	Updated  time.Time
}

// same says whether two say the same, at whatever generations.
func (v VM) same(w VM) bool {
	return v.ID == w.ID && v.Instance == w.Instance && v.Name == w.Name && v.State == w.State && v.Reason == w.Reason && v.Seen == w.Seen &&
		sameMigration(v.In, w.In) && sameMigration(v.Out, w.Out)
}

func sameMigration(a, b *api.Migration) bool {
	return a == nil && b == nil || a != nil && b != nil && a.ID == b.ID && a.State == b.State
}

// epochBits are those of a generation that count within one start of the agent:
// the bits above, up to the 53 that every JSON reader can tell apart, count the
// starts.
const (
	epochBits = 32
	maxEpoch  = 1<<(53-epochBits) - 1
)

// vmTable holds the current state of every VM. Readers never block; a follower
// sees every VM's last state, and may miss states between.
type vmTable struct {
	all sync.Map // uuid.UUID -> *VM

	mu   sync.Mutex // held to change the table
	gen  uint64     // the last one that was given
	last *change
}

// change is the last one, until there is another.
type change struct {
	vm    *VM
	next  *change
	ready chan struct{} // closed when there is a next one
}

// newTable returns the table of one start of the agent. Its generations are
// above those of all earlier starts.
func newTable(epoch uint64) *vmTable {
	return &vmTable{gen: epoch << epochBits, last: &change{ready: make(chan struct{})}}
}

// Publish makes v the current state of its VM, at a new generation, unless the
// table has the same state already, or a final one.
func (b *vmTable) Publish(v VM) (now VM, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, ok := b.Get(v.ID); ok && (old.State.Final() || old.same(v)) {
		return old, false
	}
	b.gen++
	v.Gen, v.Updated = b.gen, time.Now().UTC()
	b.all.Store(v.ID, &v)
	next := &change{vm: &v, ready: make(chan struct{})}
	b.last.next = next
	close(b.last.ready)
	b.last = next
	return v, true
}

// Get returns the current state of a VM; false: the table does not have it.
func (b *vmTable) Get(id uuid.UUID) (VM, bool) {
	v, ok := b.all.Load(id)
	if !ok {
		return VM{}, false
	}
	return *v.(*VM), true
}

// Forget removes a VM from the table, if v is still its current state.
func (b *vmTable) Forget(v VM) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now, ok := b.Get(v.ID); ok && now.Gen == v.Gen {
		b.all.Delete(v.ID)
	}
}

// Past waits until a VM is past a generation, or ctx ends.
func (b *vmTable) Past(ctx context.Context, id uuid.UUID, gen uint64) {
	for {
		b.mu.Lock()
		at := b.last
		b.mu.Unlock()
		if v, ok := b.Get(id); !ok || v.Gen > gen {
			return
		}
		select {
		case <-at.ready:
		case <-ctx.Done():
			return
		}
	}
}

// List returns the current states of all VMs, by their ids.
func (b *vmTable) List() []VM {
	var all []VM
	b.all.Range(func(_, v any) bool { all = append(all, *v.(*VM)); return true })
	slices.SortFunc(all, func(x, y VM) int { return slices.Compare(x.ID[:], y.ID[:]) })
	return all
}

// Follow gives the state of each VM that changed after a generation, in the
// order of the generations, and each later change, until ctx ends. A caller
// that continues with the last generation it has seen misses no VM's last
// state.
func (b *vmTable) Follow(ctx context.Context, after uint64) iter.Seq[VM] {
	return func(yield func(VM) bool) {
		var missed []*VM
		b.mu.Lock()
		at := b.last
		b.all.Range(func(_, v any) bool {
			if v := v.(*VM); v.Gen > after {
				missed = append(missed, v)
			}
			return true
		})
		b.mu.Unlock()
		slices.SortFunc(missed, func(x, y *VM) int { return cmp.Compare(x.Gen, y.Gen) })
		for _, v := range missed {
			if !yield(*v) {
				return
			}
		}
		for {
			select {
			case <-at.ready:
			case <-ctx.Done():
				return
			}
			if at = at.next; !yield(*at.vm) {
				return
			}
		}
	}
}
