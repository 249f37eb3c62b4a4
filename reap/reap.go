package reap

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/base"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/inventory"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/network"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/sled"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// Settings is what reap takes from the configuration.
type Settings struct {
	Names sled.Prefixes
}

// seen is the sled, and the boot that it is in.
type seen struct {
	inv  *inventory.Inventory
	boot string
}

// Reap judges every object and removes those that nobody needs. All are tried;
// all errors are told.
func (s Settings) Reap(ctx context.Context, env operation.Env, dryRun bool) (Findings, operation.Report, error) {
	var findings Findings
	report, err := operation.Run(ctx, env, operation.Request[seen]{
		Verb: "reap", Subject: subject, Wait: true, DryRun: dryRun,
		Look: func(ctx context.Context, h host.Host) (seen, error) { return look(ctx, h, env) },
		Decide: func(view ledger.View, got seen, at operation.Moment) (operation.Decision, error) {
			k, err := know(s.Names, view, got.boot, at.Now, living(ctx, env, dryRun))
			if err != nil {
				return operation.Decision{}, err
			}
			if findings, err = judge(k, got.inv); err != nil {
				return operation.Decision{}, err
			}
			d := findings.decision()
			d.After = k.forgets(findings)
			return d, nil
		},
	})
	return findings, report, err
}

// subject is what a reap locks: one at a time.
const subject = "reap"

// living tells whether a run on a subject is alive. One on ours is not: its
// lock is ours now.
func living(ctx context.Context, env operation.Env, dryRun bool) func(string) (operation.Holder, bool) {
	return func(other string) (operation.Holder, bool) {
		if other == subject && !dryRun {
			return operation.Holder{}, false
		}
		return operation.Alive(ctx, env, other)
	}
}

func look(ctx context.Context, h host.Host, env operation.Env) (seen, error) {
	boot, err := operation.Boot(env)
	if err != nil {
		return seen{}, err
	}
	inv := inventory.Look(ctx, h, inventory.Want{
		Parts: []inventory.Part{inventory.Rival, inventory.Zones, inventory.Configs, inventory.Links, inventory.Pools, inventory.Datasets},
		Roots: inventory.ZonePools, User: []string{sled.PropertyInstance, sled.PropertyBase},
	})
	return seen{inv: inv, boot: boot}, inv.Know(inventory.Rival, inventory.Zones, inventory.Configs, inventory.Links, inventory.Pools, inventory.Datasets)
}

// decision plans the removal of all that goes: a zone, then its VNICs, its
// dataset, the snapshots on its base.
func (f Findings) decision() operation.Decision {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Continue}}
	after := map[string]string{} // zone -> the action behind which its links and datasets are free
	planned := map[string]bool{} // by id: what lies in two objects that go, goes once
	for _, o := range f.Objects {
		if !o.Verdict.Goes() {
			continue
		}
		d.Intent.Removes = append(d.Intent.Removes, operation.Object{Kind: o.Kind, Name: o.Name, Identity: o.Identity})
		var actions []plan.Action
		switch o.Kind {
		case "zone":
			actions = f.zone(o)
			after[o.Name] = actions[len(actions)-1].ID
			actions = append(actions, f.cloneSnapshots(o, after[o.Name])...)
		case "vnic":
			actions = f.vnic(o, after)
		case "dataset", "snapshot":
			actions = f.dataset(o.Name, o.Reason)
		}
		for _, a := range actions {
			if !planned[a.ID] {
				planned[a.ID] = true
				d.Plan.Actions = append(d.Plan.Actions, a)
			}
		}
	}
	return d
}

// forgets are the facts of bases and holds that go, or are gone already.
func (k known) forgets(f Findings) []ledger.Fact {
	var facts []ledger.Fact
	for _, name := range slices.Sorted(maps.Keys(k.bases)) {
		b := k.bases[name]
		_, zoned := f.inv.Zone(name)
		_, exists := f.inv.Dataset(b.Dataset)
		_, working := k.busy["zone "+name]
		if f.goes["zone "+name] || !zoned && !exists && !working {
			facts = append(facts, base.Forget(b))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.held)) {
		h := k.held[key]
		_, there := f.inv.Link(h.Name)
		_, working := k.busy[key]
		if h.Kind == "vnic" && !k.now.Before(h.Until) && !working && (!there || f.goes[key]) {
			facts = append(facts, network.Forget(h))
		}
	}
	return facts
}

func (f Findings) zone(o Object) []plan.Action {
	z, _ := f.inv.Zone(o.Name)
	var actions []plan.Action
	for _, step := range zone.Removal(z) {
		step := step.(plan.Step)
		actions = append(actions, plan.Action{ID: step.Verb() + " " + o.Name, Object: "zone " + o.Name, Why: o.Reason, Change: plan.Remove, Step: step})
	}
	if !zone.UninstallDestroys(z.Brand) || z.State == zone.Configured || z.State == zone.Incomplete {
		if name := f.homes[z.Path]; name != "" && path.Base(name) == path.Base(z.Path) {
			actions = append(actions, f.dataset(name, o.Reason)...)
		}
	}
	return plan.Chain(actions...)
}

// cloneSnapshots destroys what the clone of a zone left on its base, once the
// zone is gone: the base itself and datasets below it each have one.
func (f Findings) cloneSnapshots(o Object, before string) []plan.Action {
	snapshot := o.Name + "_snap"
	base, found := f.left[snapshot]
	if !found {
		return nil
	}
	step := zfs.DestroySnapshots{Dataset: base, Snapshot: snapshot}
	return []plan.Action{{
		ID: step.Verb() + " " + o.Name, Object: "snapshots " + snapshot, Why: "left by the clone", Change: plan.Remove,
		After: []string{before}, Step: step,
	}}
}

func (f Findings) vnic(o Object, after map[string]string) []plan.Action {
	l, _ := f.inv.Link(o.Name)
	a := plan.Action{
		ID: "vnic.delete " + o.Name, Object: "vnic " + o.Name, Why: o.Reason, Change: plan.Remove,
		Step: vnic.Delete{Name: l.Name, MAC: l.MAC, Over: l.Over},
	}
	if id := cmp.Or(after[l.Zone], after[f.nets[l.Name]]); id != "" {
		a.After = []string{id}
	}
	return []plan.Action{a}
}

// dataset destroys a dataset and what lies in it, deepest first.
func (f Findings) dataset(name, why string) []plan.Action {
	var actions []plan.Action
	before := ""
	add := func(d zfs.Dataset) {
		var step plan.Step = zfs.Destroy{Dataset: d.Name, GUID: d.GUID, Type: d.Type}
		if d.Type == zfs.TypeSnapshot {
			step = zfs.DestroySnapshot{Name: d.Name, GUID: d.GUID}
		}
		a := plan.Action{ID: step.Verb() + " " + d.Name, Object: "dataset " + d.Name, Why: why, Change: plan.Remove, Step: step}
		if before != "" {
			a.After = []string{before}
		}
		actions, before = append(actions, a), a.ID
	}
	below := f.inv.Below(name)
	// Longer names first: a child before its parent, a snapshot before its
	// dataset.
	slices.SortFunc(below, func(a, b zfs.Dataset) int {
		return cmp.Or(cmp.Compare(strings.Count(b.Name, "/"), strings.Count(a.Name, "/")), strings.Compare(b.Name, a.Name))
	})
	for _, d := range below {
		add(d)
	}
	if d, there := f.inv.Dataset(name); there {
		add(d)
	}
	return actions
}
