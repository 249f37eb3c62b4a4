package zfs

import "path"

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// A change list is the file systems that a change of a mountpoint, of the
// property zoned or of a name moves: they are unmounted before it and mounted
// again after it (usr/src/lib/libzfs/common/libzfs_changelist.c).
type changeList struct {
	tx    *world.Tx
	nodes []*changeNode // deepest mountpoint first; the changed dataset is among them
	// wasLegacy is set when the changed dataset had no directory to be mounted
	// on: then all are mounted after the change, also what was not before.
	wasLegacy bool
}

type changeNode struct {
	dataset *world.Dataset
	where   string // its mountpoint before the change, and that value's source
	source  string
	mounted bool
	zoned   bool
}

// gather lists what a change of d's property moves. For "mountpoint" that is d
// and what inherits from it; for "zoned" and "name" all file systems below.
func gather(tx *world.Tx, d *world.Dataset, property string) *changeList {
	list := &changeList{tx: tx}
	list.add(d)
	where, _ := mountpoint(tx, d)
	list.wasLegacy = property == "mountpoint" && !strings.HasPrefix(where, "/")
	list.addBelow(d, property == "mountpoint")
	slices.SortStableFunc(list.nodes, func(a, b *changeNode) int { return cmp.Compare(b.where, a.where) })
	return list
}

func (l *changeList) add(d *world.Dataset) {
	where, source := mountpoint(l.tx, d)
	l.nodes = append(l.nodes, &changeNode{
		dataset: d, where: where, source: source, mounted: d.Mounted != "", zoned: word(l.tx, d, "zoned") == "on",
	})
}

// addBelow adds the file systems below d; with inheriting only those whose
// mountpoint comes from d or above.
func (l *changeList) addBelow(d *world.Dataset, inheriting bool) {
	var own []string
	for _, below := range Descendants(l.tx, d.Name) {
		if Kind(below) != TypeFilesystem {
			continue
		}
		_, local := below.Local["mountpoint"]
		if inheriting && (local || slices.ContainsFunc(own, func(name string) bool { return isBelow(below.Name, name) })) {
			own = append(own, below.Name)
			continue
		}
		l.add(below)
	}
}

// zonedChild says whether what is below the changed dataset is in a zone.
func (l *changeList) zonedChild(d *world.Dataset) bool {
	return slices.ContainsFunc(l.nodes, func(n *changeNode) bool { return n.zoned && n.dataset != d })
}

// unmount unmounts all that is mounted. If one is busy, those before it are
// mounted again.
func (l *changeList) unmount(force bool) error {
	for i, n := range l.nodes {
		if n.zoned || !n.mounted {
			continue
		}
		if err := Unmount(l.tx, n.dataset.Name, force); err != nil {
			done := &changeList{tx: l.tx, nodes: l.nodes[:i]}
			return joinRefusals(err, done.remount())
		}
	}
	return nil
}

// remount mounts again, parents first, what was mounted; its names and
// mountpoints may be others now. Directories that were made for mounting are
// removed. It tries all.
func (l *changeList) remount() error {
	for _, n := range l.nodes {
		if where, _ := mountpoint(l.tx, n.dataset); n.mounted && n.source != SourceLocal && where != n.where {
			removeMountpoint(l.tx, n.where)
		}
	}
	var failed error
	for _, n := range slices.Backward(l.nodes) {
		if !n.zoned && (n.mounted || l.wasLegacy) && n.dataset.Mounted == "" {
			failed = joinRefusals(failed, mount(l.tx, n.dataset, false))
		}
	}
	return failed
}

// Unmount unmounts one file system from wherever it is mounted. It is no
// error if it is not mounted. Force is MS_FORCE: its users lose it.
func Unmount(tx *world.Tx, name string, force bool) error {
	d := FindDataset(tx, name)
	if d == nil || d.Mounted == "" {
		return nil
	}
	if busy(tx, d.Mounted, force) {
		return refuse("cannot unmount '%s': Device busy", d.Mounted)
	}
	dir := d.Mounted
	if err := moveOut(tx, d, dir); err != nil {
		return err
	}
	d.Mounted = ""
	return nil
}

// busy says whether a file system mounted on dir cannot be unmounted: another
// one is mounted below it, or a zone that the kernel knows has its root there,
// something mounted below it, or a directory of it mounted elsewhere.
func busy(tx *world.Tx, dir string, force bool) bool {
	if dir == "/" || len(mountsBelow(tx, dir)) > 0 {
		return true
	}
	if force {
		return false
	}
	at := func(name string) bool { return name == dir || world.Under(name, dir) }
	for _, z := range tx.State.Zones {
		if z.Kernel == nil {
			continue
		}
		if at(path.Join(z.Kernel.Config.Zonepath, "root")) ||
			slices.ContainsFunc(z.Kernel.Mounts, func(m string) bool { return world.Under(m, dir) }) ||
			slices.ContainsFunc(z.Kernel.Loops, func(l world.Loop) bool { return at(l.Special) }) {
			return true
		}
	}
	return false
}

// volumeBusy says whether a zone that the kernel knows has the volume's device.
func volumeBusy(tx *world.Tx, name string) bool {
	for _, z := range tx.State.Zones {
		if z.Kernel == nil {
			continue
		}
		for _, r := range z.Kernel.Config.All("device") {
			if m := r.Get("match"); m == "/dev/zvol/rdsk/"+name || m == "/dev/zvol/dsk/"+name {
				return true
			}
		}
	}
	return false
}

// lent says whether the dataset, or what it lies in, was given to a zone that
// the kernel knows (zonecfg's resource dataset).
func lent(tx *world.Tx, name string) bool {
	for _, z := range tx.State.Zones {
		if z.Kernel == nil {
			continue
		}
		for _, r := range z.Kernel.Config.All("dataset") {
			if n := r.Get("name"); n == name || isBelow(name, n) {
				return true
			}
		}
	}
	return false
}

// UnmountTree is "zfs unmount NAME": with all that inherits its mountpoint.
func UnmountTree(tx *world.Tx, name string, force bool) error {
	d, err := OpenDataset(tx, name, TypeFilesystem)
	if err != nil {
		return err
	}
	switch where, _ := mountpoint(tx, d); {
	case where == "legacy":
		return refuse("cannot unmount '%s': legacy mountpoint\nuse umount(8) to unmount this filesystem", name)
	case d.Mounted == "":
		return refuse("cannot unmount '%s': not currently mounted", name)
	}
	return gather(tx, d, "mountpoint").unmount(force)
}
