package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// Request names a snapshot of an instance.
type Request struct {
	Ref, Name string // of the instance, or its id; of the snapshot
	DryRun    bool
	// Reuse has Create leave one that exists as it is.
	Reuse bool
	// Keep, of one of a schedule, says which of the others stay; nil: it is of none.
	Keep Keep
}

// Create takes a snapshot of all disks of an instance that its guest may write to, in one moment on each
// pool. Errors: those of Settings.Instance; *NameError, *ExistsError, *DisksError, *RunningError,
// *GoneError, *TakenError; those of operation.Run.
func (s Settings) Create(ctx context.Context, env operation.Env, c Request) (Status, operation.Report, error) {
	if !naming.ValidVolume(c.Name) {
		return Status{}, operation.Report{}, &NameError{Name: c.Name}
	}
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return Status{}, operation.Report{}, err
	}
	i, err := s.Instance(view, c.Ref)
	if err != nil {
		return Status{}, operation.Report{}, view.Absent(err)
	}
	var made Record
	var names []string // of the ZFS snapshots, by disk
	report, err := operation.Run(ctx, env, operation.Request[[]zfs.Dataset]{
		Verb: "instance snapshot create", Subject: Subject(i.ID, c.Name), DryRun: c.DryRun,
		Look: func(ctx context.Context, h host.Host) ([]zfs.Dataset, error) { return lookAlone(ctx, h, i.datasets()) },
		Decide: func(view ledger.View, tree []zfs.Dataset, at operation.Stamp) (d operation.Decision, err error) {
			if i, err = s.Instance(view, i.ID); err == nil {
				err = Whole(view, i.ID)
			}
			if err != nil {
				return d, err
			}
			if old, err := Find(view, i.ID, c.Name); err == nil && c.Reuse && !old.Unfinished() {
				made = old
				return d, nil
			}
			d, made, names, err = i.taking(view, tree, c, at)
			return d, err
		},
		Seal: func(ctx context.Context, h host.Host) ([]ledger.Fact, error) {
			for n, name := range names {
				is, err := zfs.Get(ctx, h, name)
				if err != nil {
					return nil, err
				}
				made.Disks[n].GUID = is.GUID
			}
			f, err := made.fact()
			return []ledger.Fact{f}, err
		},
	})
	is := Status{Record: made, State: Ready}
	for _, v := range i.Volumes {
		is.Volumes = append(is.Volumes, v.Name)
	}
	return is, report, err
}

func (i Instance) datasets() (names []string) {
	for _, v := range i.Volumes {
		names = append(names, v.Dataset)
	}
	return names
}

// lookAlone lists volumes with their snapshots, those that are there, the oldest snapshot first. It
// refuses next to another owner, and if one of their pools does not answer (*PoolError).
func lookAlone(ctx context.Context, h host.Host, datasets []string) ([]zfs.Dataset, error) {
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Rival, inventory.Pools}})
	if err := inv.Know(inventory.Rival, inventory.Pools); err != nil {
		return nil, err
	}
	for _, name := range datasets {
		if err := silent(inv, name); err != nil {
			return nil, err
		}
	}
	return look(ctx, h, datasets)
}

// silent is a *PoolError if the pool of a dataset does not answer.
func silent(inv *inventory.Inventory, dataset string) error {
	pool, _, _ := strings.Cut(dataset, "/")
	if why := inv.Unseen(pool); why != "" {
		return &PoolError{Why: why}
	}
	return nil
}

// look asks once, and for each by itself only where one is gone. Their pools answer.
func look(ctx context.Context, h host.Host, datasets []string) ([]zfs.Dataset, error) {
	tree, err := zfs.List(ctx, h, datasets, []string{naming.PropertySnapshot, "volsize"})
	if !errors.Is(err, host.ErrNotFound) {
		return tree, err
	}
	tree = nil
	for _, name := range datasets {
		some, err := zfs.List(ctx, h, []string{name}, []string{naming.PropertySnapshot, "volsize"})
		if err != nil && !errors.Is(err, host.ErrNotFound) {
			return nil, err
		}
		tree = append(tree, some...)
	}
	return tree, nil
}

