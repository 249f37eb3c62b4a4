package reap

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/adoption"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// isBase says whether a zone is a base, by the ledger or by its own marks.
func (k *known) isBase(z zone.Zone, owner naming.Owner) bool {
	_, recorded := k.bases[z.Name]
	return recorded || owner.Ours() && owner.Role == naming.RoleBase
}

// named says whether the ledger names this very zone: where it is called as one
// in sledctl's form is, or after the incarnation's Propolis, as another tool's that was adopted.
func (l recordedIncarnation) named(z zone.Zone, owner naming.Owner) bool {
	adopted := l.incarnation.PropolisID != "" && strings.HasSuffix(z.Name, l.incarnation.PropolisID)
	return l.incarnation.Zone == z.Name && l.incarnation.Zonepath == z.Path && (owner.Evidence == naming.Alike || adopted)
}

func (k *known) zone(own *ownedZone, f *Findings) (Object, bool) {
	z, owner := *own.Zone, own.owner
	o := Object{Identity: z.UUID}.as(KindZone, z.Name)
	if z.Name == zone.Global {
		return Object{}, true
	}
	r, recorded := k.ofZone(z.Name)
	b, based := k.bases[z.Name]
	if !owner.Ours() && !r.named(z, owner) && (!based && k.spares[z.Name].Zonepath != z.Path || owner.Evidence != naming.Alike) {
		o.Verdict, o.Reason, o.doubted = Unknown, owner.Doubt, true
		return o, owner.Evidence == naming.Alike
	}
	o = k.zoneVerdict(o, own, f, r, recorded)
	if recorded && r.Protected && !o.Verdict.Removed() && o.Verdict != InProgress {
		o.Reason, o.final = o.Reason+", which is protected", true
	}
	o = r.keeps(o)
	if o.Verdict != InProgress && z.State != zone.Running && z.State != zone.Configured {
		dataset := r.incarnation.Dataset
		if based {
			dataset = b.Dataset
		}
		if why := f.unreadable(z.Path, dataset); why != "" {
			o.Verdict, o.Reason = Unknown, "its root cannot be seen: "+why
		}
	}
	if home, there := f.inv.Dataset(f.homes[z.Path]); there && (o.Verdict.Removed() || f.choice.All) {
		if need := f.needs(home, z.Name); need != "" {
			o.Verdict, o.Reason, o.final = InUse, need, true
		}
		f.waitFor(o.key(), home)
	}
	return o, true
}

// zoneVerdict judges a sledctl zone by its record.
func (k *known) zoneVerdict(o Object, own *ownedZone, f *Findings, r recordedIncarnation, recorded bool) Object {
	z, owner := *own.Zone, own.owner
	b, based := k.bases[z.Name]
	spare, ahead := k.spares[z.Name]
	work, working := k.busy[o.key()]
	switch {
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case based:
		o.Verdict, o.Reason, o.final = k.base(b, z, f)
	case own.isBase:
		o.Verdict, o.Reason = strayBase(z)
	case recorded:
		o.Verdict, o.Reason = k.zoneOfInstance(r, z, f)
	case ahead && !layout.Taken(spare.Spare, f.inv) || own.isSpare:
		o.Verdict, o.Reason = spareVerdict(spare, ahead, z, k.boot)
	case adoption.Adoptable(owner, z):
		o.Verdict, o.Reason = Adoptable, "runs, and the ledger does not know it"
	case record.Resting(owner, z) && !k.knows(owner.Instance):
		o.Verdict, o.rests = Adoptable, true
		o.Reason = "is " + string(z.State) + " and marked as instance " + owner.Instance.String() + ", which the ledger does not know"
	default:
		o.Verdict, o.Reason = Orphan, "is "+string(z.State)+", and no instance needs it"
	}
	return o
}

// spareVerdict judges a zone that is cloned ahead, and that no instance has.
func spareVerdict(spare instance.JudgedSpare, recorded bool, z zone.Zone, boot string) (Verdict, string) {
	booted := layout.BootedAhead(spare.Spare, z, boot)
	switch {
	case !recorded:
		return Orphan, "a spare that the ledger does not know"
	case z.State == zone.Running && !booted:
		return InUse, "a spare; it runs, and sledctl has not booted it"
	case spare.Why != "":
		return Orphan, "a spare of pool " + spare.Pool + "; " + spare.Why
	}
	if booted {
		return Spare, "of pool " + spare.Pool + ", booted, for the next new VM"
	}
	return Spare, "of pool " + spare.Pool + ", for the next new VM"
}

