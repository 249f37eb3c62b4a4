package reap

import (
	"cmp"
	"path"
	"strings"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/localdisk"
	"github.com/sledctl/sledctl/zfs"
)

// dataset judges the datasets of zones that have lost their zone.
func (k *known) dataset(d zfs.Dataset, f *Findings) (Object, bool) {
	o := Object{Identity: d.GUID}.as(KindDataset, d.Name)
	if image.Mark(d) != "" {
		return k.image(o, d, f)
	}
	name := path.Base(d.Name)
	_, zoned := f.inv.Zone(name)
	if _, isLocal := localdisk.Of(d); isLocal || k.localDisks[d.Name].Pool != "" {
		return k.localDisk(o)
	}
	if !marked(d) {
		return k.unmarked(o, d, zoned)
	}
	work, working := k.busy[o.key()]
	r, recorded := k.ofZone(name)
	verb, died := k.unfinished(r, f)
	id, ours := record.HomeOf(k.names, d)
	switch {
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case zoned:
		return Object{}, true // goes and stays with its zone
	case recorded && died:
		o.Verdict, o.Reason = Orphan, leftBy(verb, r.Name)
	case recorded && r.incarnation.Boot != k.boot:
		o.Verdict, o.Reason = StaleZone, "root of a zone of instance "+r.Name+", from an earlier boot of the sled"
	case recorded && !r.incarnation.Ensured:
		o.Verdict, o.Reason = InUse, "instance "+r.Name+", whose zone is not made yet"
		o.final = r.Protected || r.KeptBy() != record.Operator
	case ours && !k.knows(id):
		o.Verdict, o.Reason, o.rests = Adoptable, "its zone is gone; it is marked as instance "+id.String()+", which the ledger does not know", true
	default:
		o.Verdict, o.Reason = Orphan, "its zone is gone"
	}
	if need := f.needs(d, ""); need != "" && (o.Verdict.Removed() || f.choice.All) {
		o.Verdict, o.Reason, o.final = InUse, need, true
	}
	f.waitFor(o.key(), d)
	return o, true
}

// localDisk judges the dataset of a local disk, which holds what a guest wrote: it goes only if its
// removal was begun, or its making not ended.
func (k *known) localDisk(o Object) (Object, bool) {
	r, recorded := k.localDisks[o.Name]
	half, begun := k.dead[o.key()]
	work, working := k.busy[o.key()]
	switch {
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case recorded && r.Removing:
		o.Verdict, o.Reason = Orphan, "left by storage local-disk delete, which did not end"
	case recorded:
		o.Verdict, o.Reason, o.final = InUse, "local disk "+r.ID.String(), true
	case begun:
		o.Verdict, o.Reason = Orphan, "left by "+half.verb+", which did not end"
	default:
		o.Verdict, o.Reason, o.final = Adoptable, "a local disk that the ledger does not know; storage local-disk ensure records it, storage local-disk delete removes it", true
	}
	return o, true
}

// unmarked reports a dataset that has the name of a sledctl zone and lies
// where those do. Without a mark, sledctl must not destroy it. What lies
// in ours is judged with it, and other pools' content is not listed.
func (k *known) unmarked(o Object, d zfs.Dataset, zoned bool) (Object, bool) {
	pool, _, _ := strings.Cut(d.Name, "/")
	above, ok := naming.ZoneParent(pool)
	owner := k.names.OwnerOfDataset(d.Name, nil)
	if zoned || !ok || parent(d.Name) != above.Dataset || owner.Evidence == naming.Foreign || owner.Below {
		return Object{}, true
	}
	if work, working := k.busy[o.key()]; working {
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
		return o, true
	}
	o.Verdict, o.Reason = Unknown, cmp.Or(owner.Doubt, "has the name of a sledctl zone, and no mark")
	return o, true
}

// snapshot judges what clones left on bases, and what is of instances' disks.
func (k *known) snapshot(d zfs.Dataset, f *Findings) (Object, bool) {
	o := Object{Identity: d.GUID}.as(KindSnapshot, d.Name)
	if d.User[naming.PropertySnapshot].Source == zfs.Local {
		return k.ofDisks(o, d)
	}
	dataset, snapshot, _ := strings.Cut(d.Name, "@")
	base := f.baseOf(dataset, snapshot)
	if base == "" || len(f.clones[d.Name]) > 0 || f.goes["zone "+path.Base(base)] || f.goes["dataset "+base] {
		return Object{}, true // goes and stays with its clone, or with the base
	}
	if builtinClone(snapshot) {
		if work, working := k.cloning[path.Base(base)]; working {
			o.Verdict, o.Reason, o.final = InProgress, work.String(), true
			return o, true
		}
		o.Verdict, o.Reason = Orphan, "left by a clone of the base, which is gone"
		return o, true
	}
	clone, ok := cloneOf(snapshot)
	if _, zoned := f.inv.Zone(clone); !ok || zoned {
		return Object{}, true // goes and stays with its zone
	}
	if work, working := k.busy["zone "+clone]; working {
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
		return o, true
	}
	o.Verdict, o.Reason = Orphan, "left by the clone of zone "+clone+", which is gone"
	if _, recorded := k.zones[clone]; !recorded && !k.names.NameOfZone(clone).Ours() {
		o.Verdict, o.Reason = Unknown, "sledctl made no clone "+clone
	}
	return o, true
}

// baseOf is the base in which a dataset lies that a clone took a snapshot of.
func (f *Findings) baseOf(dataset, snapshot string) string {
	for _, base := range f.left[snapshot] {
		if dataset == base || strings.HasPrefix(dataset, base+"/") {
			return base
		}
	}
	return ""
}

// cloneOf is the zone whose clone left a snapshot of this name, as the ipkg
// brands call it: <zone>_snap, then _snap1 to _snap99 (omniosorg/pkg5,
// src/brand/ipkg/clone).
func cloneOf(snapshot string) (zone string, ok bool) {
	at := strings.LastIndex(snapshot, "_snap")
	if at < 1 || strings.Trim(snapshot[at+len("_snap"):], "0123456789") != "" {
		return "", false
	}
	return snapshot[:at], true
}

// builtinClone says whether the clone that is built into zoneadm gives this
// name: SUNWzone1, SUNWzone2, … (usr/src/cmd/zoneadm/zfs.c). It does not tell
// for which zone.
//
// Guess snapshot-of-builtin-clone: the snapshot of the clone that is built into zoneadm
// (`@SUNWzoneN`) is of no use once nothing is cloned from it, and no clone is between taking it and
// using it outside an intent of sledctl.
// Check: `zoneadm clone` of a brand without a hook, while `sledctl reap -n` runs
func builtinClone(snapshot string) bool {
	number, ok := strings.CutPrefix(snapshot, "SUNWzone")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
