package reap

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/key"
	"github.com/sledctl/sledctl/illumos/opte"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// builder puts the plan together, object by object.
type builder struct {
	*Findings
	bundler
	decision operation.Decision
	after    map[string]string // zone -> the action behind which its links are free
	waited   map[string]bool   // objects, by kind and name, that others wait for
	last     map[string]string // of those, the last action
	planned  map[string]bool   // by id: what lies in two objects that go, goes once
}

// removal plans the removal of all that goes. What holds another goes first: a
// zone, then its links, with their addresses, its dataset, the snapshots on its
// base, and then the base.
func (f *Findings) removal(bundles bundler) operation.Decision {
	b := &builder{Findings: f, bundler: bundles, decision: operation.Decision{Plan: plan.Plan{Policy: plan.Continue}},
		after: map[string]string{}, waited: map[string]bool{}, last: map[string]string{}}
	for _, keys := range f.first {
		for _, key := range keys {
			b.waited[key] = true
		}
	}
	var going []*Object
	for i := range f.Objects {
		if f.Objects[i].Removed {
			going = append(going, &f.Objects[i])
		}
	}
	b.planned = make(map[string]bool, 4*len(going))
	b.decision.Plan.Actions = make([]plan.Action, 0, 4*len(going))
	b.decision.Intent.Removes = make([]operation.Object, 0, len(going))
	for len(going) > 0 {
		var left []*Object
		for _, o := range going {
			if b.mustWait(o) {
				left = append(left, o)
			} else {
				b.add(*o)
			}
		}
		if len(left) == len(going) {
			for _, o := range left { // two that wait for each other: the host will say which cannot go
				b.add(*o)
			}
			break
		}
		going = left
	}
	return b.decision
}

// mustWait says whether objects that go before this one are not planned yet.
func (b *builder) mustWait(o *Object) bool {
	if len(b.first) == 0 {
		return false
	}
	return slices.ContainsFunc(b.first[o.key()], func(key string) bool {
		_, done := b.last[key]
		return !done
	})
}

func (b *builder) add(o Object) {
	if o.Kind != KindRecord {
		b.decision.Intent.Removes = append(b.decision.Intent.Removes, operation.Object{Kind: o.Kind, Name: o.Name, Identity: o.Identity})
	}
	actions := b.actions(o)
	if n := len(actions); n > 0 && b.waited[o.key()] {
		b.last[o.key()] = actions[n-1].ID
	}
	for i := range actions {
		if len(actions[i].After) == 0 {
			for _, key := range b.first[o.key()] {
				actions[i].After = append(actions[i].After, b.last[key])
			}
		}
		if !b.planned[actions[i].ID] {
			b.planned[actions[i].ID] = true
			b.decision.Plan.Actions = append(b.decision.Plan.Actions, actions[i])
		}
	}
}

func (b *builder) actions(o Object) []plan.Action {
	switch o.Kind {
	case KindZone:
		actions := b.zone(o, b.bundler)
		b.after[o.Name] = actions[len(actions)-1].ID
		return append(actions, b.cloneSnapshots(o, b.after[o.Name])...)
	case KindVNIC, KindPort:
		return b.vnic(o)
	case KindEtherstub:
		return []plan.Action{remove(o, vnic.DeleteEtherstub{Name: o.Name})}
	case KindAddress:
		return b.address(o)
	case KindDataset:
		kept := b.ofRoot(o, b.inv)
		return plan.Chain(slices.Concat(kept, b.unmounts(o.Name, kept), b.dataset(o.Name, o.Reason))...)
	case KindSnapshot:
		return b.dataset(o.Name, o.Reason)
	case KindVolume:
		return b.volume(o)
	case KindDirectory:
		return []plan.Action{remove(o, zone.RemoveHome{Path: o.Name})}
	case KindConfig:
		inode, _ := strconv.ParseUint(o.Identity, 10, 64)
		return []plan.Action{remove(o, zone.RemoveConfig{Name: o.Name, Inode: inode})}
	case KindKey:
		return []plan.Action{remove(o, key.Wipe{File: o.Name})}
	case KindSecret:
		return []plan.Action{remove(o, secrets.Drop{Files: []string{o.Name}})}
	}
	return nil
}