func (k *known) zoneOfInstance(r recordedIncarnation, z zone.Zone, f *Findings) (Verdict, string) {
	verb, died := k.unfinished(r, f)
	switch {
	case (r.incarnation.Boot != k.boot || r.incarnation.Rolling) && z.State != zone.Running && r.current(z) && k.again(*r.Record):
		return InUse, "instance " + r.Name + "; it is as it was cloned, and the next ensure boots it"
	case died:
		return Orphan, leftBy(verb, r.Name)
	case z.State == zone.Running:
		return InUse, "instance " + r.Name
	case r.incarnation.Boot != k.boot:
		return StaleZone, "of instance " + r.Name + ", from an earlier boot of the sled, and not running"
	}
	return InUse, "instance " + r.Name + "; it is " + string(z.State)
}

// knows says whether an instance is recorded: what else carries its mark is a
// remnant.
func (k *known) knows(id uuid.UUID) bool {
	_, recorded := k.instances[id.String()]
	return recorded
}

// base judges a base zone that the ledger knows. Firm: it stays while something
// that stays is cloned from it.
func (k *known) base(b base.Record, z zone.Zone, f *Findings) (v Verdict, reason string, final bool) {
	clones := map[string]bool{} // zones, of which each has several datasets; datasets of none count for themselves
	for _, d := range f.inv.Below(b.Dataset) {
		for _, clone := range f.clones[d.Name] {
			holder, found := f.holder(clone)
			if found && f.goes[holder] {
				continue
			}
			if !found {
				holder = clone
			}
			clones[holder] = true
		}
	}
	switch {
	case len(clones) > 0:
		return InUse, fmt.Sprintf("base of pool %s; %d cloned from it", b.Pool, len(clones)), true
	case k.cloned[b.Zone] != "":
		_, now := k.cloning[b.Zone]
		return InUse, fmt.Sprintf("base of pool %s; about to be cloned: %s", b.Pool, k.cloned[b.Zone]), now
	case z.State == zone.Running:
		return InUse, "base of pool " + b.Pool + "; it runs, which no base should", false
	case b.UUID == "":
		return Orphan, "a base that was never finished", false
	case b.Generation < k.newest[b.Pool]:
		return Orphan, fmt.Sprintf("a base that generation %d replaced; nothing is cloned from it", k.newest[b.Pool]), false
	}
	return InUse, "base of pool " + b.Pool, false
}

// strayBase judges a base zone that the ledger does not know.
func strayBase(z zone.Zone) (Verdict, string) {
	if z.State == zone.Running {
		return Unknown, "a base that the ledger does not know; it runs, which no base should"
	}
	return Orphan, "a base that the ledger does not know; nothing is cloned from it"
}

// needs says who needs something of a dataset or of what lies below it: a zone
// of whatever name, other than the one whose home it is, or a clone elsewhere
// that stays.
func (f *Findings) needs(d zfs.Dataset, home string) string {
	for _, part := range append(f.inv.Below(d.Name), d) {
		for _, z := range f.lies[part.Mountpoint] {
			if part.Type == zfs.TypeFilesystem && z != home {
				return "zone " + z + " lies in it"
			}
		}
		for _, clone := range f.clones[part.Name] {
			if !strings.HasPrefix(clone, d.Name+"/") && !f.leaves(clone) {
				return clone + " is cloned from it"
			}
		}
	}
	return ""
}

// holder is the object, already judged, that a dataset goes with: the zone or
// the dataset that it lies in.
func (f *Findings) holder(dataset string) (key string, found bool) {
	for at := dataset; at != ""; at = parent(at) {
		if _, judged := f.goes[KindDataset+" "+at]; judged {
			return KindDataset + " " + at, true
		}
		d, _ := f.inv.Dataset(at)
		if f.homes[d.Mountpoint] != at {
			continue
		}
		for _, z := range f.lies[d.Mountpoint] {
			if found, _ := f.inv.Zone(z); found.Path == d.Mountpoint {
				return KindZone + " " + z, true
			}
		}
	}
	return "", false
}

// leaves says whether a dataset goes with an object that goes.
func (f *Findings) leaves(dataset string) bool {
	key, found := f.holder(dataset)
	return found && f.goes[key]
}

// waitFor notes that an object that lies in a dataset goes behind those that
// were cloned from it.
func (f *Findings) waitFor(key string, home zfs.Dataset) {
	for _, part := range append(f.inv.Below(home.Name), home) {
		for _, clone := range f.clones[part.Name] {
			if other, found := f.holder(clone); found && other != key && f.goes[other] {
				f.first[key] = append(f.first[key], other)
			}
		}
	}
}

func parent(dataset string) string {
	at := strings.LastIndexByte(dataset, '/')
	if at < 0 {
		return ""
	}
	return dataset[:at]
}
