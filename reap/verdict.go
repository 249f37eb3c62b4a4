// Package reap finds what is on the sled that should not be. Every object of
// ours gets a verdict and one reason; what nobody needs goes, in the order in
// which one thing holds another. What is not ours is counted and left alone.
package reap

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/base"
	"github.com/sledctl/sledctl/instance"
	"github.com/sledctl/sledctl/inventory"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/network"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/sled"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// Verdict is what reap thinks of an object.
type Verdict string

// The verdicts.
const (
	InUse      Verdict = "in use"
	InProgress Verdict = "in progress"
	Held       Verdict = "held"
	Adoptable  Verdict = "adoptable"
	StaleZone  Verdict = "stale zone"
	StaleRec   Verdict = "stale record"
	Orphan     Verdict = "orphan"
	Unknown    Verdict = "unknown"
)

// Goes says whether a verdict means removal.
func (v Verdict) Goes() bool { return v == Orphan || v == StaleZone }

// Object is one thing of ours on the sled, judged.
type Object struct {
	Kind     string  `json:"kind"` // zone, vnic, dataset, snapshot
	Name     string  `json:"name"`
	Identity string  `json:"identity"` // zone uuid, VNIC MAC, dataset guid
	Verdict  Verdict `json:"verdict"`
	Reason   string  `json:"reason"`
}

// Findings are all objects of ours, and how many there are that are not.
type Findings struct {
	Objects []Object
	Foreign int

	inv    *inventory.Inventory
	clones map[string][]string // datasets by the snapshot that they were cloned from
	lies   map[string][]string // zones by each directory that their zonepath lies in, itself included
	nets   map[string]string   // a zone by each link that its configuration names
	homes  map[string]string   // datasets that are marked as ours, by mountpoint
	left   map[string]string   // datasets of recorded bases, by snapshot that a clone took of them or below
	goes   map[string]bool     // zones and datasets that go, by kind and name
}

// known is what the ledger says, arranged for questions.
type known struct {
	names     sled.Prefixes
	boot      string
	now       time.Time
	instances map[string]instance.Record // by id
	zones     map[string]life            // by zone name
	vnics     map[string]owner           // by link name
	bases     map[string]base.Record     // by zone name
	newest    map[string]int             // newest finished generation, by pool
	held      map[string]network.Hold    // by kind and name
	busy      map[string]busy            // objects of living runs, by kind and name
	cloned    map[string]string          // who has begun to clone a base, by its zone name
	dead      map[string]string          // verbs of runs that died, by kind and name of what they make
	gz        string                     // the global zone's own VNIC
}

// life is a run of an instance.
type life struct {
	instance.Record
	run instance.Run
}

// unfinished says by which verb a run was begun that died, if it did and
// nothing of the run can be running.
func (k known) unfinished(l life, f Findings) (verb string, dead bool) {
	verb, dead = k.dead["zone "+l.run.Zone]
	z, _ := f.inv.Zone(l.run.Zone)
	return verb, dead && !l.run.Ensured && z.State != zone.Running
}

type owner struct {
	life
	vnic instance.VNIC
}

type busy struct {
	holder operation.Holder
	verb   string
}

// know arranges the ledger. alive tells whether a subject's lock is held.
func know(names sled.Prefixes, view ledger.View, boot string, now time.Time, alive func(subject string) (operation.Holder, bool)) (known, error) {
	k := known{names: names, boot: boot, now: now, instances: map[string]instance.Record{}, zones: map[string]life{},
		vnics: map[string]owner{}, bases: map[string]base.Record{}, newest: map[string]int{}, held: map[string]network.Hold{}, busy: map[string]busy{}, cloned: map[string]string{}, dead: map[string]string{}}
	records, err := instance.All(view)
	if err != nil {
		return known{}, err
	}
	for _, r := range records {
		k.instances[r.ID] = r
		for _, run := range slices.Backward(r.Runs()) { // the present one counts
			k.zones[run.Zone] = life{r, run}
			if run.Boot == boot && !run.Ensured {
				k.cloned[run.Base] = "instance " + r.Name
			}
			for _, v := range append(slices.Clone(run.Guests), run.Control) {
				k.vnics[v.Name] = owner{life{r, run}, v}
			}
		}
	}
	bases, err := base.All(view)
	if err != nil {
		return known{}, err
	}
	for _, b := range bases {
		k.bases[b.Zone] = b
		if b.UUID != "" {
			k.newest[b.Pool] = max(k.newest[b.Pool], b.Generation)
		}
	}
	holds, err := network.Holds(view)
	if err != nil {
		return known{}, err
	}
	for _, h := range holds {
		k.held[h.Kind+" "+h.Name] = h
	}
	if net, ok, err := network.Load(view); err != nil {
		return known{}, err
	} else if ok {
		k.gz = net.GZVNIC
	}
	for _, open := range operation.Open(view) {
		holder, living := alive(open.Subject)
		if !living {
			for _, o := range open.Makes {
				k.dead[o.Kind+" "+o.Name] = open.Verb
			}
			continue
		}
		for _, o := range slices.Concat(open.Makes, open.Removes, open.Changes) {
			k.busy[o.Kind+" "+o.Name] = busy{holder: holder, verb: open.Verb}
		}
		if open.Base != "" {
			k.cloned[open.Base] = busy{holder: holder, verb: open.Verb}.String()
		}
	}
	return k, nil
}