// remove is an action on an object that is its own.
func remove(o Object, step plan.Step) plan.Action {
	return plan.Action{ID: step.Verb() + " " + o.Name, Object: o.key(), Why: o.Reason, Change: plan.Remove, Step: step}
}

// zone removes a zone by the steps that its state needs, and its dataset if
// the brand leaves it. Its evidence is kept first.
func (f *Findings) zone(o Object, bundles bundler) []plan.Action {
	z, _ := f.inv.Zone(o.Name)
	actions := bundles.ofZone(o, z)
	for _, step := range zone.Removal(z) {
		actions = append(actions, remove(o, step.(plan.Step)))
	}
	if !zone.UninstallDestroys(z.Brand) || z.State == zone.Configured || z.State == zone.Incomplete {
		if name := f.homes[z.Path]; name != "" && path.Base(name) == path.Base(z.Path) {
			actions = append(actions, f.dataset(name, o.Reason)...)
		}
	}
	return plan.Chain(actions...)
}

// cloneSnapshots destroys what the clone of a zone left on its base, once the
// zone is gone: the base itself and datasets below it each have one, of the
// same name, with a number where there was one before.
func (f *Findings) cloneSnapshots(o Object, before string) []plan.Action {
	var actions []plan.Action
	for _, snapshot := range f.taken[o.Name] {
		for _, base := range f.left[snapshot] {
			step := zfs.DestroySnapshots{Dataset: base, Snapshot: snapshot}
			actions = append(actions, plan.Action{
				ID: step.Verb() + " " + base + "@" + snapshot, Object: "snapshots " + snapshot, Why: "left by the clone", Change: plan.Remove,
				After: []string{before}, Step: step,
			})
		}
	}
	slices.SortFunc(actions, func(a, b plan.Action) int { return strings.Compare(a.ID, b.ID) })
	return actions
}

// vnic deletes a VNIC, once its zone has given it back. A link with an
// interface of the global zone over it is busy.
func (b *builder) vnic(o Object) []plan.Action {
	l, _ := b.inv.Link(o.Name)
	a := remove(o, vnic.Delete{Name: l.Name, MAC: l.MAC, Over: l.Over})
	if o.Kind == KindPort {
		a = remove(o, opte.Delete{Name: l.Name, MAC: l.MAC})
	}
	if id := cmp.Or(b.after[l.Zone], b.after[b.nets[l.Name]]); id != "" {
		a.After = []string{id}
	}
	if !b.plumbed(o.Name) {
		return []plan.Action{a}
	}
	return plan.Chain(b.unplumb(o.Name, o.Reason), a)
}

// address removes an address with its interface, whose link is removed.
func (b *builder) address(o Object) []plan.Action {
	link, _, _ := strings.Cut(o.Name, "/")
	return []plan.Action{b.unplumb(link, o.Reason)}
}

// Guess delete-if-takes-addresses: `ipadm delete-if` of an interface that has addresses of static
// and addrconf type takes them along, as its manual says.
// Check: those commands, then `ipadm show-addr`
func (b *builder) unplumb(link, why string) plan.Action {
	step := ipadm.DeleteInterface{Link: link}
	return plan.Action{ID: step.Verb() + " " + link, Object: "interface " + link, Why: why, Change: plan.Remove, Step: step}
}

// plumbed says whether the global zone has an address on a link.
func (f *Findings) plumbed(link string) bool {
	addresses, _ := f.inv.Addresses()
	return slices.ContainsFunc(addresses, func(a ipadm.Address) bool { return strings.HasPrefix(a.Object, link+"/") })
}

// dataset destroys a dataset and what lies in it, deepest first.
func (f *Findings) dataset(name, why string) []plan.Action {
	var actions []plan.Action
	add := func(d zfs.Dataset) {
		var step plan.Step = zfs.Destroy{Dataset: d.Name, GUID: d.GUID, Type: d.Type}
		if d.Type == zfs.TypeSnapshot {
			step = zfs.DestroySnapshot{Name: d.Name, GUID: d.GUID}
		}
		kind := KindDataset
		if d.Name == name && d.Type == zfs.TypeSnapshot {
			kind = KindSnapshot
		}
		actions = append(actions, plan.Action{ID: step.Verb() + " " + d.Name, Object: kind + " " + d.Name, Why: why, Change: plan.Remove, Step: step})
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
	return plan.Chain(actions...)
}
