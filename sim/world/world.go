package world

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/crucible"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// World is a simulated sled that others share: in this process (Memory) or
// through a directory (Init, Open). It is safe for concurrent use.
type World struct {
	store    store
	files    host.Files
	locks    host.Files // the zones' locks, one file each
	dir      string     // empty: in memory
	handlers Handlers
	after    AfterUpdate
	decoded  *scf.Cache // clones share it

	mu   sync.Mutex
	next nextTime
	near []*World // in memory: the sleds that can be reached

	crucible *crucible.Crucible // that sleds of this process share

	swept sync.WaitGroup // see Discard
}

// nextTime is the result of State.NextTime for a version: all who wait ask for it.
type nextTime struct {
	known   bool
	version uint64
	at      time.Time
	any     bool
}

// store holds the state.
type store interface {
	// update gives fn exclusive use of the state and keeps what it changed,
	// also when it fails. Fn notes what it touches.
	update(ctx context.Context, fn func(*State, *Touched) error) error
	// view gives fn a state that nobody changes meanwhile.
	view(ctx context.Context, fn func(*State) error) error
	// watch gives a channel that is closed when the state has changed after
	// the call, and a function to call when it is no longer of interest.
	watch() (changed <-chan struct{}, done func())
}

// Handlers carry out what was scheduled, by the kind of the event. They run
// with the clock at the event's time.
type Handlers map[string]func(*Tx, *Event)

// Handle says who carries out scheduled events. It is called once, before the
// world is used.
func (w *World) Handle(h Handlers) *World {
	w.handlers = h
	return w
}

// AfterUpdate is called at the end of an Update, in its transaction, with the
// processes that have ended in it.
type AfterUpdate func(tx *Tx, ended []*Process)

// AfterUpdate names a function for every Update. It is set before the world is
// used.
func (w *World) AfterUpdate(fn AfterUpdate) *World {
	w.after = fn
	return w
}

// Dir is the directory that the sled lives in; empty if it lives in memory.
func (w *World) Dir() string { return w.dir }

// Files is the sled's file system; "/" is the root of the global zone.
func (w *World) Files() host.Files { return w.files }

// Update runs fn as one transaction, after what was due has happened. What fn
// has changed stays changed, whatever it returns.
func (w *World) Update(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var tx *Tx
	defer func() { w.sweep(tx) }()
	return w.store.update(ctx, func(s *State, touched *Touched) error {
		tx = NewTx(s, Now(), w.files)
		tx.touched = touched
		s.datasets.settle(s)
		tx.Decoded, tx.Held, tx.Crucible = w.decoded, w.linkHeld, w.crucible
		before := slices.Clone(s.Processes)
		if err := tx.Settle(w.handlers); err != nil {
			return err
		}
		processes := slices.Clone(tx.State.Processes)
		err := fn(tx)
		tx.breakEnded(processes)
		if serr := tx.Settle(w.handlers); err == nil {
			err = serr
		}
		if w.after != nil {
			w.after(tx, ended(before, s.Processes))
		}
		return err
	})
}

// ended are the processes of before that are no more.
func ended(before, now []*Process) []*Process {
	if slices.Equal(before, now) {
		return nil
	}
	left := make(map[*Process]bool, len(now))
	for _, p := range now {
		left[p] = true
	}
	return slices.DeleteFunc(before, func(p *Process) bool { return left[p] })
}

// Repair runs fn as one transaction in which nothing that is due happens: it is
// for what a process that was killed has left, before the world is used.
func (w *World) Repair(fn func(*Tx) error) error {
	var tx *Tx
	defer func() { w.sweep(tx) }()
	return w.store.update(context.Background(), func(s *State, touched *Touched) error {
		tx = NewTx(s, Now(), w.files)
		tx.touched = touched
		return fn(tx)
	})
}

