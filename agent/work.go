package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

// work is what is done to VMs because the control plane asks for it: one thing
// at a time to each, by the operations that commands run. What takes longer than
// anybody waits for an answer is written down before it is promised, and goes on
// when the answer is given. What an agent that was killed owes, the next one
// does (resume).
type work struct {
	instances instance.Settings
	document  func(context.Context, []byte) (instance.Wanted, error)
	target    func(string) ([]string, error)
	remote    migration.Remote
	env       operation.Env
	table     *vmTable
	say       func(record.Record, uuid.UUID, watch.Observation)
	log       *slog.Logger
	ctx       context.Context // the agent's: who asked may have gone

	mu    sync.Mutex
	lanes map[uuid.UUID]*lane
	group sync.WaitGroup

	nothing uint64 // of the ledger, where resume found nothing owed
}

// Register makes a VM known.
func (w *work) Register(ctx context.Context, vm uuid.UUID, r instance.Registration) (VM, *api.Error) {
	leave, refused := w.enter(ctx, vm, false)
	if refused != nil {
		return VM{}, refused
	}
	defer leave()
	result, err := w.instances.Register(ctx, w.env, r)
	if err != nil && r.Keeper == record.Fleet { // which reads what a command would print
		return VM{}, failed(err, result.Report)
	}
	if err != nil {
		return VM{}, answer(err)
	}
	w.say(result.Record, vm, watch.Observation{Status: unmade(result.Record)})
	v, _ := w.table.Get(vm)
	return v, nil
}

// Run has a VM run: one that is made here, or, with a source, one that comes from
// the Propolis there. That is begun when it returns, and the VM's
// state shows the result.
func (w *work) Run(ctx context.Context, v VM, source string) *api.Error {
	leave, refused := w.enter(ctx, v.ID, false)
	if refused != nil {
		return refused
	}
	defer leave()
	r, err := w.instances.Want(ctx, w.env, v.Instance, v.ID.String(), source)
	if err != nil {
		return w.missed(ctx, v, err)
	}
	w.begin(v.ID, rising, func(ctx context.Context) { w.bringUp(ctx, r.Record, v.ID) })
	return nil
}

// How often, and for how long, one looks again into a zone that cannot be looked
// into: it may boot, as one does over which an agent was killed.
const (
	lookAgainEvery = time.Second
	lookAgainTime  = 5 * time.Minute
)

// bringUp is what Run begins. If it fails, the VM of the control plane has, but for
// one whose machine may be here: resume asks for that again.
func (w *work) bringUp(ctx context.Context, r record.Record, vm uuid.UUID) {
	change := instance.EnsureRequest{Verb: "vm run", Wanted: instance.Wanted{Ref: r.ID}, Known: true, From: r.Arrival()}
	if m := change.From; m != nil {
		change.Tell = func(phase string) {
			w.say(r, vm, watch.Observation{Status: coming(r), Migration: propolis.Migrations{In: &propolis.Migration{ID: m.ID, State: phase}}})
		}
	}
	_, err := w.instances.Ensure(ctx, w.env, change)
	for deadline := time.Now().Add(lookAgainTime); unseen(err) && time.Now().Before(deadline) && ctx.Err() == nil; {
		select {
		case <-time.After(lookAgainEvery):
			_, err = w.instances.Ensure(ctx, w.env, change)
		case <-ctx.Done():
		}
	}
	if err == nil || ctx.Err() != nil {
		return // a request has interrupted it, and what is pending stands in the ledger
	}
	w.log.Warn("a VM could not be brought up", "vm", vm, "instance", r.ID, "cause", err)
	if r.VMM == nil {
		return
	}
	if now, known := w.record(ctx, r.ID); known == nil && now.Migration != nil {
		if err := w.abandon(ctx, now, err.Error()); err != nil {
			w.log.Warn("a migration is not over", "vm", vm, "instance", r.ID, "cause", err)
		}
		return
	}
	w.finish(ctx, r.ID, record.Ending{PropolisID: vm.String(), State: record.Failed, Reason: err.Error()}, 0)
}