// Judge gives every object of ours a verdict. It is pure.
func judge(k known, inv *inventory.Inventory) (Findings, error) {
	f := Findings{inv: inv, goes: map[string]bool{}}
	zones, err := inv.Zones()
	if err != nil {
		return f, err
	}
	links, err := inv.Links()
	if err != nil {
		return f, err
	}
	datasets, err := inv.Datasets()
	if err != nil {
		return f, err
	}
	f.arrange(k, zones, datasets)
	// By name: the host lists zones and links in the order in which they were
	// made, and what is made side by side has none.
	zones = slices.SortedFunc(slices.Values(zones), func(a, b zone.Zone) int { return strings.Compare(a.Name, b.Name) })
	links = slices.SortedFunc(slices.Values(links), func(a, b vnic.Link) int { return strings.Compare(a.Name, b.Name) })
	for _, z := range zones {
		config, _ := inv.Config(z.Name)
		f.add(k.zone(z, config, f))
	}
	for _, l := range links {
		f.add(k.link(l, f))
	}
	for _, d := range datasets {
		if d.Type != zfs.TypeSnapshot {
			f.add(k.dataset(d, f))
		}
	}
	for _, d := range datasets { // theirs depends on what becomes of the datasets
		if d.Type == zfs.TypeSnapshot {
			f.add(k.snapshot(d, f))
		}
	}
	f.Objects = append(f.Objects, k.gone(f)...)
	return f, nil
}

// add keeps an object that is ours and counts one that is not. An object
// without a kind is neither: it belongs to another that is judged.
func (f *Findings) add(o Object, ours bool) {
	switch {
	case !ours:
		f.Foreign++
	case o.Kind != "":
		f.Objects = append(f.Objects, o)
		f.goes[o.Kind+" "+o.Name] = o.Verdict.Goes()
	}
}

// arrange makes what is asked of each of many objects quick to answer.
func (f *Findings) arrange(k known, zones []zone.Zone, datasets []zfs.Dataset) {
	f.clones, f.lies, f.nets = map[string][]string{}, map[string][]string{}, map[string]string{}
	f.homes, f.left = map[string]string{}, map[string]string{}
	for _, z := range zones {
		for dir := z.Path; z.Name != zone.Global && dir != "/" && dir != "." && dir != ""; dir = path.Dir(dir) {
			f.lies[dir] = append(f.lies[dir], z.Name)
		}
		config, _ := f.inv.Config(z.Name)
		for _, n := range config.Nets {
			f.nets[n.Physical] = z.Name
		}
	}
	for _, d := range datasets {
		if d.Origin != "" {
			f.clones[d.Origin] = append(f.clones[d.Origin], d.Name)
		}
		if marked(d) {
			f.homes[d.Mountpoint] = d.Name
		}
	}
	for _, b := range k.bases {
		for _, d := range f.inv.Below(b.Dataset) {
			if _, snapshot, ok := strings.Cut(d.Name, "@"); ok {
				f.left[snapshot] = b.Dataset
			}
		}
	}
}

// marked says whether a dataset itself carries a mark of ours.
func marked(d zfs.Dataset) bool {
	return d.User[sled.PropertyInstance].Source == "local" || d.User[sled.PropertyBase].Source == "local"
}

