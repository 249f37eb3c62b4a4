package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/peer/nexus"
)

// attemptTime bounds one attempt to tell the control plane.
const attemptTime = 15 * time.Second

// notifier tells the control plane which VMs changed. It runs one goroutine for
// each VM with unsent changes, and none for the rest. Changes during an attempt
// are sent together, afterwards. Its callers do not wait.
type notifier struct {
	table *vmTable
	// tell makes one attempt to send that v has changed.
	tell func(ctx context.Context, v VM) error
	draw func() float64 // from 0 to below 1
	warn func(error)

	mu      sync.Mutex
	sending map[uuid.UUID]time.Time // since when
	told    map[uuid.UUID]uint64    // the last generation of each that was sent
	group   sync.WaitGroup

	delivered, rejected, failed atomic.Uint64 // attempts
}

func newNotifier(b *vmTable, tell func(context.Context, VM) error, draw func() float64, warn func(error)) *notifier {
	return &notifier{table: b, tell: tell, draw: draw, warn: warn, sending: map[uuid.UUID]time.Time{}, told: map[uuid.UUID]uint64{}}
}

// Notify has a VM's state sent. It returns at once.
func (b *notifier) Notify(ctx context.Context, id uuid.UUID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.sending[id].IsZero() || ctx.Err() != nil {
		return
	}
	b.sending[id] = time.Now()
	b.group.Go(func() { b.notify(ctx, id) })
}

// notify sends until there is nothing new, it is rejected, or ctx ends.
func (b *notifier) notify(ctx context.Context, id uuid.UUID) {
	for {
		said, ok := b.deliver(ctx, id)
		b.mu.Lock()
		if ok {
			b.told[id] = said
		}
		now, there := b.table.Get(id)
		if !there {
			delete(b.told, id)
		}
		if ctx.Err() != nil || !there || now.Gen == said {
			delete(b.sending, id)
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// deliver sends the state of one VM, as it is at each attempt, until that
// succeeds or is rejected. It returns the generation that was sent.
func (b *notifier) deliver(ctx context.Context, id uuid.UUID) (said uint64, ok bool) {
	for failed := 0; ; {
		v, there := b.table.Get(id)
		if !there {
			return 0, false
		}
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		err := b.tell(attempt, v)
		cancel()
		switch {
		case err == nil:
			b.delivered.Add(1)
			return v.Gen, true
		case ctx.Err() != nil:
			return 0, false
		case !nexus.Retryable(err):
			b.rejected.Add(1)
			b.warn(fmt.Errorf("tell the control plane of VM %s: %w", id, err))
			return v.Gen, false
		}
		b.failed.Add(1)
		failed++
		timer := time.NewTimer(nexus.Backoff(failed, b.draw()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, false
		}
	}
}

// Sweep has the state sent of every VM whose last state was not delivered: what
// was rejected or failed is tried again.
func (b *notifier) Sweep(ctx context.Context) {
	for _, v := range b.table.List() {
		if !b.Told(v) {
			b.Notify(ctx, v.ID)
		}
	}
}

// Told reports whether the current state of a VM was delivered.
func (b *notifier) Told(v VM) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told[v.ID] >= v.Gen
}

// pending returns how many VMs have unsent changes, and how long the first has
// waited.
func (b *notifier) pending(now time.Time) (n int, longest time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, since := range b.sending {
		longest = max(longest, now.Sub(since))
	}
	return len(b.sending), longest
}

// Wait returns when no attempt is running: after the end of the context.
func (b *notifier) Wait() { b.group.Wait() }

// messenger notifies one control plane in one of two ways.
type messenger struct {
	client nexus.Client
	mode   string
	body   func(VM) ([]byte, error)

	mu    sync.Mutex
	again time.Time // in auto: until then it has no doorbell
}

// The ways in which the control plane is notified.
const (
	ModeDoorbell = "doorbell"
	ModeUpcall   = "upcall"
	ModeAuto     = "auto" // the doorbell; where there is none, the upcall
	ModeOff      = "off"
)

// retryDoorbell is how long, in auto, a control plane without a doorbell is
// believed to have none.
const retryDoorbell = 10 * time.Minute

// Tell makes one attempt.
func (r *messenger) Tell(ctx context.Context, v VM) error {
	if r.bell() {
		err := r.client.Ring(ctx, v.ID)
		if r.mode == ModeDoorbell || !errors.Is(err, nexus.ErrNoDoorbell) {
			return err
		}
		r.mu.Lock()
		r.again = time.Now().Add(retryDoorbell)
		r.mu.Unlock()
	}
	body, err := r.body(v)
	if err != nil {
		return err
	}
	return r.client.Put(ctx, v.ID, body)
}

// bell reports whether the doorbell is to be tried.
func (r *messenger) bell() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mode == ModeDoorbell || r.mode == ModeAuto && !time.Now().Before(r.again)
}