// abandon removes a VM that was to arrive and has not, and shows it as failed.
func (w *work) abandon(ctx context.Context, r record.Record, reason string) error {
	_, err := w.instances.CancelArrival(ctx, w.env, r)
	if _, gone := errors.AsType[*record.NotFoundError](err); err != nil && !gone {
		return err
	}
	if vm, err := uuid.Parse(r.VM()); err == nil {
		w.say(r, vm, watch.Observation{Status: instance.Status{State: record.Failed, Reason: reason}})
	}
	return nil
}

func unseen(err error) bool {
	_, is := errors.AsType[*instance.NotInspectableError](err)
	return is
}

// Stop powers a VM off and removes it. That is decided when it returns.
func (w *work) Stop(ctx context.Context, v VM) *api.Error {
	leave, refused := w.enter(ctx, v.ID, false)
	if refused != nil {
		return refused
	}
	defer leave()
	if err := w.interrupt(ctx, v.ID, rising); err != nil {
		return answer(err)
	}
	e := record.Ending{PropolisID: v.ID.String(), State: "destroyed"}
	r, err := w.instances.RecordEnding(ctx, w.env, v.Instance, e)
	if err != nil {
		return w.missed(ctx, v, err)
	}
	if len(r.Record.Incarnations()) > 0 {
		w.say(r.Record, v.ID, watch.Observation{Status: instance.Status{State: "stopping"}})
	}
	if w.busy(v.ID) {
		return nil // it is being removed
	}
	j := w.begin(v.ID, ending, func(ctx context.Context) { w.finish(ctx, v.Instance, e, instance.StopTime) })
	if len(r.Record.Incarnations()) == 0 { // that takes no time
		select {
		case <-j.done:
		case <-ctx.Done():
		}
	}
	return nil
}

// Remove removes a VM without asking its guest. It has gone when it
// returns; where ctx ends before, it goes nevertheless.
func (w *work) Remove(ctx context.Context, v VM) *api.Error {
	leave, refused := w.enter(ctx, v.ID, true)
	if refused != nil {
		return refused
	}
	defer leave()
	if err := w.interrupt(ctx, v.ID, rising, ending); err != nil {
		return answer(err)
	}
	e := record.Ending{PropolisID: v.ID.String(), State: record.Failed, Reason: "it was unregistered"}
	now, err := w.record(ctx, v.Instance)
	if err != nil {
		return w.missed(ctx, v, err)
	}
	end := func(ctx context.Context) { err = w.abandon(ctx, now, e.Reason) }
	if now.Migration == nil || now.Ending != nil {
		r, cerr := w.instances.RecordEnding(ctx, w.env, v.Instance, e)
		if cerr != nil {
			return w.missed(ctx, v, cerr)
		}
		end = func(ctx context.Context) { err = w.end(ctx, r.Record, 0) }
	}
	j := w.begin(v.ID, ending, end)
	select {
	case <-j.done:
	case <-ctx.Done():
		return answer(context.Cause(ctx))
	}
	if err != nil {
		return w.missed(ctx, v, err)
	}
	return nil
}

// rebootShown is how long a VM that was reset may take to show it.
const rebootShown = 5 * time.Second

