// Package reap finds what is on the sled that should not be. Every object of
// ours gets a verdict and one reason; what nobody needs goes, in the order in
// which one thing holds another. What is foreign is counted and left alone.
package reap

import (
	"fmt"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host/fault"
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
	Spare      Verdict = "spare" // cloned ahead, for the next new VM
	StaleZone  Verdict = "stale zone"
	StaleRec   Verdict = "stale record"
	Orphan     Verdict = "orphan"
	Unknown    Verdict = "unknown"
	// Unconfirmed is an orphan by a ledger that may lack what needs it. A reap
	// that removes anything knows: it settles the ledger first, or refuses.
	Unconfirmed Verdict = "orphan, unconfirmed"
)

// Removed reports whether a verdict means removal.
func (v Verdict) Removed() bool { return v == Orphan || v == StaleZone || v == Unconfirmed }

// NeedsALook reports whether a verdict is for a person to see, though the object stays.
func (v Verdict) NeedsALook() bool {
	return v == Unknown || v == Adoptable || v == StaleRec || v == Unconfirmed
}

// The kinds of objects that are judged.
const (
	KindZone      = "zone"
	KindVNIC      = "vnic"
	KindPort      = "port" // of OPTE
	KindEtherstub = "etherstub"
	KindAddress   = "address"
	KindDataset   = "dataset"
	KindSnapshot  = "snapshot"
	KindVolume    = "volume"        // by its dataset
	KindDirectory = "directory"     // a plain one where a zone's dataset would be mounted
	KindConfig    = "configuration" // of a zone that no index names
	KindKey       = "key"           // a file that holds a key of a disk
	KindSecret    = "secret"        // a file that holds secrets of a machine
	KindVM        = "vm"            // a handle below /dev/vmm
	KindRecord    = "record"        // of the ledger
)

// Kinds lists the kinds in the order in which objects are reported.
func Kinds() []string {
	return []string{KindZone, KindVNIC, KindPort, KindEtherstub, KindAddress, KindDataset, KindVolume, KindSnapshot, KindDirectory, KindConfig, KindKey, KindSecret, KindVM, KindRecord}
}

// Object is one sledctl object on the sled, judged.
type Object struct {
	Kind string `json:"kind"` // one of Kinds
	Name string `json:"name"`
	// Identity tells the object from another of its name: zone uuid, VNIC MAC,
	// dataset guid, address, inode. Empty where there is none: a zone that is
	// only configured, an etherstub.
	Identity string  `json:"identity"`
	Verdict  Verdict `json:"verdict"`
	Reason   string  `json:"reason"`

	// Removed reports whether this reap removes it: because of its verdict, or
	// because everything goes, and unless the operator's choice leaves it.
	Removed bool `json:"-"`
	// final is a verdict that stands even if everything is to go.
	final bool
	// rests is what can be adopted and does not run: it goes where it is named.
	rests bool
	// doubted is what may be another program's.
	doubted bool
	id      string // kind and name
	// about, of a record: what it was of, by kind and name, with the identity if
	// one is known.
	about map[string]string
}

// key names the object among all, by kind and name.
func (o Object) key() string { return o.id }

// as gives the object its key.
func (o Object) as(kind, name string) Object {
	o.Kind, o.Name, o.id = kind, name, kind+" "+name
	return o
}