// View shows fn the sled as it is now. Fn must not change it.
func (w *World) View(ctx context.Context, fn func(*Tx) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		due := false
		err := w.store.view(ctx, func(s *State) error {
			tx := &Tx{State: s, Now: Now(), Files: w.files, Decoded: w.decoded, Held: w.linkHeld, Crucible: w.crucible}
			if due = tx.due(); due {
				return nil
			}
			return fn(tx)
		})
		if err != nil || !due {
			return err
		}
		if err := w.Update(ctx, func(*Tx) error { return nil }); err != nil {
			return err
		}
	}
}

// Wait returns nil as soon as until holds, or the context's error. Until is
// asked whenever the sled changes or a moment that was written down has come;
// it must not change anything.
func (w *World) Wait(ctx context.Context, until func(*Tx) bool) error {
	for {
		changed, done := w.store.watch()
		holds, err := w.look(ctx, until, changed)
		done()
		if holds || err != nil {
			return err
		}
	}
}

// look asks once, and if the answer is no waits for what may change it.
func (w *World) look(ctx context.Context, until func(*Tx) bool, changed <-chan struct{}) (bool, error) {
	holds := false
	var next time.Time
	var timed bool
	err := w.View(ctx, func(tx *Tx) error {
		if holds = until(tx); !holds {
			next, timed = w.nextTime(tx)
		}
		return nil
	})
	if holds || err != nil {
		return holds, err
	}
	var alarm <-chan time.Time
	if timed {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-changed:
	case <-alarm:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return false, nil
}

// nextTime is NextTime of the state, worked out once per version as long as the
// answer is in the future.
func (w *World) nextTime(tx *Tx) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.next
	if !n.known || n.version != tx.State.Version || n.any && !n.at.After(tx.Now) {
		*n = nextTime{known: true, version: tx.State.Version}
		n.at, n.any = tx.State.NextTime(tx.Now)
	}
	return n.at, n.any
}

// LockZone takes the lock that zoneadm holds on a zone and waits for it, as
// zonecfg_grab_lock_file does (usr/src/lib/libzonecfg/common/libzonecfg.c). The
// lock of a process that dies is free.
func (w *World) LockZone(ctx context.Context, zone string) (unlock func(), err error) {
	if zone == "" || path.Base(zone) != zone {
		return nil, fmt.Errorf("lock zone %q: not a name", zone)
	}
	return w.hold(ctx, "/locks/"+zone, host.LockExclusive)
}

func (w *World) hold(ctx context.Context, name string, mode host.LockMode) (release func(), err error) {
	l, err := w.locks.Lock(ctx, name, mode)
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", name, err)
	}
	return func() { _ = l.Unlock() }, nil
}

// HoldLink holds a link as a program that opens it by DLPI does, until release or the end
// of the process. Nobody is kept from holding it too.
func (w *World) HoldLink(ctx context.Context, l LinkID) (release func(), err error) {
	return w.hold(ctx, l.lock(), host.LockShared)
}

// linkHeld says whether anybody holds a link.
func (w *World) linkHeld(l *Link) bool {
	name := l.ID().lock()
	if _, err := w.locks.Stat(name); err != nil {
		return false // Nobody ever has.
	}
	held, err := w.locks.Lock(context.Background(), name, host.TryExclusive)
	if err == nil {
		_ = held.Unlock()
	}
	return errors.Is(err, host.ErrLocked)
}

// Settle carries out what is due, each with the clock at its time.
func (tx *Tx) Settle(h Handlers) error {
	now := tx.Now
	defer func() { tx.Now = now }()
	for tx.due() {
		e := tx.State.Due[0]
		handle, ok := h[e.Kind]
		if !ok {
			return fmt.Errorf("scheduled for %s: nobody carries out %q", e.At.Format(time.RFC3339Nano), e.Kind)
		}
		tx.State.Due = slices.Delete(tx.State.Due, 0, 1)
		tx.Now = e.At
		processes := slices.Clone(tx.State.Processes)
		handle(tx, e)
		tx.breakEnded(processes)
		tx.Now = now
	}
	return nil
}

func (tx *Tx) due() bool {
	return len(tx.State.Due) > 0 && !tx.State.Due[0].At.After(tx.Now)
}
