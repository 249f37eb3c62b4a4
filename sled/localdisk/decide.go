package localdisk

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// find gives a dataset of a tree.
func find(tree []zfs.Dataset, name string) (zfs.Dataset, bool) {
	i := slices.IndexFunc(tree, func(d zfs.Dataset) bool { return d.Name == name })
	if i < 0 {
		return zfs.Dataset{}, false
	}
	return tree[i], true
}

// decide is pure: what makes the local disk what is wanted, from what is recorded and what there is
// of it.
func (w Wanted) decide(old Record, known bool, tree []zfs.Dataset) (operation.Decision, Record, error) {
	next := old
	next.Removing, next.Size = false, w.Size
	next.Quota = cmp.Or(w.Quota, old.Quota, QuotaFor(w.Size))
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Undo}}
	home, there := find(tree, next.Dataset())
	actions, err := next.home(home, there)
	if err != nil {
		return d, old, err
	}
	if there {
		d.Intent.Changes = changed(actions)
	} else {
		d.Intent.Makes = append(d.Intent.Makes, operation.Object{Kind: "dataset", Name: next.Dataset()})
	}
	switch vol, exists := find(tree, next.Volume()); {
	case !exists:
		actions = append(actions, next.create())
		d.Intent.Makes = append(d.Intent.Makes, operation.Object{Kind: "dataset", Name: next.Volume()})
	case vol.Type != zfs.TypeVolume:
		return d, old, &MismatchError{Dataset: vol.Name, Property: "type", Is: vol.Type, Want: zfs.TypeVolume}
	case vol.Volsize != next.Size:
		return d, old, &MismatchError{Dataset: vol.Name, Property: "volsize", Is: strconv.FormatUint(vol.Volsize, 10), Want: strconv.FormatUint(next.Size, 10)}
	}
	d.Plan.Actions = plan.Chain(actions...)
	if !known || next != old {
		fact, err := next.fact()
		if err != nil {
			return d, old, err
		}
		d.OnSuccess = []ledger.Fact{fact}
	}
	return d, next, nil
}

// home are the actions that make the dataset around the local disk, or set its properties.
func (r Record) home(is zfs.Dataset, there bool) ([]plan.Action, error) {
	size := strconv.FormatUint(r.Quota, 10)
	place := "/" + r.ID.String() // as the sled agent has it: it is never mounted
	if !there {
		return []plan.Action{{
			ID: "zfs.create " + r.Dataset(), Object: "dataset " + r.Dataset(), Why: "the local disk lies in it", Change: plan.Create,
			Step: zfs.Create{Dataset: r.Dataset(), Properties: []zfs.Property{
				{Name: "canmount", Value: "off"}, {Name: "mountpoint", Value: place}, {Name: naming.PropertyLocalDisk, Value: r.ID.String()},
				{Name: "compression", Value: "off"}, {Name: "quota", Value: size}, {Name: "reservation", Value: size},
			}},
		}}, nil
	}
	mark := is.User[naming.PropertyLocalDisk]
	switch {
	case is.Type != zfs.TypeFilesystem:
		return nil, &MismatchError{Dataset: is.Name, Property: "type", Is: is.Type, Want: zfs.TypeFilesystem}
	case is.Mountpoint != place:
		return nil, &MismatchError{Dataset: is.Name, Property: "mountpoint", Is: is.Mountpoint, Want: place}
	case mark.Source == zfs.Local && mark.Value != r.ID.String():
		return nil, &MismatchError{Dataset: is.Name, Property: naming.PropertyLocalDisk, Is: mark.Value, Want: r.ID.String()}
	}
	set := []zfs.Set{
		{Name: "quota", Value: size, Old: sizeText(is.Quota), OldSource: zfs.Local}, {Name: "reservation", Value: size, Old: sizeText(is.Reservation), OldSource: zfs.Local},
		{Name: "compression", Value: "off", Old: is.Compression}, {Name: naming.PropertyLocalDisk, Value: r.ID.String()},
	}
	if mark.Source == zfs.Local {
		set[3].Old = mark.Value
	}
	if is.Quota != 0 && r.Quota < is.Quota { // a reservation never goes above the quota
		set[0], set[1] = set[1], set[0]
	}
	var actions []plan.Action
	for _, step := range set {
		if step.Old == step.Value {
			continue
		}
		step.Dataset = is.Name
		actions = append(actions, plan.Action{
			ID: "zfs.set " + is.Name + " " + step.Name, Object: "dataset " + is.Name, Why: step.Name + " is " + cmp.Or(step.Old, "not set") + ", wanted " + step.Value,
			Change: plan.Modify, Step: step,
		})
	}
	return actions, nil
}

