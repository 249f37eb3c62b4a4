package agent

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

// Ended removes what is left of a VM that has ended by itself, if it is the
// control plane's.
func (w *work) Ended(id string, vm uuid.UUID, e record.Ending) {
	w.begin(vm, ending, func(ctx context.Context) {
		r, err := w.record(ctx, id)
		if err != nil || r.VMM == nil || r.VM() != e.PropolisID {
			return
		}
		if boot, err := operation.Boot(w.env); err == nil && r.Pending(boot) == record.PendingLost {
			e = lostWith(r)
		}
		w.finish(ctx, id, e, 0)
	})
}

// finish decides how a VM ends, and removes it.
func (w *work) finish(ctx context.Context, id string, e record.Ending, grace time.Duration) {
	r, err := w.instances.RecordEnding(ctx, w.env, id, e)
	if err == nil {
		err = w.end(ctx, r.Record, grace)
	}
	if _, gone := errors.AsType[*record.NotFoundError](err); err != nil && !gone && ctx.Err() == nil {
		w.log.Warn("a VM could not be removed yet", "vm", e.PropolisID, "instance", id, "cause", err)
	}
}

// end removes a VM whose end is decided, and shows it as gone.
func (w *work) end(ctx context.Context, r record.Record, grace time.Duration) error {
	_, err := w.instances.End(ctx, w.env, r.ID, grace)
	if _, gone := errors.AsType[*record.NotFoundError](err); err != nil && !gone {
		return err
	}
	if vm, perr := uuid.Parse(r.Ending.PropolisID); perr == nil {
		w.say(r, vm, watch.Observation{Status: instance.Status{State: r.Ending.State, Reason: r.Ending.Reason}})
	}
	return nil
}

// resume begins all that is owed and that nobody is at.
func (w *work) resume(ctx context.Context) {
	view, err := w.view(ctx)
	if err != nil || view.Seq() == w.nothing {
		return // that it cannot be read, follow tells
	}
	boot, err := operation.Boot(w.env)
	if err != nil {
		return
	}
	owes := false
	for r, err := range record.Records(view) {
		if err != nil {
			return
		}
		owed := r.Pending(boot)
		owes = owes || owed != record.PendingNothing
		w.owe(r, owed)
	}
	if !owes {
		w.nothing = view.Seq()
	}
}

// owe begins what is owed of one instance.
func (w *work) owe(r record.Record, owed record.Pending) {
	vm, err := uuid.Parse(r.VM())
	if r.Ending != nil {
		vm, err = uuid.Parse(r.Ending.PropolisID)
	}
	if err != nil || owed == record.PendingNothing || w.busy(vm) {
		return
	}
	switch owed {
	case record.PendingUp:
		w.begin(vm, rising, func(ctx context.Context) { w.bringUp(ctx, r, vm) })
	case record.PendingLost:
		w.begin(vm, ending, func(ctx context.Context) { w.finish(ctx, r.ID, lostWith(r), 0) })
	case record.PendingDown:
		grace := instance.StopTime
		if r.Ending.State == record.Failed {
			grace = 0
		}
		w.begin(vm, ending, func(ctx context.Context) { w.finish(ctx, r.ID, *r.Ending, grace) })
	}
}

// lostWith is the end of a VM from before the boot of the sled.
func lostWith(r record.Record) record.Ending {
	return record.Ending{PropolisID: r.VM(), State: record.Failed, Reason: "the sled was rebooted"}
}
