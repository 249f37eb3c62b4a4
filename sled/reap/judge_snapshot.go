package reap

import (
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/zfs"
)

func (k *known) learnSnapshots(view ledger.View) error {
	snapshots, err := snapshot.All(view)
	for _, r := range snapshots {
		k.snapshots[snapshot.Subject(r.Instance, r.Name)] = r
	}
	return err
}

// snapshotOf is the record of the instance's snapshot that a ZFS snapshot is of, by its mark.
func (k *known) snapshotOf(d zfs.Dataset) (snapshot.Record, bool) {
	_, short, _ := strings.Cut(d.Name, "@")
	r, recorded := k.snapshots[snapshot.Subject(d.User[naming.PropertySnapshot].Value, strings.TrimPrefix(short, naming.SnapshotPrefix))]
	return r, recorded
}

// ofDisks judges a ZFS snapshot that is marked as one of an instance's disks. It goes only if its taking
// did not end, or its deletion has begun.
func (k *known) ofDisks(o Object, d zfs.Dataset) (Object, bool) {
	r, recorded := k.snapshotOf(d)
	work, working := k.busy[o.key()]
	half, begun := k.dead[o.key()]
	o.final = true
	switch {
	case working:
		o.Verdict, o.Reason = InProgress, work.String()
	case recorded && !r.Unfinished() && slices.ContainsFunc(r.Disks, func(disk snapshot.Disk) bool { return disk.GUID == d.GUID }):
		o.Verdict, o.Reason = InUse, "snapshot "+r.Name+" of instance "+r.Of
	case recorded && r.Unfinished():
		o.Verdict, o.Reason, o.final = Orphan, leftBefore+halfSnapshot(r)+leftAfter, false
	case begun:
		o.Verdict, o.Reason, o.final = Orphan, leftBefore+half.verb+leftAfter, false
	default:
		o.Verdict, o.Reason = Unknown, "it is marked as a snapshot of an instance's disks, which the ledger does not know"
	}
	return o, true
}

// halfSnapshot is the verb that did not end.
func halfSnapshot(r snapshot.Record) string {
	if r.Removing {
		return "instance snapshot delete"
	}
	return "instance snapshot create"
}

// recordsOfSnapshots are those of snapshots whose taking or deletion did not end, and that have left
// nothing.
func (k *known) recordsOfSnapshots(f *Findings) (gone []Object) {
	for _, key := range slices.Sorted(maps.Keys(k.snapshots)) {
		r := k.snapshots[key]
		left := func(disk snapshot.Disk) bool {
			for dataset, v := range k.volumes {
				at := naming.Snapshot(dataset, r.Name)
				_, there := f.inv.Dataset(at)
				_, working := k.busy[KindSnapshot+" "+at]
				if v.ID == disk.Volume && (there || working || f.lost(dataset) != "") {
					return true
				}
			}
			return false
		}
		if !r.Unfinished() || slices.ContainsFunc(r.Disks, left) {
			continue
		}
		gone = append(gone, Object{
			Kind: KindRecord, Name: key, Verdict: StaleRec, Reason: "of " + halfSnapshot(r) + ", which did not end; nothing of it is left",
		})
	}
	return gone
}