// Findings are all sledctl objects, and how many foreign ones there are.
type Findings struct {
	Objects []Object
	Foreign int
	// Changed is what a saved plan names and what has changed since.
	Changed []Change

	// Basis is the ledger that they were judged by.
	Basis Basis

	choice  Choice
	planned map[string]Object // of the choice's plan, by kind and name
	begun   map[string]bool   // zones of that plan whose removal was begun, by a reap that died

	inv    *inventory.Inventory
	clones map[string][]string // datasets by the snapshot that they were cloned from
	lies   map[string][]string // zones by each directory that their zonepath lies in, itself included
	nets   map[string]string   // a zone by each link that its configuration names
	homes  map[string]string   // datasets that are marked as ours, by mountpoint
	left   map[string][]string // datasets of bases, by snapshot that a clone took of them or below
	taken  map[string][]string // snapshots in left, by the zone for which a clone took them
	over   map[string][]string // VNICs by the link under them
	bases  map[string]bool     // zones that are bases
	at     map[string]string   // file systems by mountpoint
	health map[string]string   // of pools that are imported, by name
	marks  map[string]string   // zones in which processes may be, by the instance in their mark
	goes   map[string]bool     // whether an object goes that was judged, by kind and name
	alike  map[string]bool     // objects that were judged and may be another program's, by kind and name
	first  map[string][]string // objects that must go before an object, all by kind and name
}

// Basis names a state of the ledger.
type Basis struct {
	Ledger string `json:"ledger"`
	Seq    uint64 `json:"seq"`
	Hash   string `json:"hash"`
	Sure   bool   `json:"sure"` // it lacks nothing that was acknowledged
}

// BasisError is a saved plan that was made by a ledger which is newer than the
// sled's, or another one.
type BasisError struct {
	Plan Basis
	Now  Basis
}

// Error names both.
func (e *BasisError) Error() string {
	return fmt.Sprintf("the plan was made by ledger %s at seq %d; the sled's is %s at seq %d", e.Plan.Ledger, e.Plan.Seq, e.Now.Ledger, e.Now.Seq)
}

func (*BasisError) Kind() fault.Kind { return fault.Ledger }

// Hint says what would be right.
func (*BasisError) Hint() string {
	return "to see which copies of the ledger count, run: sledctl ledger check; to plan with the ledger that exists, run: sledctl reap --dry-run -o json"
}

// suits says whether what a plan was made by is what the sled has, or had.
func (c Choice) suits(view ledger.View) error {
	now := basis(view)
	p := c.Basis
	if p == nil || p.Ledger == now.Ledger && (p.Seq < now.Seq || p.Seq == now.Seq && p.Hash == now.Hash) {
		return nil
	}
	return &BasisError{*p, now}
}

func basis(view ledger.View) Basis {
	head := view.Head()
	return Basis{view.Ledger(), head.Seq, head.Hash, len(view.Unconfirmed()) == 0}
}

// doubt adds to orphans that a ledger which is not sure may know what needs them.
func (f *Findings) doubt(view ledger.View) {
	f.Basis = basis(view)
	for i, o := range f.Objects {
		if o.Verdict == Orphan && !f.Basis.Sure {
			f.Objects[i].Verdict = Unconfirmed
		}
	}
}

// add keeps a sledctl object and counts a foreign one. An object
// without a kind is neither: it belongs to another that is judged.
func (f *Findings) add(o Object, ours bool) {
	switch {
	case !ours:
		f.Foreign++
	case o.Kind != "":
		if o.id == "" {
			o = o.as(o.Kind, o.Name)
		}
		o.Removed = f.takes(o)
		f.Objects = append(f.Objects, o)
		if f.goes[o.key()] = o.Removed; o.doubted {
			f.alike[o.key()] = true
		}
	}
}

// ours reports whether an object that was judged is certainly sledctl's.
func (f *Findings) ours(key string) bool {
	_, judged := f.goes[key]
	return judged && !f.alike[key]
}

// Going counts the objects that go.
func (f *Findings) Going() (n int) {
	for _, o := range f.Objects {
		if o.Removed {
			n++
		}
	}
	return n
}

// Runs says whether a zone that was judged runs.
func (f *Findings) Runs(o Object) bool {
	z, _ := f.inv.Zone(o.Name)
	return o.Kind == KindZone && z.State == zone.Running
}

// Planned says whether the saved plan names an object.
func (f *Findings) Planned(o Object) bool {
	_, planned := f.planned[o.key()]
	return planned
}
