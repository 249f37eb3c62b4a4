package reap

import (
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/sled/localdisk"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zone"
)

// known is what the ledger says, arranged for questions.
type known struct {
	names      naming.Prefixes
	boot       string
	now        time.Time
	instances  map[string]*record.Record      // by id
	zones      map[string]recordedIncarnation // by zone name
	vnics      map[string]owner               // by link name
	none       recordedIncarnation            // nobody, made once
	bases      map[string]base.Record         // by zone name
	localDisks map[string]localdisk.Record    // by the dataset in which each lies
	images     map[string]image.Record        // by id
	snapshots  map[string]snapshot.Record     // by key
	newest     map[string]int                 // newest finished generation, by pool
	held       map[string]network.Hold        // by kind and name
	volumes    map[string]volume.Record       // by dataset
	disks      map[string][]string            // the instances that have a volume as a disk, by its dataset
	busy       map[string]busy                // objects of living runs, by kind and name
	subjects   map[string]busy                // living runs, by what they lock
	cloned     map[string]string              // the instance that has begun to clone a base, by its zone name
	cloning    map[string]busy                // living runs that clone a base, by its zone name
	secrets    []secrets.File
	dead       map[string]made        // what runs that died were making, by kind and name
	died       []operation.OpenIntent // intents of runs that died
	net        network.Record
	lone       map[string]zone.Config          // of zones that no index names, as far as they can be read
	spares     map[string]instance.JudgedSpare // by zone name
	again      func(record.Record) bool        // whether the zone that it has from an earlier boot is booted again
	under      map[string]bool                 // links over which sledctl's VNICs lie, or have lain
}

// recordedIncarnation is an incarnation with the record of its instance. Both are large,
// and asked for with each zone, VNIC and dataset.
type recordedIncarnation struct {
	*record.Record
	incarnation *record.Incarnation
}

// nobody stands for one that the ledger does not have.
func nobody() recordedIncarnation {
	return recordedIncarnation{&record.Record{}, &record.Incarnation{}}
}

// keeps is an object of the instance as it is judged where somebody else than the operator keeps
// that: reap of everything leaves it alone.
func (l recordedIncarnation) keeps(o Object) Object {
	if k := l.KeptBy(); k != record.Operator && o.Verdict == InUse {
		o.Reason, o.final = o.Reason+", which is kept by "+k.Text(), true
	}
	return o
}

// unfinished says by which verb a run was begun that died, if it did and
// nothing of the run can be running.
func (k *known) unfinished(l recordedIncarnation, f *Findings) (verb string, dead bool) {
	if l.incarnation.Ensured {
		return "", false
	}
	m, dead := k.dead["zone "+l.incarnation.Zone]
	z, _ := f.inv.Zone(l.incarnation.Zone)
	return m.verb, dead && z.State != zone.Running
}

// ofZone is what the ledger has of a zone.
func (k *known) ofZone(name string) (r recordedIncarnation, recorded bool) {
	if r, recorded = k.zones[name]; !recorded {
		r = k.none
	}
	return r, recorded
}

// ofLink is what the ledger has of a VNIC or a port.
func (k *known) ofLink(name string) (o owner, recorded bool) {
	if o, recorded = k.vnics[name]; !recorded {
		o.recordedIncarnation = k.none
	}
	return o, recorded
}

// current reports whether a zone is that of the instance's present incarnation.
func (l recordedIncarnation) current(z zone.Zone) bool {
	return l.Incarnation != nil && l.Incarnation.Zone == z.Name
}

type owner struct {
	recordedIncarnation
	vnic record.VNIC
}

// made is an object that a run was making when it died.
type made struct {
	verb     string
	identity string // empty: nobody knew it then
}

type busy struct {
	subject string // that its run has locked; empty: the run has ended
	holder  operation.Holder
	verb    string
}

func (b busy) String() string {
	if b.holder.PID == 0 {
		return "by " + b.verb
	}
	return fmt.Sprintf("by process %d (%s)", b.holder.PID, b.verb)
}

