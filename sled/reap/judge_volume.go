package reap

import (
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zfs"
)

// isVolume reports whether a dataset carries the mark of a volume.
func isVolume(d zfs.Dataset) bool {
	return d.Type == zfs.TypeVolume && d.User[naming.PropertyVolume].Source == zfs.Local
}

// renamedVolume is the record of a volume that has another name than is recorded: a rename that was
// killed has not written it down.
func (k *known) renamedVolume(d zfs.Dataset) (volume.Record, bool) {
	for _, v := range k.volumes {
		if v.GUID == d.GUID {
			return v, true
		}
	}
	return volume.Record{}, false
}

func (f *Findings) judgeVolumes(k *known, datasets []zfs.Dataset) {
	for _, d := range datasets {
		if isVolume(d) {
			f.add(k.volume(d, f))
		}
	}
}

// forZones reports whether a dataset may be that of a zone: it is no volume that sledctl made, and lies
// on a pool of zones. Of other pools only the volumes are sledctl's.
func (f *Findings) forZones(d zfs.Dataset) bool {
	if isVolume(d) {
		return false
	}
	pool, _, _ := strings.Cut(d.Name, "/")
	return slices.Contains(f.inv.ZonePools(), pool)
}

// volume judges a volume. What has a record holds data that somebody wants: it stays, whatever
// else goes. What an operation left that died over making it holds none.
func (k *known) volume(d zfs.Dataset, f *Findings) (Object, bool) {
	o := Object{Identity: d.GUID, final: true}.as(KindVolume, d.Name)
	id := d.User[naming.PropertyVolume].Value
	v, recorded := k.volumes[d.Name]
	if !recorded {
		v, recorded = k.renamedVolume(d)
	}
	work, working := k.busy[o.key()]
	half, begun := k.dead[o.key()]
	switch {
	case working:
		o.Verdict, o.Reason = InProgress, work.String()
	case recorded && v.GUID == d.GUID && len(k.disks[d.Name]) > 0:
		o.Verdict, o.Reason = InUse, "instance "+strings.Join(k.disks[d.Name], ", ")
	case recorded && v.GUID == d.GUID:
		o.Verdict, o.Reason = InUse, "volume "+v.Name+", which no instance has as a disk"
	case len(k.disks[d.Name]) > 0:
		o.Verdict, o.Reason = InUse, "instance "+strings.Join(k.disks[d.Name], ", ")+", and the ledger does not know it as a volume"
	case recorded && v.GUID == "" && v.ID == id:
		o.Verdict, o.Reason, o.final = Orphan, "left by volume create, which did not end", false
	case recorded:
		o.Verdict, o.Reason = Unknown, "another one than volume "+v.Name+", which had its name"
	case begun:
		o.Verdict, o.Reason, o.final = Orphan, "left by "+half.verb+", which did not end", false
	default:
		o.Verdict, o.Reason = Adoptable, "marked as a volume that the ledger does not know; volume adopt records it"
	}
	return o, true
}

// volumeOf is the record of the volume that is a subject; zero if there is none.
func (k *known) volumeOf(subject string) (v volume.Record, ofVolume bool) {
	id, ofVolume := strings.CutPrefix(subject, naming.KeyVolume)
	for _, v := range k.volumes {
		if v.ID == id {
			return v, true
		}
	}
	return v, ofVolume
}

// hasVolume reports whether a volume is there, under whichever name.
func (f *Findings) hasVolume(v volume.Record) bool {
	if _, there := f.inv.Dataset(v.Dataset); there {
		return true
	}
	datasets, _ := f.inv.Datasets()
	return v.GUID != "" && slices.ContainsFunc(datasets, func(d zfs.Dataset) bool { return d.GUID == v.GUID })
}

// recordsOfVolumes are those of volumes that are gone, though their pools answer. That of one
// which was never finished goes; what else has a record, somebody wants.
func (k *known) recordsOfVolumes(f *Findings) (gone []Object) {
	for _, dataset := range slices.Sorted(maps.Keys(k.volumes)) {
		v := k.volumes[dataset]
		there := f.hasVolume(v)
		if _, working := k.busy[KindVolume+" "+dataset]; there || working || f.lost(dataset) != "" {
			continue
		}
		o := Object{Kind: KindRecord, Name: volume.Subject(v.ID), Identity: v.GUID, Verdict: StaleRec, final: true,
			about:  map[string]string{KindVolume + " " + dataset: v.GUID},
			Reason: "of volume " + v.Name + ", whose dataset is gone; volume delete forgets it"}
		switch {
		case v.GUID == "":
			o.Reason, o.final = "of volume create, which did not end; nothing of it is left", false
		case k.removed(f, v):
			o.Reason, o.final = "of volume "+v.Name+", whose deletion did not end; nothing of it is left", false
		}
		gone = append(gone, o)
	}
	return gone
}

// removed says whether a volume is gone by a run that died as it deleted the volume.
func (k *known) removed(f *Findings, v volume.Record) bool {
	return !f.hasVolume(v) && f.lost(v.Dataset) == "" && slices.ContainsFunc(k.died, func(run operation.OpenIntent) bool {
		return slices.ContainsFunc(run.Removes, func(o operation.Object) bool {
			return o.Kind == KindVolume && o.Name == v.Dataset && o.Identity == v.GUID
		})
	})
}

// volume destroys what is left of a volume that was never finished, with the snapshot that it was being
// received with.
func (f *Findings) volume(o Object) (actions []plan.Action) {
	for _, d := range f.inv.Below(o.Name) {
		actions = append(actions, remove(Object{Kind: KindSnapshot, Name: d.Name, Reason: o.Reason}, zfs.DestroySnapshot{Name: d.Name, GUID: d.GUID}))
	}
	return plan.Chain(append(actions, remove(o, zfs.Destroy{Dataset: o.Name, GUID: o.Identity, Type: zfs.TypeVolume}))...)
}
