package agent

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sled/instance"
)

// afterRead is how long an ended VM can be read after it was read first: the
// answer may have been lost on its way, and a client may ask again, as Nexus'
// instance watcher does every 30 s.
const afterRead = time.Minute

// readReceipts are the ended VMs that were read since they ended.
type readReceipts struct {
	mu   sync.Mutex
	read map[uuid.UUID]time.Time // when first
}

// note records that a client has read a VM.
func (g *readReceipts) note(v VM) {
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
func (g *readReceipts) since(id uuid.UUID) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.read[id]
}

func (g *readReceipts) forget(id uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.read, id)
}

// expireRead removes the ended VMs that were read, if the control plane was
// notified, too, and those whose time is up.
func (a *agent) expireRead(ctx context.Context, now time.Time) {
	for _, v := range a.table.List() {
		if !v.State.Final() {
			continue
		}
		read := a.receipts.since(v.ID)
		if !read.IsZero() && now.Sub(read) >= afterRead && a.notifier.Told(v) || now.Sub(v.Updated) > a.TombstoneTTL {
			a.expire(ctx, v)
		}
	}
}

// expire removes an ended VM, first its tombstone in the ledger. It keeps a VM
// that is still recorded, e.g. an instance that failed.
func (a *agent) expire(ctx context.Context, v VM) {
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
		a.Log.Warn("could not remove the tombstone of an ended VM", "vm", v.ID, "cause", err)
		return
	}
	a.table.Forget(v)
	a.receipts.forget(v.ID)
}

func has(view ledger.View, key string) bool { _, ok := view.Get(key); return ok }
