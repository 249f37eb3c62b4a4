package zfs

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Destroying: zfs_do_destroy in usr/src/cmd/zfs/zfs_main.c, zfs_iter_dependents
// in usr/src/lib/libzfs/common/libzfs_iter.c and what the kernel refuses.

// DestroyOptions are those of zfs destroy.
type DestroyOptions struct {
	Recursive bool // -r: with all that is below
	Clones    bool // -R: with all that depends on it
	Force     bool // -f: unmount what is busy
	Defer     bool // -d: later, if something holds it; snapshots only
	DryRun    bool // -n
	// Each, if set, is called with each dataset before it is destroyed.
	Each func(name string)
}

// Destroy destroys a file system or volume, or the snapshots of a name with
// "@": ranges "a%b" and lists "a,b" too. It is not atomic: what was destroyed
// before a failure is gone.
func Destroy(tx *world.Tx, name string, o DestroyOptions) error {
	o.Recursive = o.Recursive || o.Clones
	if strings.Contains(name, "%") || o.Defer {
		return world.NotSimulated("zfs destroy -d, or of a range of snapshots")
	}
	if head, spec, ok := strings.Cut(name, "@"); ok {
		return destroySnapshots(tx, head, spec, o)
	}
	d, err := OpenDataset(tx, name, TypeDataset)
	if err != nil {
		return err
	}
	if !o.Recursive && Kind(d) == TypeFilesystem && !strings.Contains(name, "/") {
		return refuse("cannot destroy '%[1]s': operation does not apply to pools\n"+
			"use 'zfs destroy -r %[1]s' to destroy all datasets in the pool\n"+
			"use 'zpool destroy %[1]s' to destroy the pool itself", name)
	}
	if err := checkDependents(tx, d, o); err != nil {
		return err
	}
	for _, below := range append(dependents(tx, d), d) {
		if err := destroyOne(tx, below, o); err != nil {
			return err
		}
	}
	return nil
}

// checkDependents refuses to destroy what something depends on that the
// options do not include.
func checkDependents(tx *world.Tx, d *world.Dataset, o DestroyOptions) error {
	if o.Clones {
		return nil
	}
	var children, clones []string
	for _, dependent := range dependents(tx, d) {
		switch {
		case isBelow(dependent.Name, d.Name):
			if !o.Recursive {
				children = append(children, dependent.Name)
			}
		case o.Recursive || Kind(d) == TypeSnapshot:
			clones = append(clones, dependent.Name)
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

// dependents are what must go before d: what is below it, and the clones of its
// snapshots with all that is theirs, each before what it depends on.
func dependents(tx *world.Tx, d *world.Dataset) []*world.Dataset {
	l := &lineage{
		below: map[string][]*world.Dataset{}, clones: map[string][]*world.Dataset{},
		met: map[*world.Dataset]bool{d: true}, taken: map[*world.Dataset]bool{d: true},
	}
	l.meet(tx, d)
	l.visit(d)
	return l.order
}

// lineage is the datasets that depend on one, by what they depend on.
type lineage struct {
	below, clones map[string][]*world.Dataset
	met, taken    map[*world.Dataset]bool
	order         []*world.Dataset
}

// meet looks once at all datasets for those that depend on d, and again for
// each clone that lies elsewhere.
func (l *lineage) meet(tx *world.Tx, d *world.Dataset) {
	var outside []*world.Dataset
	for _, o := range SelectDatasets(tx, func(o *world.Dataset) bool {
		return isBelow(o.Name, d.Name) || o.Origin == d.Name || isBelow(o.Origin, d.Name)
	}) {
		if l.met[o] {
			continue
		}
		l.met[o] = true
		if o.Origin != "" {
			l.clones[o.Origin] = append(l.clones[o.Origin], o)
		}
		l.below[parentName(o.Name)] = append(l.below[parentName(o.Name)], o)
		if !isBelow(o.Name, d.Name) {
			outside = append(outside, o)
		}
	}
	for _, o := range outside {
		l.meet(tx, o)
	}
}

// visit lists what depends on d: file systems and volumes before snapshots, as
// iter_dependents_cb does.
func (l *lineage) visit(d *world.Dataset) {
	for _, snapshots := range []bool{false, true} {
		for _, o := range l.below[d.Name] {
			if (Kind(o) == TypeSnapshot) == snapshots && isBelow(o.Name, d.Name) {
				l.take(o)
			}
		}
	}
	for _, o := range l.clones[d.Name] {
		l.take(o)
	}
}

func (l *lineage) take(d *world.Dataset) {
	if l.taken[d] {
		return
	}
	l.taken[d] = true
	l.visit(d)
	l.order = append(l.order, d)
}

// destroyOne destroys a dataset that nothing depends on.
func destroyOne(tx *world.Tx, d *world.Dataset, o DestroyOptions) error {
	if o.Each != nil {
		o.Each(d.Name)
	}
	if o.DryRun || Kind(d) == TypeFilesystem && !strings.Contains(d.Name, "/") {
		return nil // The root of a pool goes with the pool.
	}
	if suspended(tx, d.Name) {
		// Guess: before it is unmounted, which would wait for the pool.
		return refuse("cannot destroy '%s': %s", d.Name, suspendedIO)
	}
	if Kind(d) != TypeSnapshot {
		if lent(tx, d.Name) || volumeBusy(tx, d.Name) {
			return refuse("cannot destroy '%s': dataset is busy", d.Name)
		}
		if err := Unmount(tx, d.Name, o.Force); err != nil {
			return err
		}
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
	if err := discard(tx, d); err != nil {
		return err
	}
	delete(tx.State.Datasets, d.Name)
	return removeDevices(tx, d)
}

// destroySnapshots destroys the snapshots that spec names, of head and, with
// Recursive, of all below it.
func destroySnapshots(tx *world.Tx, head, spec string, o DestroyOptions) error {
	top, err := OpenDataset(tx, head, typeHeads)
	if err != nil {
		return err
	}
	heads := []*world.Dataset{top}
	if o.Recursive {
		heads = append(heads, Descendants(tx, head)...)
	}
	var chosen []*world.Dataset
	var refused error
	for _, h := range heads {
		for _, s := range matchSnapshots(tx, h.Name, spec) {
			refused = joinRefusals(refused, checkDependents(tx, s, DestroyOptions{Clones: o.Clones}))
			chosen = append(chosen, s)
		}
	}
	switch {
	case refused != nil:
		return refused
	case chosen == nil:
		return refuse("could not find any snapshots to destroy; check snapshot names.")
	}
	if suspended(tx, head) && !o.DryRun {
		return refuse("cannot destroy snapshots: %s", suspendedIO)
	}
	for _, s := range chosen {
		if err := destroySnapshot(tx, s, o); err != nil {
			return err
		}
	}
	return nil
}

func destroySnapshot(tx *world.Tx, s *world.Dataset, o DestroyOptions) error {
	if o.Clones {
		for _, c := range dependents(tx, s) {
			if err := destroyOne(tx, c, o); err != nil {
				return err
			}
		}
	}
	if FindDataset(tx, s.Name) == nil {
		return nil // Went as a dependent of another dataset.
	}
	return destroyOne(tx, s, o)
}

// matchSnapshots are the snapshots of a dataset that a list of names takes
// (zfs_iter_snapspec). Ranges are not simulated.
func matchSnapshots(tx *world.Tx, head, spec string) []*world.Dataset {
	names := strings.Split(spec, ",")
	return slices.DeleteFunc(Snapshots(tx, head), func(s *world.Dataset) bool {
		return !slices.Contains(names, strings.TrimPrefix(s.Name, head+"@"))
	})
}
