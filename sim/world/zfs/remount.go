package zfs

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// A change list is the file systems that a change of a mountpoint or of
// the property zoned moves: they are unmounted before it and mounted again after it (usr/src/lib/libzfs/common/libzfs_changelist.c).
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

// gather lists what a change of d's mountpoint moves: d and what inherits from it;
// all of what lies below d if zoned is changed.
func gather(tx *world.Tx, d *world.Dataset, all bool) *changeList {
	where, _ := mountpoint(tx, d)
	list := &changeList{tx: tx, wasLegacy: !all && !strings.HasPrefix(where, "/")}
	for _, o := range append(Descendants(tx, d.Name), d) {
		_, from := nearest(tx, o, "mountpoint")
		if Kind(o) != TypeFilesystem || !all && from != nil && o != d && isBelow(from.Name, d.Name) {
			continue
		}
		where, source := mountpoint(tx, o)
		list.nodes = append(list.nodes, &changeNode{
			dataset: o, where: where, source: source, mounted: o.Mounted != "", zoned: word(tx, o, "zoned") == "on",
		})
	}
	slices.SortStableFunc(list.nodes, func(a, b *changeNode) int { return cmp.Compare(b.where, a.where) })
	return list
}

// unmount unmounts all that is mounted. If one is busy, those before it are
// mounted again.
func (l *changeList) unmount() error {
	for i, n := range l.nodes {
		if n.zoned || !n.mounted {
			continue
		}
		if err := Unmount(l.tx, n.dataset.Name, false); err != nil {
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
			failed = joinRefusals(failed, mount(l.tx, n.dataset))
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
	return moveOut(tx, d)
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

// given says whether a zone that the kernel knows has the volume's device, or was
// given the dataset or what it lies in (zonecfg's resource dataset).
func given(tx *world.Tx, name string) bool {
	return slices.ContainsFunc(tx.State.Zones, func(z *world.Zone) bool {
		return z.Kernel != nil && (slices.ContainsFunc(z.Kernel.Config.All("device"), func(r *world.Resource) bool {
			return r.Get("match") == "/dev/zvol/rdsk/"+name || r.Get("match") == "/dev/zvol/dsk/"+name
		}) || slices.ContainsFunc(z.Kernel.Config.All("dataset"), func(r *world.Resource) bool {
			return world.Below(r.Get("name"), name)
		}))
	})
}

// UnmountTree is "zfs unmount NAME": with all that inherits its mountpoint.
func UnmountTree(tx *world.Tx, name string) error {
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
	return gather(tx, d, false).unmount()
}
