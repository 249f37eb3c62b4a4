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

// bells tell the control plane whose state has changed: one goroutine for each
// VM of which there is something to tell, none for all others. What changes
// while it is being told, is told once, afterwards. Nobody waits for them.
type bells struct {
	board *board
	// tell makes one attempt to say that v has changed.
	tell func(ctx context.Context, v VM) error
	draw func() float64 // from 0 to below 1
	warn func(error)

	mu      sync.Mutex
	ringing map[uuid.UUID]time.Time // since when
	told    map[uuid.UUID]uint64    // the last generation of each that was told
	group   sync.WaitGroup

	heard, refused, lost atomic.Uint64 // attempts
}

func newBells(b *board, tell func(context.Context, VM) error, draw func() float64, warn func(error)) *bells {
	return &bells{board: b, tell: tell, draw: draw, warn: warn, ringing: map[uuid.UUID]time.Time{}, told: map[uuid.UUID]uint64{}}
}

// Notify has a VM's state told. It returns at once.
func (b *bells) Notify(ctx context.Context, id uuid.UUID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ringing[id].IsZero() || ctx.Err() != nil {
		return
	}
	b.ringing[id] = time.Now()
	b.group.Go(func() { b.ring(ctx, id) })
}

// ring tells until there is nothing new, it is refused, or ctx ends.
func (b *bells) ring(ctx context.Context, id uuid.UUID) {
	for {
		said, ok := b.insist(ctx, id)
		b.mu.Lock()
		if ok {
			b.told[id] = said
		}
		now, there := b.board.Get(id)
		if !there {
			delete(b.told, id)
		}
		if ctx.Err() != nil || !there || now.Gen == said {
			delete(b.ringing, id)
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// insist tells of one VM as it is at each attempt, until that succeeds or is
// refused. It gives the generation that it told of.
func (b *bells) insist(ctx context.Context, id uuid.UUID) (said uint64, ok bool) {
	for failed := 0; ; {
		v, there := b.board.Get(id)
		if !there {
			return 0, false
		}
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		err := b.tell(attempt, v)
		cancel()
		switch {
		case err == nil:
			b.heard.Add(1)
			return v.Gen, true
		case ctx.Err() != nil:
			return 0, false
		case !nexus.Passing(err):
			b.refused.Add(1)
			b.warn(fmt.Errorf("tell the control plane of VM %s: %w", id, err))
			return v.Gen, false
		}
		b.lost.Add(1)
		failed++
		timer := time.NewTimer(nexus.Pause(failed, b.draw()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, false
		}
	}
}

// Sweep has every VM told of which the control plane does not know the last
// state, as far as we know: what was refused or lost on the way is made good.
func (b *bells) Sweep(ctx context.Context) {
	for _, v := range b.board.List() {
		if !b.Told(v) {
			b.Notify(ctx, v.ID)
		}
	}
}

// Told says whether the control plane has heard of a VM as it is.
func (b *bells) Told(v VM) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told[v.ID] >= v.Gen
}

// pending is of how many VMs is being told, and how long the first has waited.
func (b *bells) pending(now time.Time) (n int, longest time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, since := range b.ringing {
		longest = max(longest, now.Sub(since))
	}
	return len(b.ringing), longest
}

// Wait returns when no bell rings any more: after the end of its context.
func (b *bells) Wait() { b.group.Wait() }

// ringer tells one control plane in one of two ways.
type ringer struct {
	client nexus.Client
	mode   string
	body   func(VM) ([]byte, error)

	mu    sync.Mutex
	again time.Time // in auto: until then it has no doorbell
}

// The ways in which the control plane is told.
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
func (r *ringer) Tell(ctx context.Context, v VM) error {
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

// bell says whether the doorbell is to be tried.
func (r *ringer) bell() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mode == ModeDoorbell || r.mode == ModeAuto && !time.Now().Before(r.again)
}