// Reboot resets a VM. That is accepted by its Propolis when it returns.
func (w *work) Reboot(ctx context.Context, v VM) *api.Error {
	leave, refused := w.enter(ctx, v.ID, false)
	if refused != nil {
		return refused
	}
	defer leave()
	env := w.env
	accepted := make(chan error, 1)
	env.Observe = func(e operation.Event) {
		if _, asks := e.Action.Step.(propolis.ChangeState); asks && e.Kind == plan.Finished {
			accepted <- nil
		}
	}
	w.begin(v.ID, rising, func(ctx context.Context) {
		_, err := w.instances.Reboot(ctx, env, instance.PowerRequest{Verb: "vm reboot", Ref: v.Instance})
		select {
		case accepted <- err:
		default:
		}
	})
	var err error
	select {
	case err = <-accepted:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if state, ok := errors.AsType[*instance.StateError](err); ok && (state.State == record.Failed || state.State == record.Absent) {
		w.lost(v, state.Error())
		return nil // that it has failed is the answer
	}
	if err != nil {
		return w.missed(ctx, v, err)
	}
	shown, cancel := context.WithTimeout(ctx, rebootShown)
	defer cancel()
	w.table.Past(shown, v.ID, v.Gen)
	return nil
}

// goneShown is how long a VM that is no longer recorded may take to show it.
const goneShown = 5 * time.Second

// missed is the answer where a request was not carried out, for one because the VM
// has gone before its turn came. That one is gone, and was never unknown: the
// control plane takes what is unknown for lost.
func (w *work) missed(ctx context.Context, v VM, err error) *api.Error {
	if _, gone := errors.AsType[*record.NotFoundError](err); !gone {
		return answer(err)
	}
	ctx, cancel := context.WithTimeout(ctx, goneShown)
	defer cancel()
	for ctx.Err() == nil {
		now, there := w.table.Get(v.ID)
		switch {
		case !there:
			return answer(err)
		case now.State.Final():
			return api.StatusOnly(http.StatusGone, api.CodeNoSuchInstance, nil)
		}
		w.table.Past(ctx, v.ID, now.Gen)
	}
	return api.StatusOnly(http.StatusGone, api.CodeNoSuchInstance, nil) // no record has it: only the table is late
}

// Migrate has another sled take the VM of an instance, and gives the instance as it is there; nil:
// that is not known, or the migration was taken back. Where the client goes away it goes on.
func (w *work) Migrate(c call, body api.PutMigration) (*api.Instance, *api.Error) {
	asks, refused := c.asks()
	if refused != nil {
		return nil, refused
	}
	d := instance.Departure{Verb: "instance migrate", Ref: c.params["instance"], Run: w.remote, Shared: body.Shared, Cancel: body.Cancel}
	if body.To != "" {
		words, err := w.target(body.To)
		if err != nil {
			return nil, failed(err)
		}
		d.Target = words
	}
	env, as := w.env, w.instances
	as.Asks, env.Wait = cmp.Or(asks, record.Operator), c.URL.Query().Get("wait") == "true"
	done, err := as.Migrate(w.ctx, env, d)
	if errors.Is(err, instance.ErrNoTarget) {
		return nil, api.BadRequest("to: want a sled: the instance is in no migration")
	}
	if err != nil {
		return nil, failed(err, done.Reports...)
	}
	var there api.Instance
	if done.There == nil || json.Unmarshal(done.There, &there) != nil {
		return nil, nil
	}
	return &there, nil
}

// Snapshot has the Propolis of a VM take one of a disk.
func (w *work) Snapshot(ctx context.Context, v VM, disk, snapshot uuid.UUID) *api.Error {
	r, err := w.record(ctx, v.Instance)
	if err == nil && (r.Incarnation == nil || !r.Incarnation.Ensured || r.VM() != v.ID.String()) {
		err = errors.New("it has no machine")
	}
	if err != nil {
		return api.Internal(err)
	}
	client := propolis.Client{Host: w.env.Host, Target: w.instances.Target(r)}
	if err := client.Snapshot(ctx, disk, snapshot); err != nil {
		return answer(err)
	}
	return nil
}

// lost shows a VM as failed, and removes what is left of it if it is the
// control plane's.
func (w *work) lost(v VM, reason string) {
	w.say(record.Record{ID: v.Instance, Name: v.Name}, v.ID, watch.Observation{Status: instance.Status{State: record.Failed, Reason: reason}})
	w.Ended(v.Instance, v.ID, record.Ending{PropolisID: v.ID.String(), State: record.Failed, Reason: reason})
}

// view is what the ledger says now.
func (w *work) view(ctx context.Context) (ledger.View, error) {
	book, err := w.env.Ledger(ctx)
	if err != nil {
		return ledger.View{}, err
	}
	return book.Read(ctx)
}

func (w *work) record(ctx context.Context, id string) (record.Record, error) {
	view, err := w.view(ctx)
	if err != nil {
		return record.Record{}, err
	}
	r, known, err := record.Load(view, id)
	if err == nil && !known {
		err = &record.NotFoundError{Name: id}
	}
	return r, err
}