// know arranges the ledger. alive tells whether a subject's lock is held.
func know(names naming.Prefixes, view ledger.View, boot string, now time.Time, alive func(subject string) (operation.Holder, bool)) (*known, error) {
	k := &known{
		names: names, boot: boot, now: now,
		instances: map[string]*record.Record{}, zones: map[string]recordedIncarnation{}, vnics: map[string]owner{}, none: nobody(),
		spares: map[string]instance.JudgedSpare{}, bases: map[string]base.Record{}, localDisks: map[string]localdisk.Record{}, newest: map[string]int{}, images: map[string]image.Record{}, snapshots: map[string]snapshot.Record{}, held: map[string]network.Hold{},
		volumes: map[string]volume.Record{}, disks: map[string][]string{},
		busy: map[string]busy{}, subjects: map[string]busy{}, cloned: map[string]string{}, cloning: map[string]busy{}, dead: map[string]made{}, under: map[string]bool{},
		again: func(record.Record) bool { return false },
	}
	for _, learn := range []func(ledger.View) error{k.learnInstances, k.learnBases, k.learnLocalDisks, k.learnImages, k.learnHolds, k.learnVolumes, k.learnSnapshots} {
		if err := learn(view); err != nil {
			return nil, err
		}
	}
	var err error
	if k.net, _, err = network.Load(view); err != nil {
		return nil, err
	}
	k.learnLinks(k.net.Under())
	k.learnRuns(view, alive)
	return k, nil
}

func (k *known) learnLinks(links []string) {
	for _, name := range links {
		k.under[name] = true
	}
}

func (k *known) learnInstances(view ledger.View) error {
	records, err := record.All(view)
	for i := range records {
		r := &records[i]
		k.instances[r.ID] = r
		for _, n := range r.Spec.NICs {
			if !n.OPTE {
				k.under[n.Over] = true
			}
		}
		for _, d := range r.AllDisks() {
			if dataset, ok := d.Volume(); ok {
				k.disks[dataset] = append(k.disks[dataset], r.Name)
			}
		}
		for _, incarnation := range slices.Backward(r.Incarnations()) { // the present one counts
			recorded := recordedIncarnation{r, &incarnation}
			k.zones[incarnation.Zone] = recorded
			if incarnation.Boot == k.boot && !incarnation.Ensured {
				k.cloned[incarnation.Base] = "instance " + r.Name
			}
			for _, v := range append(slices.Clone(incarnation.Guests), incarnation.Control) {
				k.vnics[v.Name] = owner{recorded, v}
				if !v.Port {
					k.under[v.Over] = true
				}
			}
		}
	}
	return err
}

func (k *known) learnBases(view ledger.View) error {
	bases, err := base.All(view)
	for _, b := range bases {
		k.bases[b.Zone] = b
		if b.UUID != "" {
			k.newest[b.Pool] = max(k.newest[b.Pool], b.Generation)
		}
	}
	return err
}

func (k *known) learnLocalDisks(view ledger.View) error {
	disks, err := localdisk.All(view)
	for _, r := range disks {
		k.localDisks[r.Dataset()] = r
	}
	return err
}

func (k *known) learnImages(view ledger.View) error {
	images, err := image.All(view)
	for _, i := range images {
		k.images[i.ID] = i
	}
	return err
}

func (k *known) learnVolumes(view ledger.View) error {
	volumes, err := volume.All(view)
	for _, v := range volumes {
		k.volumes[v.Dataset] = v
	}
	return err
}

func (k *known) learnHolds(view ledger.View) error {
	holds, err := network.Holds(view)
	for _, h := range holds {
		k.held[h.Kind+" "+h.Name] = h
	}
	return err
}

// learnRuns tells runs that are at work from those that died.
func (k *known) learnRuns(view ledger.View, alive func(subject string) (operation.Holder, bool)) {
	for _, open := range operation.Open(view) {
		holder, living := alive(open.Subject)
		if !living {
			k.died = append(k.died, open)
			for _, o := range open.Makes {
				k.dead[o.Kind+" "+o.Name] = made{verb: open.Verb, identity: o.Identity}
			}
			continue
		}
		by := busy{subject: open.Subject, holder: holder, verb: open.Verb}
		k.subjects[open.Subject] = by
		for _, o := range slices.Concat(open.Makes, open.Removes, open.Changes) {
			k.busy[o.Kind+" "+o.Name] = by
		}
		if open.Base != "" {
			k.cloned[open.Base] = by.String()
			k.cloning[open.Base] = by
		}
	}
}