// sizeText is a size as it is set.
func sizeText(n uint64) string {
	if n == 0 {
		return "none"
	}
	return strconv.FormatUint(n, 10)
}

// create makes the local disk.
//
// Guess volumes-are-not-raw: the sled agent makes local disks with `rawvol=on`, which few releases
// of illumos know and whose zeroing has to be waited for; an ordinary volume of the same size, whose
// space is reserved, serves a guest as well. A sled agent that gets the pool back uses it, and
// refuses to delete it.
// Check: `zfs create -V 1G -o rawvol=on POOL/v` on a sled of Oxide's
func (r Record) create() plan.Action {
	return plan.Action{
		ID: "zfs.create-volume " + r.Volume(), Object: "dataset " + r.Volume(), Why: "a VM's disk", Change: plan.Create,
		Step: zfs.CreateVolume{Dataset: r.Volume(), Size: r.Size, Block: Block},
	}
}

// changed are the objects that actions set something on, each with what it was.
func changed(actions []plan.Action) []operation.Object {
	var all []operation.Object
	for _, a := range actions {
		if set, ok := a.Step.(zfs.Set); ok {
			all = append(all, operation.Object{Kind: "dataset", Name: set.Dataset, Old: set.Name + "=" + set.Old})
		}
	}
	return all
}

// removal removes all that there is of a local disk, what lies deepest first. The reservation ends
// before: what is freed in the background would otherwise count twice (omicron
// sled-agent/src/sled_agent.rs).
func removal(r Record, known bool, tree []zfs.Dataset) (operation.Decision, error) {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}}
	if known {
		d.OnSuccess = []ledger.Fact{r.Forget()}
	}
	home, there := find(tree, r.Dataset())
	if !there {
		return d, nil
	}
	if marked, ok := Of(home); !known && (!ok || marked.ID != r.ID) {
		return d, &ForeignError{Dataset: home.Name}
	}
	if home.Reservation > 0 {
		d.Plan.Actions = append(d.Plan.Actions, plan.Action{
			ID: "zfs.set " + home.Name + " reservation", Object: "dataset " + home.Name, Why: "it goes", Change: plan.Modify,
			Step: zfs.Set{Dataset: home.Name, Name: "reservation", Value: "none", Old: sizeText(home.Reservation), OldSource: zfs.Local},
		})
		d.Intent.Changes = changed(d.Plan.Actions)
	}
	for _, is := range deepestFirst(tree) {
		var step plan.Step = zfs.Destroy{Dataset: is.Name, GUID: is.GUID, Type: is.Type}
		if is.Type == zfs.TypeSnapshot {
			step = zfs.DestroySnapshot{Name: is.Name, GUID: is.GUID}
		}
		d.Plan.Actions = append(d.Plan.Actions, plan.Action{ID: step.Verb() + " " + is.Name, Object: "dataset " + is.Name, Why: "it was asked for", Change: plan.Remove, Step: step})
		d.Intent.Removes = append(d.Intent.Removes, operation.Object{Kind: "dataset", Name: is.Name, Identity: is.GUID})
	}
	d.Plan.Actions = plan.Chain(d.Plan.Actions...)
	r.Removing = true
	fact, err := r.fact()
	d.OnStart, d.OnSuccess = []ledger.Fact{fact}, []ledger.Fact{r.Forget()}
	return d, err
}

// deepestFirst orders datasets so that each goes before what it lies in, and a snapshot before
// its dataset.
func deepestFirst(tree []zfs.Dataset) []zfs.Dataset {
	all := slices.Clone(tree)
	slices.SortStableFunc(all, func(a, b zfs.Dataset) int {
		return cmp.Or(cmp.Compare(strings.Count(b.Name, "/"), strings.Count(a.Name, "/")), cmp.Compare(path.Base(b.Name), path.Base(a.Name)))
	})
	return all
}
