package reap

import (
	"maps"
	"slices"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/zfs"
)

// image judges the volume of an image. One that no record names goes only if the intent of an import
// that died does: what a lost ledger has recorded may be needed.
func (k *known) image(o Object, d zfs.Dataset, f *Findings) (Object, bool) {
	r, recorded := k.images[image.Mark(d)]
	work, working := k.busy[o.key()]
	m, died := k.dead[o.key()]
	switch {
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case recorded && k.halfDeleted(r, f):
		o.Verdict, o.Reason = Orphan, "left by image delete, which did not end"
	case recorded && slices.ContainsFunc(r.Places(), func(p image.Place) bool { return p.Dataset == d.Name }):
		o.Verdict, o.Reason, o.final = InUse, "image "+r.Name, true
	case died:
		o.Verdict, o.Reason = Orphan, "left by "+m.verb+", which did not end"
	default:
		o.Verdict, o.Reason, o.final = Unknown, "it is marked as an image, which the ledger does not know", true
	}
	if need := f.needs(d, ""); need != "" && o.Verdict.Removed() {
		o.Verdict, o.Reason, o.final = InUse, need, true
	}
	f.waitFor(o.key(), d)
	return o, true
}

// halfDeleted reports whether an image cannot be used any more because a run died that deleted it.
func (k *known) halfDeleted(r image.Record, f *Findings) bool {
	is := image.StatusOf(r, f.inv)
	return is.State == image.Missing && len(is.Clones) == 0 && slices.ContainsFunc(k.died, func(run operation.OpenIntent) bool {
		return run.Subject == r.Subject() && len(run.Removes) > 0
	})
}

func (k *known) recordsOfImages(f *Findings) (gone []Object) {
	for _, id := range slices.Sorted(maps.Keys(k.images)) {
		if r := k.images[id]; k.halfDeleted(r, f) {
			gone = append(gone, Object{Kind: KindRecord, Name: naming.KeyImage + id, Identity: id, Verdict: StaleRec, Reason: "of image " + r.Name + ", whose deletion did not end"})
		}
	}
	return gone
}

// imageOf is the image of that name.
func (k *known) imageOf(subject string) (image.Record, bool) {
	for _, r := range k.images {
		if r.Subject() == subject {
			return r, true
		}
	}
	return image.Record{}, false
}
