package reap

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/sled/localdisk"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/vpc"
	"github.com/sledctl/sledctl/zone"
)

// judgeRest judges what nothing else depends on. What could not be looked at is
// reported as unknown, and the rest is judged all the same.
func (f *Findings) judgeRest(k *known) {
	addresses, err := f.inv.Addresses()
	for _, a := range addresses {
		f.add(k.address(a, f))
	}
	f.unseen(KindAddress, err)
	f.unseen(KindPort, f.inv.Know(inventory.Ports))
	homes, err := f.inv.Homes()
	for _, h := range homes {
		f.add(k.directory(h, f))
	}
	f.unseen(KindDirectory, err)
	entries, err := f.inv.Entries()
	for _, e := range entries {
		switch path.Dir(e.Path) {
		case inventory.VMDirectory:
			f.add(k.handle(e, f))
		case zone.Dir:
			f.add(k.config(e, f), true)
		default:
			f.add(k.key(e))
		}
	}
	f.unseen(KindConfig, err)
	f.unseen(KindKey, err)
	f.unseen(KindVM, err)
	for _, s := range k.secrets {
		f.add(k.secret(s, f))
	}
	for _, o := range k.records(f) {
		f.add(o, true)
	}
}

func (f *Findings) unseen(kind string, err error) {
	if err != nil {
		f.add(Object{Kind: kind, Name: "all", Verdict: Unknown, Reason: "cannot be seen: " + err.Error()}, true)
	}
}

// address judges an address of the global zone: it is sledctl's if its link is.
func (k *known) address(a ipadm.Address, f *Findings) (Object, bool) {
	o := Object{}.as(KindAddress, a.Object)
	if a.Address.IsValid() {
		o.Identity = a.Address.String()
	}
	link, _, _ := strings.Cut(a.Object, "/")
	goes, ours := f.goes["vnic "+link], f.ours("vnic "+link)
	work, working := k.busy[o.key()]
	switch {
	case !ours:
		return o, false
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case link == k.net.GZVNIC:
		o.Verdict, o.Reason, o.final = InUse, "the global zone's own", true
	case goes:
		o.Verdict, o.Reason = Orphan, "lies on "+link+", which goes"
	default:
		o.Verdict, o.Reason, o.final = InUse, "lies on "+link+", which stays", true
	}
	return o, true
}

// directory judges a plain directory where a zone's dataset would be mounted.
func (k *known) directory(h inventory.Home, f *Findings) (Object, bool) {
	o := Object{Identity: strconv.FormatUint(h.Inode, 10)}.as(KindDirectory, h.Path)
	name := path.Base(h.Path)
	owner := k.names.NameOfZone(name)
	_, zoned := f.inv.Zone(name)
	dataset := f.unmounted(h.Path)
	work, working := k.busy["zone "+name]
	switch {
	case owner.Evidence == naming.Foreign:
		return o, false
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case zoned:
		return Object{}, true // the zone's, however it came to be
	case dataset != "":
		return Object{}, true // the mountpoint of a dataset that is judged
	case !owner.Ours():
		o.Verdict, o.Reason = Unknown, owner.Doubt
	case h.Holds != "":
		o.Verdict, o.Reason = Unknown, "no dataset is mounted there, and "+h.Holds+" lies in it"
	default:
		o.Verdict, o.Reason = Orphan, "a plain directory without a dataset or a zone"
	}
	return o, true
}

// unmounted is a dataset that would be mounted on a directory.
func (f *Findings) unmounted(dir string) string {
	if name := f.homes[dir]; name != "" {
		return name
	}
	for _, pool := range f.imported() {
		if above, ok := naming.ZoneParent(pool); ok && above.Mountpoint == path.Dir(dir) {
			if d, there := f.inv.Dataset(above.Join(path.Base(dir)).Dataset); there {
				return d.Name
			}
		}
	}
	return ""
}

func (f *Findings) imported() []string {
	pools, _ := f.inv.Pools()
	var names []string
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return names
}

// config judges a configuration that no index names: zoneadm does not know its
// zone. What has no sledctl name may be a template (create -t in zonecfg(8)): it
// belongs to nobody who is counted.
func (k *known) config(e inventory.Entry, f *Findings) Object {
	name, ok := zone.ConfigOf(e.Path)
	if _, zoned := f.inv.Zone(name); !ok || zoned || !k.names.NameOfZone(name).Ours() {
		return Object{}
	}
	o := Object{Identity: strconv.FormatUint(e.Inode, 10)}.as(KindConfig, name)
	lone, read := k.lone[name]
	owner := f.inv.OwnerOfConfig(k.names, name, lone)
	work, working := k.busy["zone "+name]
	half, begun := k.dead["zone "+name]
	switch {
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case begun:
		o.Verdict, o.Reason = Orphan, "left by "+half.verb+", which did not end; no index names the zone"
	case !read:
		o.Verdict, o.Reason = Unknown, "no index names the zone, and the file cannot be read"
	case !owner.Ours():
		o.Verdict, o.Reason = Unknown, "no index names the zone; "+owner.Doubt
	default:
		o.Verdict, o.Reason = Orphan, "no index names the zone"
	}
	return o
}

