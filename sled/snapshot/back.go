package snapshot

import (
	"context"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Rollback takes the disks of a stopped instance back to a snapshot, the latest of each of them; what
// was written since is lost. Errors: *NotFoundError, *RunningError, *LaterError, *GoneError; those of
// operation.Run.
func (s Settings) Rollback(ctx context.Context, env operation.Env, c Request) (Status, operation.Report, error) {
	r, datasets, err := s.found(ctx, env, c)
	if err != nil {
		return Status{}, operation.Report{}, err
	}
	var is Status
	report, err := operation.Run(ctx, env, operation.Request[[]zfs.Dataset]{
		Verb: "instance snapshot rollback", Subject: naming.KeyInstance + r.Instance, DryRun: c.DryRun,
		Look: func(ctx context.Context, h host.Host) ([]zfs.Dataset, error) { return lookAlone(ctx, h, datasets) },
		Decide: func(view ledger.View, tree []zfs.Dataset, _ operation.Stamp) (operation.Decision, error) {
			r, err := Find(view, r.Instance, r.Name)
			if err != nil {
				return operation.Decision{}, err
			}
			is = s.status(view, r, tree)
			return s.rollingBack(view, tree, r)
		},
	})
	return is, report, err
}

// found is a recorded snapshot, and the volumes that it is of, as far as the ledger knows them.
func (s Settings) found(ctx context.Context, env operation.Env, c Request) (r Record, datasets []string, err error) {
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return r, nil, err
	}
	if r, err = Find(view, c.Ref, c.Name); err != nil {
		return r, nil, view.Absent(err)
	}
	return r, s.datasets(view, r), nil
}

// Objects are the ZFS snapshots of a snapshot, as reports name them.
func (s Settings) Objects(view ledger.View, r Record) (names []string) {
	for _, dataset := range s.datasets(view, r) {
		names = append(names, kind+" "+naming.Snapshot(dataset, r.Name))
	}
	return names
}

func (s Settings) datasets(view ledger.View, r Record) (names []string) {
	for _, d := range r.Disks {
		if v, known := s.Volume(view, d.Volume); known {
			names = append(names, v.Dataset)
		}
	}
	return names
}

// rollingBack is pure: what takes the disks of an instance back.
func (s Settings) rollingBack(view ledger.View, tree []zfs.Dataset, r Record) (d operation.Decision, err error) {
	i, err := s.Instance(view, r.Instance)
	switch {
	case err != nil:
		return d, err
	case i.Running:
		return d, &RunningError{Instance: i.Name, Why: "its disks cannot be taken back under it"}
	case r.Unfinished():
		return d, &GoneError{Instance: i.Name, Name: r.Name, What: unfinished}
	}
	d.Plan.Policy = plan.Stop
	d.Intent.Changes = []operation.Object{{Kind: kind, Name: r.Name}} // for status: how it is finished
	for _, disk := range r.Disks {
		at := slices.IndexFunc(i.Volumes, func(v Volume) bool { return v.ID == disk.Volume })
		if at < 0 {
			v, _ := s.Volume(view, disk.Volume)
			return d, &GoneError{Instance: i.Name, Name: r.Name, What: "volume " + strings.TrimSpace(v.Name+" "+disk.Volume) + " is no disk of the instance"}
		}
		v := i.Volumes[at]
		is, there := find(tree, naming.Snapshot(v.Dataset, r.Name))
		if !there || is.GUID != disk.GUID {
			return d, &GoneError{Instance: i.Name, Name: r.Name, What: "that of volume " + v.Name + " is gone"}
		}
		if later := laterThan(tree, is.Name); len(later) > 0 {
			return d, &LaterError{Instance: i.Name, Name: r.Name, Later: later}
		}
		step := zfs.Rollback{Name: is.Name, GUID: is.GUID}
		d.Plan.Actions = append(d.Plan.Actions, plan.Action{
			ID: step.Verb() + " " + v.Dataset, Object: "volume " + v.Dataset, Why: "as it was at " + r.Created.Format("2006-01-02 15:04:05 MST"), Change: plan.Modify, Step: step,
		})
		d.Intent.Changes = append(d.Intent.Changes, operation.Object{Kind: "volume", Name: v.Dataset})
		if disk.Size != v.Size {
			if !v.Thin { // its reservation is a property, and does not go back with its size
				room := zfs.Set{Dataset: v.Dataset, Name: "refreservation", Value: "auto"}
				d.Plan.Actions = append(d.Plan.Actions, plan.Action{ID: room.Verb() + " " + v.Dataset, Object: "volume " + v.Dataset, Why: "room for all of it is kept", Change: plan.Modify, Step: room})
			}
			f, err := s.Resized(view, v.ID, disk.Size)
			if err != nil {
				return d, err
			}
			d.OnSuccess = append(d.OnSuccess, f)
		}
	}
	d.Plan.Actions = plan.Chain(d.Plan.Actions...)
	r.RollingBack = true
	begun, err := r.fact()
	if err != nil {
		return d, err
	}
	r.RollingBack = false
	ended, err := r.fact()
	d.OnStart, d.OnSuccess = []ledger.Fact{begun}, append(d.OnSuccess, ended)
	return d, err
}

