package zfs

import (
	"errors"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Destroying: zfs_do_destroy in usr/src/cmd/zfs/zfs_main.c, zfs_iter_dependents
// in usr/src/lib/libzfs/common/libzfs_iter.c and what the kernel refuses.

// DestroyOptions are those of zfs destroy.
type DestroyOptions struct {
	Recursive bool // -r: with all that is below
}

// Destroy destroys a file system or volume, or the snapshots of a name with
// "@". It is not atomic: what was destroyed before a failure is gone.
func Destroy(tx *world.Tx, name string, o DestroyOptions) error {
	head, short, snapshots := strings.Cut(name, "@")
	top, err := OpenDataset(tx, head, typeHeads)
	if err != nil {
		return err
	}
	chosen := []*world.Dataset{top}
	switch {
	case snapshots:
		own, below := tx.DatasetsOf(head)
		chosen = slices.DeleteFunc(slices.Concat(own, below), func(d *world.Dataset) bool {
			return d.Name != name && !(o.Recursive && strings.HasSuffix(d.Name, "@"+short))
		})
	case !strings.Contains(name, "/") && o.Recursive:
		return world.NotSimulated("zfs destroy -r of a pool")
	case !strings.Contains(name, "/"):
		return refuse("cannot destroy '%[1]s': operation does not apply to pools\n"+
			"use 'zfs destroy -r %[1]s' to destroy all datasets in the pool\n"+
			"use 'zpool destroy %[1]s' to destroy the pool itself", name)
	}
	if len(chosen) == 0 {
		return refuse("could not find any snapshots to destroy; check snapshot names.")
	}
	var refused error
	var all []*world.Dataset
	for _, d := range chosen {
		below := dependents(tx, d)
		refused = joinRefusals(refused, checkDependents(d, below, o.Recursive || snapshots))
		all = append(append(all, below...), d)
	}
	for _, d := range all {
		if refused == nil {
			refused = destroyOne(tx, d)
		}
	}
	return refused
}

// checkDependents refuses to destroy what something depends on that goes not with
// it.
func checkDependents(d *world.Dataset, dependents []*world.Dataset, recursive bool) error {
	var children, clones []string
	for _, dependent := range dependents {
		switch {
		case !isBelow(dependent.Name, d.Name):
			clones = append(clones, dependent.Name)
		case !recursive:
			children = append(children, dependent.Name)
		}
	}
	switch {
	case children != nil:
		return refuse("cannot destroy '%s': %s has children\nuse '-r' to destroy the following datasets:\n%s",
			d.Name, d.Type, strings.Join(children, "\n"))
	case clones != nil:
		return refuse("cannot destroy '%s': %s has dependent clones\nuse '-R' to destroy the following datasets:\n%s",
			d.Name, d.Type, strings.Join(clones, "\n"))
	}
	return nil
}

// lineage is the datasets by what they depend on.
type lineage struct {
	tx     *world.Tx
	clones map[string][]*world.Dataset // by their origin
	taken  map[*world.Dataset]bool
	order  []*world.Dataset
}

// dependents are what must go before d: what is below it, and the clones of its
// snapshots with all that is theirs, each before what it depends on.
func dependents(tx *world.Tx, d *world.Dataset) []*world.Dataset {
	l := &lineage{tx: tx, clones: map[string][]*world.Dataset{}, taken: map[*world.Dataset]bool{d: true}}
	for _, o := range ofPool(tx, PoolName(d.Name)) {
		if o.Origin != "" {
			l.clones[o.Origin] = append(l.clones[o.Origin], o)
		}
	}
	l.visit(d)
	return l.order
}

// visit lists what depends on d: file systems and volumes before snapshots, as
// iter_dependents_cb does.
func (l *lineage) visit(d *world.Dataset) {
	for _, o := range append(Children(l.tx, d.Name), Snapshots(l.tx, d.Name)...) {
		l.take(o)
	}
	for _, o := range l.clones[d.Name] {
		l.take(o)
	}
}

func (l *lineage) take(d *world.Dataset) {
	if !l.taken[d] {
		l.taken[d] = true
		l.visit(d)
		l.order = append(l.order, d)
	}
}

// destroyOne destroys a dataset that nothing depends on.
func destroyOne(tx *world.Tx, d *world.Dataset) error {
	if Kind(d) != TypeSnapshot && given(tx, d.Name) {
		return refuse("cannot destroy '%s': dataset is busy", d.Name)
	}
	if err := Unmount(tx, d.Name, false); err != nil {
		return err
	}
	where, source := mountpoint(tx, d)
	managed := Kind(d) == TypeFilesystem && strings.HasPrefix(where, "/") && source != SourceLocal &&
		word(tx, d, "canmount") != "off" && word(tx, d, "zoned") == "off"
	if err := remove(tx, d); err != nil {
		return err
	}
	if managed {
		removeMountpoint(tx, where)
	}
	return nil
}

// remove takes a dataset out of the state.
func remove(tx *world.Tx, d *world.Dataset) error {
	err := errors.Join(discard(tx, d), removeDevices(tx, d))
	tx.TouchDataset(d.Name)
	delete(tx.State.Datasets, d.Name)
	return err
}