// key judges a file that holds the key of a disk. It is there only while a run
// reads or changes what the key opens, and such a run holds the sled.
func (k *known) key(e inventory.Entry) (Object, bool) {
	o := Object{Identity: strconv.FormatUint(e.Inode, 10)}.as(KindKey, e.Path)
	if work, working := k.subjects["sled"]; working {
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
		return o, true
	}
	o.Verdict, o.Reason = Orphan, "left by a run that did not end"
	return o, true
}

// secret judges a file with the secrets of an instance's machine.
func (k *known) secret(s secrets.File, f *Findings) (Object, bool) {
	o := Object{Identity: strconv.FormatUint(s.Inode, 10)}.as(KindSecret, s.File)
	r, recorded := k.instances[s.ID]
	work, working := k.subjects[record.Subject(s.ID)]
	switch zone := f.marks[s.ID]; {
	case recorded && r.Secrets == s.File:
		o.Verdict, o.Reason, o.final = InUse, "instance "+r.Name, true
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case !recorded && zone != "":
		o.Verdict, o.Reason, o.final = Unknown, "zone "+zone+" may need it, and the ledger does not know its instance", true
	default:
		o.Verdict, o.Reason = Orphan, "no record names it"
	}
	return o, true
}

// handle judges a virtual machine that the kernel holds. None is ever
// destroyed: a guest may be in it.
func (k *known) handle(e inventory.Entry, f *Findings) (Object, bool) {
	o := Object{final: true}.as(KindVM, e.Name)
	if r, recorded := k.instances[e.Name]; recorded && r.Incarnation != nil {
		if z, there := f.inv.Zone(r.Incarnation.Zone); there && inKernel(z.State) {
			o.Verdict, o.Reason = InUse, "instance "+r.Name
			return o, true
		}
	}
	if z := f.marks[e.Name]; z != "" {
		o.Verdict, o.Reason = InUse, "zone "+z+" runs it"
		return o, true
	}
	o.Verdict, o.Reason = Unknown, "no sledctl zone runs it; bhyvectl --destroy --vm="+e.Name+" would destroy it"
	return o, true
}

// inKernel says whether processes of a zone may be there in this state.
func inKernel(s zone.State) bool {
	return s == zone.Running || s == zone.ShuttingDown || s == zone.Down || s == zone.Ready
}