// laterThan are the snapshots of the same volume behind one, as an operator calls them.
func laterThan(tree []zfs.Dataset, name string) (later []string) {
	head, _, _ := strings.Cut(name, "@")
	behind := false
	for _, d := range tree {
		if of, short, _ := strings.Cut(d.Name, "@"); behind && of == head && short != "" {
			later = append(later, strings.TrimPrefix(short, naming.SnapshotPrefix))
		}
		behind = behind || d.Name == name
	}
	return later
}

// Delete removes a snapshot. Of one that does not exist nothing is done: gone is false then. Errors:
// *NeededError, *HalfError; those of operation.Run.
func (s Settings) Delete(ctx context.Context, env operation.Env, c Request) (gone bool, report operation.Report, err error) {
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return false, report, err
	}
	all, err := Of(view, c.Ref)
	at := slices.IndexFunc(all, func(r Record) bool { return r.Name == c.Name })
	if err != nil || at < 0 {
		return false, report, err
	}
	datasets := s.datasets(view, all[at])
	report, err = operation.Run(ctx, env, operation.Request[[]zfs.Dataset]{
		Verb: "instance snapshot delete", Subject: all[at].key(), DryRun: c.DryRun,
		Look: func(ctx context.Context, h host.Host) ([]zfs.Dataset, error) { return lookAlone(ctx, h, datasets) },
		Decide: func(view ledger.View, tree []zfs.Dataset, _ operation.Stamp) (d operation.Decision, err error) {
			r, err := Find(view, all[at].Instance, c.Name)
			switch {
			case err != nil:
				return d, nil // another process has removed it
			case r.RollingBack && s.exists(view, r.Instance):
				return d, &HalfError{Instance: r.Of, Name: r.Name}
			}
			if clones := s.Clones(view, r.Of+"@"+r.Name); len(clones) > 0 {
				return d, &NeededError{Instance: r.Of, Name: r.Name, By: clones}
			}
			d.Plan.Policy, d.OnSuccess = plan.Stop, []ledger.Fact{r.Forget()}
			r.Removing = true
			begun, err := r.fact()
			if err != nil {
				return d, err
			}
			d.OnStart = []ledger.Fact{begun}
			for _, disk := range r.Disks {
				v, _ := s.Volume(view, disk.Volume)
				is, there := find(tree, naming.Snapshot(v.Dataset, r.Name))
				if !there || !marked(is, r.Instance) || disk.GUID != "" && is.GUID != disk.GUID {
					continue // it is gone, or another one
				}
				d.Plan.Actions = append(d.Plan.Actions, remove(is, "it was asked for"))
				d.Intent.Removes = append(d.Intent.Removes, operation.Object{Kind: kind, Name: is.Name, Identity: is.GUID})
			}
			d.Plan.Actions = plan.Chain(d.Plan.Actions...)
			return d, nil
		},
	})
	return true, report, err
}

// exists reports whether an instance does. Nobody goes back to a snapshot of one that is deleted.
func (s Settings) exists(view ledger.View, instance string) bool {
	_, err := s.Instance(view, instance)
	return err == nil
}

// List tells the status of the snapshots of an instance; of all, if none is named.
func (s Settings) List(ctx context.Context, h host.Host, view ledger.View, ref string) ([]Status, error) {
	all, err := All(view)
	if ref != "" {
		all, err = Of(view, ref)
	}
	var datasets []string
	for _, r := range all {
		datasets = append(datasets, s.datasets(view, r)...)
	}
	if err != nil || len(all) == 0 {
		return []Status{}, err
	}
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Pools}})
	if err := inv.Know(inventory.Pools); err != nil {
		return nil, err
	}
	slices.Sort(datasets)
	answering := slices.DeleteFunc(slices.Compact(datasets), func(name string) bool { return silent(inv, name) != nil })
	tree, err := look(ctx, h, answering)
	statuses := make([]Status, len(all))
	for i, r := range all {
		statuses[i] = s.status(view, r, tree)
		for _, name := range s.datasets(view, r) {
			if hidden := silent(inv, name); hidden != nil {
				statuses[i].State, statuses[i].Reason = Unseen, hidden.Error()
			}
		}
	}
	return statuses, err
}
