package instance

import (
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/opte"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// teardown lists what takes an instance's runs away, from what was seen of them:
// the VM, the zone, its VNICs, its datasets, and the snapshots that its clone
// left on the base. What does not exist needs nothing. What a zone that failed
// can tell is kept first.
func teardown(s Settings, r record.Record, seen Observed, at operation.Stamp, grace time.Duration) []plan.Action {
	actions := leaving(r, seen)
	if r.Incarnation == nil {
		return actions
	}
	kept, vm := keepEvidence(s, r, seen, at, "before it is removed"), stopVM(s.Blueprint(), r, seen, grace)
	if len(kept) > 0 && len(vm) > 0 {
		vm[0].After = append(vm[0].After, kept[0].ID)
	}
	first, last := append(kept, vm...), ""
	if len(first) > 0 {
		last = first[len(first)-1].ID
	}
	return slices.Concat(actions, first, downRun(*r.Incarnation, nil, seen, last))
}

// leaving lists what is left to do to remove earlier incarnations. Their VNICs may
// have the names of the present incarnation's, which are not theirs any longer.
func leaving(r record.Record, seen Observed) []plan.Action {
	var present []record.VNIC
	if r.Incarnation != nil {
		present = r.Incarnation.VNICs()
	}
	var actions []plan.Action
	for _, incarnation := range r.Leaving {
		actions = append(actions, downRun(incarnation, present, seen, "")...)
		present = append(present, incarnation.VNICs()...)
	}
	return actions
}

// downRun removes one run, after the action before, except for the VNICs that
// belong to another run.
func downRun(incarnation record.Incarnation, others []record.VNIC, seen Observed, before string) []plan.Action {
	halted, gone, actions := downZone(incarnation, seen, before)
	for _, v := range incarnation.VNICs() {
		l, there := seen.Inv.Link(v.Name)
		if !there || !v.Is(l) || slices.Contains(others, v) {
			continue
		}
		var step plan.Step = vnic.Delete{Name: v.Name, MAC: v.MAC, Over: v.Over}
		if v.Port {
			step = opte.Delete{Name: v.Name, MAC: v.MAC}
		}
		actions = append(actions, plan.Action{
			ID: step.Verb() + " " + v.Name, Object: v.Kind() + " " + v.Name, Change: plan.Remove, After: after(halted), Step: step,
		})
	}
	return append(actions, downDatasets(incarnation, seen, gone)...)
}

// StopTime is how long a machine may take to end before its zone is halted
// under it: what the sled agent allows (omicron, sled-agent/src/instance.rs).
const StopTime = 10 * time.Minute

// stopVM stops a machine that still is one, so that its disks are flushed by
// the device models before the zone's processes are killed. One that does not
// stop in time, or cannot be asked to, is ended with its zone.
func stopVM(b layout.Blueprint, r record.Record, seen Observed, grace time.Duration) []plan.Action {
	switch seen.Inside.VM.State {
	case "", propolis.StateDestroyed, propolis.StateFailed:
		return nil
	}
	if grace == 0 {
		return nil
	}
	step := propolis.PowerOff{Target: layout.TargetOf(b, r), Within: grace}
	return []plan.Action{{
		ID: step.Verb() + " " + r.Name, Object: "propolis " + r.Name, Why: "a hard power-off", Change: plan.Modify, BestEffort: true, Step: step,
	}}
}

// downZone removes a zone by the steps that its state needs. It returns the
// ids of the action behind which its links are free, and of the last one.
//
// Guess uninstall-takes-snapshots: the uninstall of sparse destroys the snapshots of the zone's
// datasets with them, where nothing was cloned from these (`zfs destroy -r` in uninstall.ksh).
// Check: `sledctl instance delete NAME`; `zfs list -t snapshot`
func downZone(incarnation record.Incarnation, seen Observed, before string) (halted, gone string, actions []plan.Action) {
	z, there := seen.Inv.Zone(incarnation.Zone)
	if !there {
		return before, before, nil
	}
	halted = before
	for _, step := range zone.Removal(z) {
		step := step.(plan.Step)
		a := plan.Action{
			ID: step.Verb() + " " + incarnation.Zone, Object: "zone " + incarnation.Zone, Why: "is " + string(z.State), Change: plan.Remove,
			After: after(before), Step: step,
		}
		before = a.ID
		if step.Verb() == "zone.halt" {
			halted = a.ID
		}
		actions = append(actions, a)
	}
	return halted, before, actions
}

// downDatasets destroys what the removal of the zone leaves. The brands differ
// (sparse's uninstall destroys its datasets and its clone's origin, omicron1's
// destroys none), so only what they are known to leave is planned; the rest is
// reap's.
func downDatasets(incarnation record.Incarnation, seen Observed, gone string) []plan.Action {
	var actions []plan.Action
	remove := func(d zfs.Dataset, step plan.Step, why string, before string) string {
		a := plan.Action{
			ID: step.Verb() + " " + d.Name, Object: "dataset " + d.Name, Why: why, Change: plan.Remove, After: after(before),
			Step: step,
		}
		actions = append(actions, a)
		return a.ID
	}
	z, there := seen.Inv.Zone(incarnation.Zone)
	destroyed := there && z.State != zone.Configured && z.State != zone.Incomplete && zone.UninstallDestroys(z.Brand)
	before := gone
	if d, ok := seen.Inv.Dataset(incarnation.Dataset); ok && !destroyed {
		for _, child := range slices.Backward(seen.Inv.Below(incarnation.Dataset)) {
			before = remove(child, destroyStep(child), "of the zone", before)
		}
		before = remove(d, destroyStep(d), "of the zonepath", before)
	}
	if cloneLeft(incarnation, seen) {
		a := removeSnapshots(incarnation)
		a.After = after(before)
		actions = append(actions, a)
	}
	return actions
}

// cloneLeft reports whether the base has snapshots that a clone of it for this run
// has taken.
func cloneLeft(incarnation record.Incarnation, seen Observed) bool {
	return incarnation.BaseDataset != "" && slices.ContainsFunc(seen.Inv.Below(incarnation.BaseDataset), func(d zfs.Dataset) bool {
		return strings.HasSuffix(d.Name, "@"+cloneSnapshot(incarnation))
	})
}

// cloneSnapshot is the name that the ipkg brands' clone gives to the snapshots
// that it takes of the base and of all below it (omniosorg/pkg5,
// src/brand/ipkg/clone). Uninstall destroys the one that the zone was cloned
// from, and leaves the others.
func cloneSnapshot(incarnation record.Incarnation) string { return incarnation.Zone + "_snap" }

func removeSnapshots(incarnation record.Incarnation) plan.Action {
	step := zfs.DestroySnapshots{Dataset: incarnation.BaseDataset, Snapshot: cloneSnapshot(incarnation)}
	return plan.Action{
		ID: step.Verb() + " " + incarnation.Zone, Object: "snapshots " + step.Snapshot, Why: "left by the clone",
		Change: plan.Remove, Step: step,
	}
}

func destroyStep(d zfs.Dataset) plan.Step {
	if d.Type == "snapshot" {
		return zfs.DestroySnapshot{Name: d.Name, GUID: d.GUID}
	}
	return zfs.Destroy{Dataset: d.Name, GUID: d.GUID, Type: d.Type}
}

// removes lists the objects of the incarnations that are removed, for an intent.
func removes(incarnations []record.Incarnation, seen Observed) []operation.Object {
	var objects []operation.Object
	for _, incarnation := range incarnations {
		z, _ := seen.Inv.Zone(incarnation.Zone)
		d, _ := seen.Inv.Dataset(incarnation.Dataset)
		objects = append(
			objects, operation.Object{Kind: "zone", Name: incarnation.Zone, Identity: z.UUID},
			operation.Object{Kind: "dataset", Name: incarnation.Dataset, Identity: d.GUID},
		)
		for _, v := range incarnation.VNICs() {
			objects = append(objects, operation.Object{Kind: v.Kind(), Name: v.Name, Identity: v.MAC})
		}
	}
	return objects
}
