package agent

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

// watched is a VM that is recorded.
type watched struct {
	owner
	zone       string
	registered atomic.Bool        // by the control plane, or a fleet
	cancel     context.CancelFunc // of its monitor; nil: its machine is not made yet
	ended      chan struct{}      // closed when the monitor is
	sighted    chan struct{}      // closed when the monitor has told anything
	once       sync.Once
}

// owner is the instance that a VM is an incarnation of, and the migration by which it is to
// come; empty: it is here.
type owner struct{ id, name, arrival string }

// ownerOf names what is kept of a record, whose own texts are parts of one that
// has all of it.
func ownerOf(r record.Record) owner {
	o := owner{id: strings.Clone(r.ID), name: strings.Clone(r.Name)}
	if m := r.Arrival(); m != nil {
		o.arrival = strings.Clone(m.ID)
	}
	return o
}

// firstLook is how long the agent waits, before it answers, for those VMs whose
// Propolis does not answer at once.
const firstLook = 5 * time.Second

// begin looks at all that is recorded, before anybody may ask: to answer that a
// VM is not known is to say that it is lost.
func (a *agent) begin(ctx context.Context) error {
	if err := a.look(ctx); err != nil {
		return err
	}
	deadline := time.NewTimer(firstLook)
	defer deadline.Stop()
	for id, w := range a.watched {
		if w.cancel == nil {
			continue
		}
		select {
		case <-w.sighted:
		case <-deadline.C:
			deadline.Reset(0) // and so for all others
			a.say(ctx, w.owner, id, watch.Observation{Status: instance.Status{State: record.Unknown, Reason: "its Propolis has not answered yet"}})
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// follow looks at the ledger until ctx ends. While it cannot be read, what
// was known stands.
func (a *agent) follow(ctx context.Context) {
	failing := false
	a.every(ctx, followEvery, func() {
		err := a.look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			a.Log.Warn("the ledger cannot be read", "cause", err)
		}
		failing = err != nil
	})
}

// look takes in what has changed in the ledger since the last time.
func (a *agent) look(ctx context.Context) error {
	book, err := a.env.Ledger(ctx)
	if err != nil {
		return err
	}
	if a.followed && book.Unchanged(a.seq) {
		return nil
	}
	a.followed = false
	view, err := book.Read(ctx)
	if err != nil {
		return err
	}
	if view.Seq() == a.seq {
		a.followed = true
		return nil
	}
	if err := a.loadTombstones(ctx, view); err != nil { // first: it says more about VMs that are no longer recorded
		return err
	}
	if err := a.bring(ctx, view); err != nil {
		return err
	}
	a.seq, a.followed = view.Seq(), true
	return nil
}

// bring begins to watch what is new in the records, and stops watching what they
// no longer name.
func (a *agent) bring(ctx context.Context, view ledger.View) error {
	there := map[uuid.UUID]bool{}
	for r, err := range record.Records(view) {
		if err != nil {
			return err
		}
		for _, incarnation := range r.Incarnations() {
			if id, err := uuid.Parse(incarnation.PropolisID); err == nil {
				there[id] = true
			}
		}
		id, err := uuid.Parse(r.VM())
		if err != nil {
			continue
		}
		there[id] = true
		if w := a.watched[id]; w == nil || w.cancel == nil {
			a.watch(ctx, id, r)
		} else {
			w.registered.Store(r.VMM != nil) // it may have been handed over
		}
	}
	for id, w := range a.watched {
		if !there[id] {
			a.unwatch(ctx, id, w)
		}
	}
	return nil
}

// watch begins to watch one VM. One whose machine is not made yet is starting. Of
// one that is the control plane's nobody hears that it has ended before nothing
// of it is left: what it had is given to others then.
func (a *agent) watch(ctx context.Context, id uuid.UUID, r record.Record) {
	w := &watched{owner: ownerOf(r), ended: make(chan struct{}), sighted: make(chan struct{})}
	w.registered.Store(r.VMM != nil)
	a.mu.Lock()
	a.watched[id] = w
	a.mu.Unlock()
	if r.Incarnation == nil || !r.Incarnation.Ensured {
		a.say(ctx, w.owner, id, watch.Observation{Status: unmade(r)})
		return
	}
	w.zone = strings.Clone(r.Incarnation.Zone)
	monitored, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	follow := watch.Monitor(a.Instance, a.env.Host, r, a.zones, func(o watch.Observation) { a.sight(ctx, monitored, w, id, o) })
	a.monitors.Go(func() {
		defer close(w.ended)
		follow(monitored)
	})
}

// sight takes in what a monitor has seen of a VM, as long as it is monitored.
func (a *agent) sight(ctx, monitored context.Context, w *watched, id uuid.UUID, o watch.Observation) {
	switch {
	case w.registered.Load() && stateOf(o.State).Final():
		// Afterwards: how its migration ended is known here, and nowhere when it is gone.
		defer a.work.Ended(w.id, id, record.Ending{PropolisID: id.String(), State: o.State, Reason: o.Reason})
		o.Status = instance.Status{State: "stopping", Reason: "it has ended, and is being removed"}
	case o.Reason != "" && o.State != record.Failed:
		a.meter.doubts.Add(1)
	case o.State == record.Failed:
		o.Status = a.ended(monitored, w, id, o.Status)
	}
	if monitored.Err() != nil {
		return // it is no longer recorded: its tombstone has the rest
	}
	a.say(ctx, w.owner, id, o)
	w.once.Do(func() { close(w.sighted) })
}

// ended returns how an incarnation ended whose VM is gone: as the ledger says, if
// an operation is removing it, else as it was seen. If the ledger cannot be read,
// ended waits: an operation that removes an incarnation has recorded that first.
func (a *agent) ended(ctx context.Context, w *watched, id uuid.UUID, seen instance.Status) instance.Status {
	for {
		var view ledger.View
		book, err := a.env.Ledger(ctx)
		if err == nil {
			view, err = book.Read(ctx)
		}
		if err == nil {
			if told, ok := instance.Ended(view, w.id, record.Incarnation{PropolisID: id.String(), Zone: w.zone}); ok {
				return told
			}
			return seen
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return seen
		}
	}
}

// unmade is what a VM is that has no machine yet.
func unmade(r record.Record) instance.Status {
	switch {
	case r.Ending != nil:
		return instance.Status{State: "stopping"}
	case r.Arrival() != nil:
		return coming(r)
	case r.Incarnation == nil:
		return instance.Status{State: record.Creating, Reason: "it is registered"}
	}
	return instance.Status{State: record.Creating, Reason: "it is being made"}
}

// coming is what a VM is that arrives by a migration, or is to.
//
// Guess pending-at-generation-one: a VM that is registered to arrive has `migration_in` as
// `pending` at generation 1.
// Check: let a control plane move a VM between a sled of omicron's agent and one that sledctl
// manages
func coming(r record.Record) instance.Status {
	m := r.Arrival()
	if m.Source == "" {
		return instance.Status{State: "migrating", Reason: "it is registered to arrive by migration " + m.ID}
	}
	return instance.Status{State: "migrating", Reason: "it arrives from " + m.Source}
}

// unwatch stops watching a VM that is no longer recorded: its incarnation has
// ended, and loadTombstones reads its tombstone. A VM that never ran has none.
func (a *agent) unwatch(ctx context.Context, id uuid.UUID, w *watched) {
	if w.cancel != nil {
		w.cancel()
		<-w.ended
	} else {
		a.say(ctx, w.owner, id, watch.Observation{Status: instance.Status{State: record.Failed, Reason: "it could not be made"}})
	}
	a.mu.Lock()
	delete(a.watched, id)
	a.mu.Unlock()
}

// recorded says whether a VM is.
func (a *agent) recorded(id uuid.UUID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watched[id] != nil
}

// loadTombstones takes in the tombstones.
func (a *agent) loadTombstones(ctx context.Context, view ledger.View) error {
	stones, err := instance.Tombstones(view)
	if err != nil {
		return err
	}
	for _, stone := range stones {
		if id, err := uuid.Parse(stone.PropolisID); err == nil {
			of := owner{id: stone.Instance, name: stone.Name}
			a.say(ctx, of, id, watch.Observation{Status: instance.Status{State: stone.State, Reason: stone.Reason}, Migration: stone.Migrations})
		}
	}
	return nil
}

// say puts what was seen of a VM into the table, and notifies the control plane.
func (a *agent) say(ctx context.Context, of owner, id uuid.UUID, o watch.Observation) {
	now := VM{ID: id, Instance: of.id, Name: of.name, State: stateOf(o.State), Reason: o.Reason, Seen: o.Generation}
	old, _ := a.table.Get(id)
	if of.arrival != "" && o.Migration.In == nil {
		o.Migration.In = &propolis.Migration{ID: of.arrival}
	}
	now.In, now.Out = nextMigration(old.In, o.Migration.In, now.State), nextMigration(old.Out, o.Migration.Out, now.State)
	if now.Seen == 0 {
		now.Seen = old.Seen
	}
	if o.State == record.Unknown && old.State != "" {
		now.State = old.State
	}
	if v, changed := a.table.Publish(now); changed {
		a.notifier.Notify(ctx, id) // first: the reader of the log may be slow
		a.Log.Info("VM changed", "vm", id, "instance", of.id, "state", v.State, "generation", v.Gen, "reason", v.Reason)
	}
}

// stateOf is the control plane's word for a state of an instance (omicron
// common/src/instance.rs). One that cannot be asked was complete once, and runs
// for all that is known.
func stateOf(s record.State) api.VMState {
	switch s {
	case record.Creating, "starting":
		return api.Starting
	case "stopping", record.Stopped: // nothing can be started before all of it is gone
		return api.Stopping
	case "rebooting":
		return api.Rebooting
	case "migrating":
		return api.Migrating
	case record.Failed, record.Absent:
		return api.Failed
	case "destroyed":
		return api.Destroyed
	}
	return api.Running
}

// nextMigration returns the next state of a migration. Its generation is that of its
// state: a restarted agent never shows another state at a generation that an
// earlier one has shown (omicron counts changes, and so has 2 for the first that it sees:
// common/src/instance.rs). What is not over when its VM is, has failed.
func nextMigration(old *api.Migration, seen *propolis.Migration, vm api.VMState) *api.Migration {
	now := api.Migration{State: api.MigrationPending, Gen: 1, TimeUpdated: time.Now().UTC()}
	switch id, err := uuid.Parse(migrationOf(seen)); {
	case err == nil:
		now.ID = id
	case old == nil:
		return nil
	default:
		now = *old
		seen = nil
	}
	switch {
	case seen != nil && seen.State == "Finish", now.State == api.MigrationCompleted:
		now.State, now.Gen = api.MigrationCompleted, 3
	case seen != nil && seen.State == "Error", vm.Final():
		now.State, now.Gen = api.MigrationFailed, 3
	case seen != nil && seen.State != "":
		now.State, now.Gen = api.MigrationInProgress, 2
	}
	if old != nil && old.ID == now.ID && old.Gen >= now.Gen {
		return old
	}
	return &now
}

func migrationOf(m *propolis.Migration) string {
	if m == nil {
		return ""
	}
	return m.ID
}