func (k known) zone(z zone.Zone, config zone.Config, f Findings) (Object, bool) {
	o := Object{Kind: "zone", Name: z.Name, Identity: z.UUID}
	if z.Name == "global" {
		return Object{}, true
	}
	if !k.names.WhoseZone(z.Name, attrs(config)).Ours() {
		return o, false
	}
	r, recorded := k.zones[z.Name]
	verb, died := k.unfinished(r, f)
	b, based := k.bases[z.Name]
	work, working := k.busy["zone "+z.Name]
	switch {
	case working:
		o.Verdict, o.Reason = InProgress, work.String()
	case based:
		o.Verdict, o.Reason = k.base(b, z, f)
	case recorded && died:
		o.Verdict, o.Reason = Orphan, "left by "+verb+" of instance "+r.Name+", which did not end"
	case recorded && z.State == zone.Running:
		o.Verdict, o.Reason = InUse, "instance "+r.Name
	case recorded && r.run.Boot != k.boot:
		o.Verdict, o.Reason = StaleZone, "of instance "+r.Name+", from an earlier boot of the sled, and not running"
	case recorded:
		o.Verdict, o.Reason = InUse, "instance "+r.Name+"; it is "+string(z.State)
	case z.State == zone.Running:
		o.Verdict, o.Reason = Adoptable, "runs, and the ledger does not know it"
	default:
		o.Verdict, o.Reason = Orphan, "is "+string(z.State)+", and no instance needs it"
	}
	if home, there := f.inv.Dataset(f.homes[z.Path]); there && o.Verdict.Goes() {
		if need := f.needs(home, z.Name); need != "" {
			o.Verdict, o.Reason = InUse, need
		}
	}
	return o, true
}

func (b busy) String() string {
	if b.holder.PID == 0 {
		return "by " + b.verb
	}
	return fmt.Sprintf("by process %d (%s)", b.holder.PID, b.verb)
}

func (k known) base(b base.Record, z zone.Zone, f Findings) (Verdict, string) {
	clones := 0
	for _, d := range f.inv.Below(b.Dataset) {
		clones += len(f.clones[d.Name])
	}
	switch {
	case clones > 0:
		return InUse, fmt.Sprintf("base of pool %s; %d cloned from it", b.Pool, clones)
	case k.cloned[b.Zone] != "":
		return InUse, fmt.Sprintf("base of pool %s; about to be cloned: %s", b.Pool, k.cloned[b.Zone])
	case z.State == zone.Running:
		return InUse, "base of pool " + b.Pool + "; it runs, which no base should"
	case b.UUID == "":
		return Orphan, "a base that was never finished"
	case b.Generation < k.newest[b.Pool]:
		return Orphan, fmt.Sprintf("a base that generation %d replaced; nothing is cloned from it", k.newest[b.Pool])
	}
	return InUse, "base of pool " + b.Pool
}

func (k known) link(l vnic.Link, f Findings) (Object, bool) {
	o := Object{Kind: "vnic", Name: l.Name, Identity: l.MAC}
	own, recorded := k.vnics[l.Name]
	verb, died := k.unfinished(own.life, f)
	hold, held := k.held["vnic "+l.Name]
	work, working := k.busy["vnic "+l.Name]
	if l.Class != "vnic" || l.Name == k.gz {
		return Object{}, l.Name == k.gz || l.Class == "etherstub"
	}
	if !recorded && !held && !working && !k.names.WhoseVNIC(l.Name).Ours() {
		return o, false
	}
	z, zoned := f.inv.Zone(l.Zone)
	died = died && z.State != zone.Running
	switch {
	case working:
		o.Verdict, o.Reason = InProgress, work.String()
	case recorded && died && own.vnic.MAC == l.MAC && own.vnic.Over == l.Over:
		o.Verdict, o.Reason = Orphan, "left by "+verb+" of instance "+own.Name+", which did not end"
	case recorded && own.vnic.MAC == l.MAC && own.vnic.Over == l.Over:
		o.Verdict, o.Reason = InUse, "instance "+own.Name
	case recorded:
		o.Verdict, o.Reason = Unknown, "has the name of a VNIC of instance "+own.Name+", but another MAC or link below"
	case zoned && f.goes["zone "+l.Zone]:
		o.Verdict, o.Reason = Orphan, "zone "+l.Zone+" has it, and goes"
	case zoned:
		o.Verdict, o.Reason = InUse, "zone "+l.Zone+" has it"
	case held && k.now.Before(hold.Until):
		o.Verdict, o.Reason = Held, "until "+hold.Until.UTC().Format(time.RFC3339)
	case held:
		o.Verdict, o.Reason = Orphan, "was held until "+hold.Until.UTC().Format(time.RFC3339)+", and no instance took it"
	default:
		o.Verdict, o.Reason = Orphan, "no instance needs it"
	}
	return o, true
}