// taking is pure: what takes a snapshot, and what of an earlier try that died is removed first.
func (i Instance) taking(view ledger.View, tree []zfs.Dataset, c Request, at operation.Stamp) (d operation.Decision, r Record, snapshots []string, err error) {
	name := c.Name
	old, err := Find(view, i.ID, name)
	known := err == nil
	byPool := map[string][]string{}
	for _, v := range i.Volumes {
		pool, _, _ := strings.Cut(v.Dataset, "/")
		snapshots = append(snapshots, naming.Snapshot(v.Dataset, name))
		byPool[pool] = append(byPool[pool], naming.Snapshot(v.Dataset, name))
	}
	switch {
	case known && !old.Unfinished():
		return d, r, nil, &ExistsError{Record: old}
	case len(i.Foreign) > 0 || len(i.Volumes) == 0:
		return d, r, nil, &DisksError{Instance: i.Name, Foreign: i.Foreign}
	case i.Running && len(byPool) > 1:
		return d, r, nil, &RunningError{Instance: i.Name, Why: "its disks lie on several pools: they would be of different moments"}
	}
	r = Record{Instance: i.ID, Of: i.Name, Name: name, Running: i.Running, Scheduled: c.Keep != nil, Created: at.Now}
	d.Plan.Policy = plan.Undo
	for n, v := range i.Volumes {
		is, there := find(tree, v.Dataset)
		left, exists := find(tree, snapshots[n])
		switch {
		case !there:
			return d, r, nil, &GoneError{Instance: i.Name, Name: name, What: "volume " + v.Name + " is gone"}
		case exists && (!known || !marked(left, i.ID)):
			return d, r, nil, &TakenError{Snapshot: snapshots[n]}
		case exists:
			d.Plan.Actions = append(d.Plan.Actions, remove(left, "left by one that did not end"))
			d.Intent.Removes = append(d.Intent.Removes, operation.Object{Kind: kind, Name: left.Name, Identity: left.GUID})
		}
		r.Disks = append(r.Disks, Disk{Volume: v.ID, Size: is.Volsize})
		d.Intent.Makes = append(d.Intent.Makes, operation.Object{Kind: kind, Name: snapshots[n]})
	}
	for _, pool := range slices.Sorted(maps.Keys(byPool)) {
		step := zfs.SnapshotAll{Names: byPool[pool], Properties: []zfs.Property{{Name: naming.PropertySnapshot, Value: i.ID}}}
		d.Plan.Actions = append(d.Plan.Actions, plan.Action{
			ID: step.Verb() + " " + pool, Object: kind + " " + strings.Join(step.Names, ", "), Change: plan.Create, Step: step,
			Why: fmt.Sprintf("%d of the disks of %s", len(step.Names), i.Name),
		})
	}
	d.Plan.Actions = plan.Chain(d.Plan.Actions...)
	f, err := r.fact()
	d.OnStart, d.OnUndo = []ledger.Fact{f}, []ledger.Fact{r.Forget()}
	return d, r, snapshots, err
}

// kind is what a ZFS snapshot is called among the objects of an operation.
const kind = "snapshot"

// marked reports whether a ZFS snapshot is one that sledctl took of an instance.
func marked(d zfs.Dataset, instance string) bool {
	mark := d.User[naming.PropertySnapshot]
	return d.Type == zfs.TypeSnapshot && mark.Source == zfs.Local && mark.Value == instance
}

// remove destroys a ZFS snapshot.
func remove(d zfs.Dataset, why string) plan.Action {
	step := zfs.DestroySnapshot{Name: d.Name, GUID: d.GUID}
	return plan.Action{ID: step.Verb() + " " + d.Name, Object: kind + " " + d.Name, Why: why, Change: plan.Remove, Step: step}
}
