package world

import (
	"slices"
	"strings"
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
	// Each, if set, is told of each dataset before it is destroyed.
	Each func(name string)
}

// Destroy destroys a file system or volume, or the snapshots of a name with
// "@": ranges "a%b" and lists "a,b" too. It is not atomic: what was destroyed
// before a failure is gone.
func (tx *Tx) Destroy(name string, o DestroyOptions) error {
	o.Recursive = o.Recursive || o.Clones
	if head, spec, ok := strings.Cut(name, "@"); ok {
		return tx.destroySnapshots(head, spec, o)
	}
	types := TypeDataset
	if o.Defer {
		types = TypeSnapshot
	}
	d, err := tx.OpenDataset(name, types)
	if err != nil {
		return err
	}
	if !o.Recursive && d.Kind() == TypeFilesystem && !strings.Contains(name, "/") {
		return refuse("cannot destroy '%[1]s': operation does not apply to pools\n"+
			"use 'zfs destroy -r %[1]s' to destroy all datasets in the pool\n"+
			"use 'zpool destroy %[1]s' to destroy the pool itself", name)
	}
	if err := tx.checkDependents(d, o); err != nil {
		return err
	}
	for _, below := range append(tx.dependents(d), d) {
		if err := tx.destroyOne(below, o); err != nil {
			return err
		}
	}
	return nil
}

// checkDependents refuses to destroy what something depends on that the
// options do not include.
func (tx *Tx) checkDependents(d *Dataset, o DestroyOptions) error {
	if o.Clones || o.Defer {
		return nil
	}
	var children, clones []string
	for _, dependent := range tx.dependents(d) {
		switch {
		case isBelow(dependent.Name, d.Name):
			if !o.Recursive {
				children = append(children, dependent.Name)
			}
		case o.Recursive || d.Kind() == TypeSnapshot:
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
func (tx *Tx) dependents(d *Dataset) []*Dataset {
	l := &lineage{
		below: map[string][]*Dataset{}, clones: map[string][]*Dataset{},
		met: map[*Dataset]bool{d: true}, taken: map[*Dataset]bool{d: true},
	}
	l.meet(tx, d)
	l.visit(d)
	return l.order
}

// lineage is the datasets that depend on one, by what they depend on.
type lineage struct {
	below, clones map[string][]*Dataset
	met, taken    map[*Dataset]bool
	order         []*Dataset
}

// meet looks once at all datasets for those that depend on d, and again for
// each clone that lies elsewhere.
func (l *lineage) meet(tx *Tx, d *Dataset) {
	var outside []*Dataset
	for _, o := range tx.selectDatasets(func(o *Dataset) bool {
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
func (l *lineage) visit(d *Dataset) {
	for _, snapshots := range []bool{false, true} {
		for _, o := range l.below[d.Name] {
			if (o.Kind() == TypeSnapshot) == snapshots && isBelow(o.Name, d.Name) {
				l.take(o)
			}
		}
	}
	for _, o := range l.clones[d.Name] {
		l.take(o)
	}
}

func (l *lineage) take(d *Dataset) {
	if l.taken[d] {
		return
	}
	l.taken[d] = true
	l.visit(d)
	l.order = append(l.order, d)
}

// destroyOne destroys a dataset that nothing depends on any more.
func (tx *Tx) destroyOne(d *Dataset, o DestroyOptions) error {
	if o.Each != nil {
		o.Each(d.Name)
	}
	if o.DryRun || d.Kind() == TypeFilesystem && !strings.Contains(d.Name, "/") {
		return nil // The root of a pool goes with the pool.
	}
	if tx.suspended(d.Name) {
		// Guess: before it is unmounted, which would wait for the pool.
		return refuse("cannot destroy '%s': %s", d.Name, suspendedIO)
	}
	if d.Kind() != TypeSnapshot {
		if tx.lent(d.Name) || tx.volumeBusy(d.Name) {
			return refuse("cannot destroy '%s': dataset is busy", d.Name)
		}
		if err := tx.Unmount(d.Name, o.Force); err != nil {
			return err
		}
	}
	where, source := tx.mountpoint(d)
	managed := d.Kind() == TypeFilesystem && strings.HasPrefix(where, "/") && source != SourceLocal &&
		tx.word(d, "canmount") != "off" && tx.word(d, "zoned") == "off"
	if err := tx.remove(d); err != nil {
		return err
	}
	if managed {
		tx.removeMountpoint(where)
	}
	return tx.destroyDeferred(d.Origin)
}

// remove takes a dataset out of the state.
func (tx *Tx) remove(d *Dataset) error {
	if err := tx.discard(d); err != nil {
		return err
	}
	delete(tx.State.Datasets, d.Name)
	return tx.removeDevices(d)
}

// destroyDeferred destroys a snapshot that waits for its last clone to go.
func (tx *Tx) destroyDeferred(snapshot string) error {
	s := tx.FindDataset(snapshot)
	if s == nil || !s.Deferred || len(tx.Clones(snapshot)) > 0 {
		return nil
	}
	return tx.remove(s)
}

// destroySnapshots destroys the snapshots that spec names, of head and, with
// Recursive, of all below it.
func (tx *Tx) destroySnapshots(head, spec string, o DestroyOptions) error {
	top, err := tx.OpenDataset(head, typeHeads)
	if err != nil {
		return err
	}
	heads := []*Dataset{top}
	if o.Recursive {
		heads = append(heads, tx.Descendants(head)...)
	}
	var chosen []*Dataset
	var refused error
	for _, h := range heads {
		for _, s := range tx.matchSnapshots(h.Name, spec) {
			refused = joinRefusals(refused, tx.checkDependents(s, DestroyOptions{Clones: o.Clones, Defer: o.Defer}))
			chosen = append(chosen, s)
		}
	}
	switch {
	case refused != nil:
		return refused
	case chosen == nil:
		return refuse("could not find any snapshots to destroy; check snapshot names.")
	}
	if tx.suspended(head) && !o.DryRun {
		return refuse("cannot destroy snapshots: %s", suspendedIO)
	}
	for _, s := range chosen {
		if err := tx.destroySnapshot(s, o); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) destroySnapshot(s *Dataset, o DestroyOptions) error {
	if o.Clones {
		for _, c := range tx.dependents(s) {
			if err := tx.destroyOne(c, o); err != nil {
				return err
			}
		}
	}
	if tx.FindDataset(s.Name) == nil {
		return nil // Went as one of another's dependents.
	}
	if o.Defer && !o.DryRun && len(tx.Clones(s.Name)) > 0 {
		s.Deferred = true
		return nil
	}
	return tx.destroyOne(s, o)
}

// matchSnapshots are the snapshots of a dataset that a specification takes:
// names and ranges "first%last", separated by commas (zfs_iter_snapspec).
func (tx *Tx) matchSnapshots(head, spec string) []*Dataset {
	all := tx.Snapshots(head)
	at := func(name string) int {
		return slices.IndexFunc(all, func(s *Dataset) bool { return s.Name == head+"@"+name })
	}
	var found []*Dataset
	for part := range strings.SplitSeq(spec, ",") {
		first, last, isRange := strings.Cut(part, "%")
		if !isRange {
			if i := at(part); i >= 0 {
				found = append(found, all[i])
			}
			continue
		}
		from, to := 0, len(all)-1
		if first != "" {
			from = at(first)
		}
		if last != "" {
			to = at(last)
		}
		if from >= 0 && to >= from {
			found = append(found, all[from:to+1]...)
		}
	}
	return found
}