// dataset judges zonepaths that are marked as ours and have lost their zone.
func (k known) dataset(d zfs.Dataset, f Findings) (Object, bool) {
	o := Object{Kind: "dataset", Name: d.Name, Identity: d.GUID}
	if !marked(d) {
		return Object{}, true // what lies in ours is judged with it, and other pools' content is not listed
	}
	name := d.Name[strings.LastIndexByte(d.Name, '/')+1:]
	work, working := k.busy["dataset "+d.Name]
	_, zoned := f.inv.Zone(name)
	r, recorded := k.zones[name]
	verb, died := k.unfinished(r, f)
	switch {
	case working:
		o.Verdict, o.Reason = InProgress, work.String()
	case zoned:
		return Object{}, true // goes and stays with its zone
	case recorded && died:
		o.Verdict, o.Reason = Orphan, "left by "+verb+" of instance "+r.Name+", which did not end"
	case recorded && r.run.Boot == k.boot && !r.run.Ensured:
		o.Verdict, o.Reason = InUse, "instance "+r.Name+", whose zone is not made yet"
	default:
		o.Verdict, o.Reason = Orphan, "its zone is gone"
	}
	if need := f.needs(d, ""); o.Verdict == Orphan && need != "" {
		o.Verdict, o.Reason = InUse, need
	}
	return o, true
}

// needs says who needs something of a dataset or of what lies below it: a zone
// of whatever name, other than the one whose home it is, or a clone elsewhere.
func (f Findings) needs(d zfs.Dataset, home string) string {
	for _, part := range append(f.inv.Below(d.Name), d) {
		for _, z := range f.lies[part.Mountpoint] {
			if part.Type == zfs.TypeFilesystem && z != home {
				return "zone " + z + " lies in it"
			}
		}
		for _, clone := range f.clones[part.Name] {
			if !strings.HasPrefix(clone, d.Name+"/") {
				return clone + " is cloned from it"
			}
		}
	}
	return ""
}

// snapshot judges what clones left on bases.
func (k known) snapshot(d zfs.Dataset, f Findings) (Object, bool) {
	o := Object{Kind: "snapshot", Name: d.Name, Identity: d.GUID}
	dataset, snapshot, _ := strings.Cut(d.Name, "@")
	clone, ok := cloneOf(snapshot)
	base := f.left[snapshot]
	if !ok || len(f.clones[d.Name]) > 0 || dataset != base && !strings.HasPrefix(dataset, base+"/") {
		return Object{}, true
	}
	if _, zoned := f.inv.Zone(clone); zoned || f.goes["zone "+path.Base(base)] || f.goes["dataset "+base] {
		return Object{}, true // goes and stays with its zone, or with the base
	}
	if work, working := k.busy["zone "+clone]; working {
		o.Verdict, o.Reason = InProgress, work.String()
		return o, true
	}
	o.Verdict, o.Reason = Orphan, "left by the clone of zone "+clone+", which is gone"
	return o, true
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

func attrs(c zone.Config) map[string]string {
	all := make(map[string]string, len(c.Attrs))
	for _, a := range c.Attrs {
		all[a.Name] = a.Value
	}
	return all
}

// gone lists records whose run is not on the sled any more.
func (k known) gone(f Findings) []Object {
	var gone []Object
	for name, r := range k.zones {
		_, there := f.inv.Zone(name)
		if there || r.Run == nil || r.Run.Zone != name || !r.run.Ensured && r.run.Boot == k.boot {
			continue
		}
		gone = append(gone, Object{Kind: "record", Name: r.Name, Identity: r.ID, Verdict: StaleRec, Reason: "its zone " + name + " is not there; instance ensure makes it again"})
	}
	slices.SortFunc(gone, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return gone
}
