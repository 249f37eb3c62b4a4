package agent

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sled/instance"
)

// afterRead is how long a VM that is gone can be read after it was read first:
// the answer may have been lost on its way, and who asked asks again, as Nexus'
// instance watcher does every 30 s.
const afterRead = time.Minute

// graves are the VMs that are gone, and were read since.
type graves struct {
	mu   sync.Mutex
	read map[uuid.UUID]time.Time // when first
}

// note notes that somebody has read a VM.
func (g *graves) note(v VM) {
	if !v.State.Final() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.read == nil {
		g.read = map[uuid.UUID]time.Time{}
	}
	if _, ok := g.read[v.ID]; !ok {
		g.read[v.ID] = time.Now()
	}
}

// since is when a VM was read first; the zero time: never.
func (g *graves) since(id uuid.UUID) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.read[id]
}

func (g *graves) forget(id uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.read, id)
}

// expire takes away what was read, if the control plane has heard of it, too, and
// what nobody has read for so long.
func (a *agent) expire(ctx context.Context, now time.Time) {
	for _, v := range a.board.List() {
		if !v.State.Final() {
			continue
		}
		read := a.graves.since(v.ID)
		if !read.IsZero() && now.Sub(read) >= afterRead && a.bells.Told(v) || now.Sub(v.Updated) > a.TombstoneTTL {
			a.bury(ctx, v)
		}
	}
}

// bury forgets a VM that is gone, first in the state file. One that is still
// recorded, as an instance that failed is until somebody sees to it, stays.
func (a *agent) bury(ctx context.Context, v VM) {
	if a.recorded(v.ID) {
		return
	}
	book, err := a.env.Ledger(ctx)
	if err == nil {
		_, err = book.Update(ctx, func(view ledger.View) ([]ledger.Fact, error) {
			if stone := instance.ForgetTombstone(v.ID.String()); has(view, stone.Key) {
				return []ledger.Fact{stone}, nil
			}
			return nil, nil
		})
	}
	if err != nil {
		a.Log.Warn("a VM that is gone could not be forgotten", "vm", v.ID, "cause", err)
		return
	}
	a.board.Forget(v)
	a.graves.forget(v.ID)
}

func has(view ledger.View, key string) bool { _, ok := view.Get(key); return ok }
