package reap

import (
	"slices"

	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/zfs"
)

// image judges the volume of an image. One that no record names goes only if the intent of an import
// that died does: what a lost ledger has recorded may be needed.
func (k known) image(o Object, d zfs.Dataset, f Findings) (Object, bool) {
	r, recorded := k.images[image.Mark(d)]
	work, working := k.busy[o.key()]
	m, died := k.dead[o.key()]
	switch {
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
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
