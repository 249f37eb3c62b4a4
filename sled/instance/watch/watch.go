// Package watch follows instances as they change.
//
// Watch reports every change of state of many instances, Wait returns when they have
// reached one, and Monitor follows one VM by long polls of its Propolis. None of them
// changes anything or takes a lock.
package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Watching instances: a long poll per running machine tells its states as they
// come. What no Propolis tells is looked for: decisions in the ledger, which
// costs next to nothing, and zones, by one listing for all instances.
const (
	watchBeat = 100 * time.Millisecond // how often the ledger is looked at
	watchLook = 2 * time.Second        // how often the zones are, while some instance has no machine that tells
)

// Watch tells each instance that pick takes (nil: every one), as it is, and
// again whenever its state or the reason for it changes. One that is deleted is
// told as absent, for the reason ReasonDeleted. Once all that are there were told,
// whole is called, unless it is nil. It lasts until the context ends, or tell or
// whole has an error, which it returns.
func Watch(
	ctx context.Context, s instance.Settings, env operation.Env, pick func(record.Record) bool, tell func(instance.Instance) error, whole func() error,
) error {
	book, err := env.Ledger(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := watch{
		Settings: s, env: env, book: book, pick: pick, tell: tell,
		told: map[string]instance.Instance{}, listening: map[string]string{}, heard: make(chan heard),
		zones: SharedZones(env.Host, watchBeat),
	}
	defer w.polls.Wait()
	defer cancel()
	if err := w.look(ctx); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	if whole != nil {
		if err := whole(); err != nil {
			return err
		}
	}
	return w.run(ctx)
}

// Selector takes the instances that are named, of no names every one (nil).
// Errors: *NotFoundError.
func Selector(s instance.Settings, view ledger.View, refs []string) (func(record.Record) bool, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	picked := map[string]bool{}
	for _, ref := range refs {
		r, err := s.Find(view, ref)
		if err != nil {
			return nil, err
		}
		picked[r.ID] = true
	}
	return func(r record.Record) bool { return picked[r.ID] }, nil
}

// watch is what is known while one goes on.
type watch struct {
	instance.Settings
	env       operation.Env
	book      *ledger.Ledger
	pick      func(record.Record) bool
	tell      func(instance.Instance) error
	told      map[string]instance.Instance // by id, as they were told last
	listening map[string]string            // whose machines tell by themselves: the incarnation's Propolis id by the instance's
	heard     chan heard
	zones     Zones
	polls     sync.WaitGroup
	seq       uint64 // of the ledger, when all were looked at last
	looked    time.Time
}

// heard is what a machine tells: a state, or that it will tell no more.
type heard struct {
	id, run string
	status  instance.Status
	over    bool
}

func (w *watch) run(ctx context.Context) error {
	beat := time.NewTicker(watchBeat)
	defer beat.Stop()
	for due := false; ; {
		if due {
			if err := w.look(ctx); err != nil {
				return errors.Join(ctx.Err(), err)
			}
		}
		select {
		case h := <-w.heard:
			due = false
			if err := w.hear(ctx, h); err != nil {
				return err
			}
		case <-beat.C:
			view, err := w.book.Read(ctx)
			if err != nil {
				return errors.Join(ctx.Err(), err)
			}
			due = view.Seq() != w.seq || w.silent() && time.Since(w.looked) >= watchLook
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// silent reports whether some reported instance has no VM that reports by itself.
func (w *watch) silent() bool {
	for id := range w.told {
		if _, tells := w.listening[id]; !tells {
			return true
		}
	}
	return false
}

// look sees how those are that do not tell by themselves.
func (w *watch) look(ctx context.Context) error {
	view, err := w.book.Read(ctx)
	if err != nil {
		return err
	}
	all, err := record.All(view)
	if err != nil {
		return err
	}
	w.seq, w.looked = view.Seq(), time.Now()
	var silent []record.Record
	there := map[string]bool{}
	for _, r := range all {
		if w.pick != nil && !w.pick(r) {
			continue
		}
		there[r.ID] = true
		if run, tells := w.listening[r.ID]; !tells || r.Incarnation == nil || r.Incarnation.PropolisID != run {
			silent = append(silent, r)
		} else if i := w.told[r.ID]; i.ID != "" {
			i.Record = r
			w.told[r.ID] = i
		}
	}
	seen, err := w.ObserveAll(ctx, w.env, view, silent, inventory.Want{Parts: []inventory.Part{inventory.Zones}})
	if err != nil {
		return err
	}
	for _, i := range seen {
		if err := w.show(i); err != nil {
			return err
		}
		if tells(i) {
			w.listen(ctx, i.Record)
		}
	}
	return w.gone(there)
}

// overtaken reports whether an operation is at work on an instance, or has changed it since
// its record was this.
func overtaken(now ledger.View, was record.Record) bool {
	is, known, err := record.Load(now, was.ID)
	if err != nil || !known || !is.Updated.Equal(was.Updated) || is.Generation != was.Generation || is.Wanted != was.Wanted {
		return true
	}
	return operation.IsOpen(now, record.Subject(was.ID))
}

// tells reports whether the instance has a machine that tells its states: it
// answers, and what it answers is not its end.
func tells(i instance.Instance) bool {
	final := []record.State{record.Failed, record.Unknown, record.Absent, record.Stopped, strings.ToLower(propolis.StateDestroyed)}
	if i.State == record.Stopping && i.Reason != "" {
		return false // An operation takes it down: its Propolis may be gone already.
	}
	return i.Incarnation != nil && i.Incarnation.Ensured && !slices.Contains(final, i.State)
}

// listen follows a machine until it will tell no more.
func (w *watch) listen(ctx context.Context, r record.Record) {
	if w.listening[r.ID] == r.Incarnation.PropolisID {
		return
	}
	w.listening[r.ID] = r.Incarnation.PropolisID
	w.polls.Go(func() {
		say := func(h heard) {
			h.id, h.run = r.ID, r.Incarnation.PropolisID
			select {
			case w.heard <- h:
			case <-ctx.Done():
			}
		}
		Monitor(w.Settings, w.env.Host, r, w.zones, func(o Observation) { say(heard{status: o.Status}) })(ctx)
		say(heard{over: true}) // how it is then, the next look sees
	})
}

// hear takes what a machine tells. One that tells no more is looked at with the
// next look, and so is one whose end may be an operation's that began since the last.
func (w *watch) hear(ctx context.Context, h heard) error {
	if w.listening[h.id] != h.run {
		return nil // of an earlier incarnation
	}
	if h.over {
		delete(w.listening, h.id)
		w.looked = time.Time{}
		return nil
	}
	if h.status.State == record.Failed {
		view, err := w.book.Read(ctx)
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		if overtaken(view, w.told[h.id].Record) {
			return nil
		}
	}
	i := w.told[h.id]
	i.Status = h.status
	return w.show(i)
}

// show reports an instance if it differs from what was reported.
func (w *watch) show(i instance.Instance) error {
	before, known := w.told[i.ID]
	w.told[i.ID] = i
	if known && before.Status == i.Status {
		return nil
	}
	return w.tell(i)
}

// gone reports those that no longer exist.
func (w *watch) gone(there map[string]bool) error {
	for id, i := range w.told {
		if there[id] {
			continue
		}
		delete(w.told, id)
		delete(w.listening, id)
		i.Status, i.Incarnation = instance.Status{State: record.Absent, Reason: ReasonDeleted}, nil
		if err := w.tell(i); err != nil {
			return err
		}
	}
	return nil
}

// ReasonDeleted is why an instance that was reported is absent.
const ReasonDeleted = "it was deleted"