// records lists what the ledger keeps and the sled does not have. That of an
// instance stays, because the instance is wanted; those of bases and holds go.
func (k *known) records(f *Findings) []Object {
	gone := slices.Concat(k.recordsOfRuns(f), k.recordsOfBases(f), k.recordsOfLocalDisks(f), k.recordsOfSpares(f), k.recordsOfHolds(f), k.recordsOfVolumes(f), k.recordsOfImages(f), k.recordsOfSnapshots(f), k.recordsOfIntents(f))
	slices.SortStableFunc(gone, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return gone
}

func (k *known) recordsOfRuns(f *Findings) (gone []Object) {
	for name, r := range k.zones {
		_, there := f.inv.Zone(name)
		if there || r.Incarnation == nil || r.Incarnation.Zone != name || !r.incarnation.Ensured && r.incarnation.Boot == k.boot {
			continue
		}
		gone = append(gone, Object{Kind: KindRecord, Name: r.Name, Identity: r.ID, Verdict: StaleRec, final: true,
			Reason: "its zone " + name + " is missing; instance ensure creates it again"})
	}
	return gone
}

func (k *known) recordsOfBases(f *Findings) (gone []Object) {
	for _, name := range slices.Sorted(maps.Keys(k.bases)) {
		b := k.bases[name]
		_, zoned := f.inv.Zone(name)
		_, exists := f.inv.Dataset(b.Dataset)
		if _, working := k.busy["zone "+name]; !zoned && !exists && !working && f.lost(b.Dataset) == "" {
			gone = append(gone, Object{Kind: KindRecord, Name: recordOfBase(b), Identity: b.UUID, Verdict: StaleRec,
				about:  map[string]string{"zone " + name: b.UUID},
				Reason: "neither its zone " + name + " nor its dataset is there"})
		}
	}
	return gone
}

// recordsOfLocalDisks are those of local disks that are gone. One that the control plane wants stays for
// it to see; one whose removal was begun is forgotten.
func (k *known) recordsOfLocalDisks(f *Findings) (gone []Object) {
	for _, dataset := range slices.Sorted(maps.Keys(k.localDisks)) {
		r := k.localDisks[dataset]
		_, exists := f.inv.Dataset(dataset)
		if _, working := k.busy["dataset "+dataset]; !exists && !working && f.lost(dataset) == "" {
			gone = append(gone, Object{Kind: KindRecord, Name: localdisk.Subject(r.ID), Identity: r.ID.String(), Verdict: StaleRec, final: !r.Removing,
				about:  map[string]string{"dataset " + dataset: ""},
				Reason: "its dataset " + dataset + " is missing; storage local-disk delete forgets it"})
		}
	}
	return gone
}

func (k *known) recordsOfSpares(f *Findings) (gone []Object) {
	for _, name := range slices.Sorted(maps.Keys(k.spares)) {
		spare := k.spares[name]
		_, zoned := f.inv.Zone(name)
		_, exists := f.inv.Dataset(spare.Dataset)
		if _, working := k.busy["zone "+name]; !zoned && !exists && !working && f.lost(spare.Dataset) == "" {
			gone = append(gone, Object{Kind: KindRecord, Name: spare.Key(), Identity: spare.PropolisID, Verdict: StaleRec,
				about:  map[string]string{"zone " + name: ""},
				Reason: "of a spare; neither its zone " + name + " nor its dataset is there"})
		}
	}
	return gone
}

func (k *known) recordsOfHolds(f *Findings) (gone []Object) {
	for _, key := range slices.Sorted(maps.Keys(k.held)) {
		h := k.held[key]
		_, there := f.inv.Link(h.Name)
		if _, working := k.busy[key]; h.Kind == KindVNIC && !there && !working && !k.now.Before(h.Until) {
			gone = append(gone, Object{Kind: KindRecord, Name: recordOfHold(h), Identity: h.MAC, Verdict: StaleRec,
				about:  map[string]string{key: h.MAC},
				Reason: "what it holds is missing, and the time is up"})
		}
	}
	return gone
}

func (k *known) recordsOfIntents(f *Findings) (gone []Object) {
	for _, died := range k.died {
		if k.nobodyResumes(f, died) && !f.remains(died) {
			about := map[string]string{}
			for _, o := range died.Makes {
				about[o.Kind+" "+o.Name] = o.Identity
			}
			left := "nothing of it is left"
			if strings.HasPrefix(died.Subject, naming.SubjectDownload) {
				left = "what has come is kept for the next"
			}
			gone = append(gone, Object{Kind: KindRecord, Name: recordOfIntent(died), Identity: died.ID, Verdict: StaleRec, about: about,
				Reason: "of " + died.Verb + ", which did not end; " + left})
		}
	}
	return gone
}

// nobodyResumes says whether an intent is of a run that no later one takes up:
// one on a lone object, or on an instance that is deleted.
func (k *known) nobodyResumes(f *Findings, died operation.OpenIntent) bool {
	id, ofInstance := strings.CutPrefix(died.Subject, "instance/")
	_, recorded := k.instances[id]
	if v, ofVolume := k.volumeOf(died.Subject); ofVolume {
		return v.GUID == "" || k.removed(f, v) // there is none, or it was never finished and goes
	}
	if strings.HasPrefix(died.Subject, naming.KeySnapshot) {
		r, recorded := k.snapshots[died.Subject]
		return !recorded || r.Unfinished()
	}
	if strings.HasPrefix(died.Subject, naming.KeyImage) {
		r, recorded := k.imageOf(died.Subject) // a deletion is given again
		return len(died.Removes) == 0 || !recorded || k.halfDeleted(r, f)
	}
	lone := strings.HasPrefix(died.Subject, naming.KeyLocalDisk) || strings.HasPrefix(died.Subject, naming.SubjectDownload)
	return ofInstance && !recorded || lone || slices.Contains([]string{"vnic", vpc.Subject, bundle.Subject}, died.Subject)
}

// remains says whether something that a run was making is there, and stays.
func (f *Findings) remains(died operation.OpenIntent) bool {
	return slices.ContainsFunc(died.Makes, func(o operation.Object) bool {
		var there bool
		switch o.Kind {
		case KindZone:
			_, there = f.inv.Zone(o.Name)
		case KindVNIC, KindPort, KindEtherstub:
			_, there = f.inv.Link(o.Name)
		case KindDataset, KindVolume, KindSnapshot:
			_, there = f.inv.Dataset(o.Name)
		}
		return there && !f.goes[o.Kind+" "+o.Name] && !f.leaves(o.Name)
	})
}

func recordOfIntent(died operation.OpenIntent) string { return "intent/" + died.ID }

func recordOfBase(b base.Record) string { return fmt.Sprintf("base/%s/%d", b.Pool, b.Generation) }

func recordOfHold(h network.Hold) string { return "hold/" + h.Kind + "/" + h.Name }
