package ports

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/opte"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
)

// changing is what was seen of an instance whose NICs are given other rules or routes.
type changing struct {
	ports Observed
	home  *zfs.Dataset // of its zone, with its memo of the instance; nil: there is none
}

// Change gives the NICs of the control plane's VM of an instance other rules or routes: all that is
// recorded of them, and their ports, if those exist. A VM that runs, runs on; one that is gone needs nothing. A
// run that was killed leaves a record that says so, and the next one, or ensure, does the rest. What is
// recorded already is not looked at.
func Change(ctx context.Context, env operation.Env, verb, id string, change func(record.NIC) (record.NIC, error)) error {
	if now, err := load(ctx, env, id); err != nil || now.ID == "" || isSo(now, change) {
		return err
	}
	_, err := operation.Run(ctx, env, operation.Request[changing]{
		Verb: verb, Subject: record.Subject(id),
		Look: func(ctx context.Context, h host.Host) (changing, error) {
			r, err := load(ctx, env, id)
			if err != nil {
				return changing{}, err
			}
			return lookChanging(ctx, h, r)
		},
		Decide: func(view ledger.View, seen changing, at operation.Stamp) (operation.Decision, error) {
			old, known, err := record.Load(view, id)
			if err != nil || !known || old.VMM == nil || old.Ending != nil {
				return operation.Decision{}, err
			}
			return decideChange(old, seen, at, change)
		},
	})
	return err
}

// load is the record of an instance; zero where there is none.
func load(ctx context.Context, env operation.Env, id string) (record.Record, error) {
	book, err := env.Ledger(ctx)
	if err != nil {
		return record.Record{}, err
	}
	view, err := book.Read(ctx)
	if err != nil {
		return record.Record{}, err
	}
	r, _, err := record.Load(view, id)
	return r, err
}

// isSo reports whether a record has what is asked for, and its ports were given it.
func isSo(r record.Record, change func(record.NIC) (record.NIC, error)) bool {
	nics, err := changed(r.Spec.NICs, change)
	return err == nil && record.NicText(nics) == record.NicText(r.Spec.NICs) && (r.Incarnation == nil || !r.Incarnation.Limiting)
}

// changed are NICs of which those in VPCs are changed.
func changed(nics []record.NIC, change func(record.NIC) (record.NIC, error)) ([]record.NIC, error) {
	all := slices.Clone(nics)
	for i, n := range all {
		if !n.OPTE {
			continue
		}
		n, err := change(n)
		if err == nil {
			n, err = n.Normal()
		}
		if err != nil {
			return nil, err
		}
		all[i] = n
	}
	return all, nil
}

// lookChanging asks for the ports by their names: a step makes sure that they are the ones.
func lookChanging(ctx context.Context, h host.Host, r record.Record) (changing, error) {
	seen := changing{ports: Observed{Inside: map[string]opte.Inside{}, Rules: map[string][]opte.Rule{}}}
	if r.Incarnation == nil {
		return seen, nil
	}
	for _, v := range r.Incarnation.Guests {
		if !v.Port {
			continue
		}
		in, err := opte.Look(ctx, h, v.Name)
		switch {
		case errors.Is(err, host.ErrNotFound): // it is not made yet
			continue
		case err != nil:
			return seen, fmt.Errorf("look at port %s: %w", v.Name, err)
		}
		seen.ports.Inside[v.Name], seen.ports.Rules[v.Name] = in, r.Spec.NICOf(v.MAC).FirewallOf()
	}
	home, err := zfs.Sizeless(ctx, h, []string{r.Incarnation.Dataset}, 0, []string{naming.PropertySpec})
	if err != nil && !errors.Is(err, host.ErrNotFound) {
		return seen, err
	}
	if len(home) > 0 {
		seen.home = &home[0]
	}
	return seen, nil
}

// decideChange is pure.
func decideChange(old record.Record, seen changing, at operation.Stamp, change func(record.NIC) (record.NIC, error)) (operation.Decision, error) {
	next := old
	var err error
	if next.Spec.NICs, err = changed(old.Spec.NICs, change); err != nil {
		return operation.Decision{}, err
	}
	unfinished := old.Incarnation != nil && old.Incarnation.Limiting
	if record.NicText(next.Spec.NICs) == record.NicText(old.Spec.NICs) && !unfinished {
		return operation.Decision{}, nil
	}
	next.Generation, next.Updated = old.Generation+1, at.Now
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Undo}}
	finished := next
	if old.Incarnation != nil {
		limiting := *old.Incarnation
		limiting.Limiting, next.Incarnation = true, &limiting
		d.Plan.Actions = changes(next, seen)
		// What a killed ensure has not done to NICs of another kind is its own.
		done := limiting
		done.Limiting = unfinished && slices.ContainsFunc(done.Guests, func(v record.VNIC) bool { return !v.Port })
		finished.Incarnation = &done
	}
	var errs [3]error
	if d.Plan.Empty() {
		d.OnSuccess, errs[0] = finished.Replaces(old)
		return d, errs[0]
	}
	d.Intent.Changes = changedPorts(next)
	d.OnStart, errs[0] = next.Replaces(old)
	d.OnSuccess, errs[1] = finished.Replaces(next)
	d.OnUndo, errs[2] = old.Replaces(next)
	return d, errors.Join(errs[:]...)
}

// changes are the actions on what exists of an incarnation.
func changes(r record.Record, seen changing) (all []plan.Action) {
	for _, v := range r.Incarnation.Guests {
		if _, there := seen.ports.Inside[v.Name]; v.Port && there {
			all = append(all, Up(layout.Blueprint{}, r, v, seen.ports)...)
		}
	}
	memo := record.MemoOf(r)
	if seen.home == nil || memo == "" {
		return all
	}
	if is := seen.home.User[naming.PropertySpec]; is.Value != memo || is.Source != zfs.Local {
		all = append(all, plan.Action{
			ID: "zfs.set " + seen.home.Name, Object: "dataset " + seen.home.Name, Why: "says what the instance is", Change: plan.Modify, After: plan.IDs(all),
			Step: zfs.Set{Dataset: seen.home.Name, Name: naming.PropertySpec, Value: memo, Old: is.Value, OldSource: is.Source},
		})
	}
	return all
}

func changedPorts(r record.Record) (all []operation.Object) {
	for _, v := range r.Incarnation.Guests {
		if v.Port {
			all = append(all, operation.Object{Kind: v.Kind(), Name: v.Name, Identity: v.MAC})
		}
	}
	return all
}
