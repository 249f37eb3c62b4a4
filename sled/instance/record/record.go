package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Record is what the ledger keeps of an instance, under instance/<id>. It is
// what was decided, not what is there.
type Record struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Wanted  string `json:"wanted"` // running, stopped
	Spec    Spec   `json:"spec"`
	Control string `json:"control"` // MAC of the control VNIC
	// Secrets is the file that holds those of Spec.Machine, Spec.Crucible and Spec.CloudInit; empty: there are none.
	Secrets string `json:"secrets,omitempty"`
	// Later are the disks that the next incarnation has, where the present one was made with
	// others; nil: the same.
	Later *[]Disk `json:"later_disks,omitempty"`
	// Protected makes delete, and reap of everything, refuse to remove it.
	Protected  bool      `json:"protected,omitempty"`
	Generation uint64    `json:"generation"`
	Updated    time.Time `json:"updated"`
	// Began is when its VM was last started, reset or stopped by sledctl; zero: not known, as an
	// earlier sledctl did it.
	Began time.Time `json:"began,omitzero"`
	// Incarnation is nil while the instance is stopped and nothing of it is on the host.
	Incarnation *Incarnation `json:"run,omitempty"`
	// Leaving are earlier incarnations that were being removed for this one and may
	// still be there: whatever is done next, they go first.
	Leaving []Incarnation `json:"leaving,omitempty"`
	// VMM is set while the instance is the control plane's, and Ending once it is
	// decided that its incarnation ends: see vm.go.
	VMM *VMM `json:"vmm,omitempty"`
	// Keeper is who keeps the instance; empty: see KeptBy. KeeperGeneration is the
	// generation that the keeper has given it; 0: none.
	Keeper           Keeper  `json:"keeper,omitempty"`
	KeeperGeneration uint64  `json:"keeper_generation,omitempty"`
	Ending           *Ending `json:"ending,omitempty"`
	// Migration is set from before its machine's Propolis is asked for it until it
	// is known on which sled it ended.
	Migration *Migration `json:"migration,omitempty"`
	// Came is the id of the last migration that brought it here stopped; empty: none has.
	Came string `json:"came,omitempty"`
}

// Incarnations lists what may be on the host of an instance: its incarnation, and
// earlier ones that are being removed.
func (r Record) Incarnations() []Incarnation {
	if r.Incarnation == nil {
		return r.Leaving
	}
	return append([]Incarnation{*r.Incarnation}, r.Leaving...)
}

// What an instance is wanted to be.
const (
	WantedRunning = "running"
	WantedStopped = "stopped"
)

// Incarnation is one bring-up of an instance, with the names of all that it is made
// of on the host. They are chosen before anything is made.
type Incarnation struct {
	PropolisID string `json:"propolis_id"`
	Zone       string `json:"zone"`
	Zonepath   string `json:"zonepath"`
	Dataset    string `json:"dataset"` // of the zonepath
	Base       string `json:"base"`    // the zone that was cloned; empty: it was installed from images
	// BaseDataset is the base's zonepath dataset: clones leave snapshots there.
	BaseDataset string `json:"base_dataset"`
	Brand       string `json:"brand"`
	Control     VNIC   `json:"control"`
	Guests      []VNIC `json:"guests"`
	Boot        string `json:"boot"` // the sled's boot in which it was made
	// Ensured is set once the VM was given to Propolis: from then on an empty
	// Propolis has lost it.
	Ensured bool `json:"ensured"`
	// Reaped is set once a reap has decided to remove its zone: no other program
	// will have done it.
	Reaped bool `json:"reaped,omitempty"`
	// An incarnation that another tool has made may be Foreign: its zone is not
	// configured as we would have done it. Object is then the address object of
	// its control interface, and Service the FMRI under which Propolis runs, if
	// they are named differently from ours. A Service of ByHand is none at all.
	Foreign bool   `json:"foreign,omitempty"`
	Object  string `json:"object,omitempty"`
	Service string `json:"service,omitempty"`
	// Migration is the id of the one by which the machine came; empty: it was made
	// here.
	Migration string `json:"migration,omitempty"`
	// Clean is what its zone was before it first booted, as a digest
	// (layout.Fingerprint); empty: that is not known.
	Clean string `json:"clean,omitempty"`
	// Spare is set if its zone was a spare: it has snapshots of then, without a profile,
	// and others of before its first boot.
	Spare bool `json:"spare,omitempty"`
	// BootedAhead is set if that spare ran when it was taken: only the snapshots without a profile
	// are of before its first boot.
	BootedAhead bool `json:"booted_ahead,omitempty"`
	// Rolling is set while a zone from before the boot of the sled is rolled back and
	// booted: until that is done, nobody knows whether it was rolled back. Was is the
	// Propolis id of its VM of then, whose end is not written down yet.
	Rolling bool `json:"rolling,omitempty"`
	// Limiting is set while its guest NICs get other limits, rules or routes.
	Limiting bool   `json:"limiting,omitempty"`
	Was      string `json:"was,omitempty"`
}

// ByHand is the Service of a Propolis that no service of its zone has started.
const ByHand = "none"

// Pool is the one that its zone lies on.
func (r Incarnation) Pool() string {
	pool, _, _ := strings.Cut(r.Dataset, "/")
	return pool
}

// VNICs lists the VNICs of an incarnation, guests first: a zone's network configuration
// stands in this order.
func (r Incarnation) VNICs() []VNIC {
	return append(append([]VNIC{}, r.Guests...), r.Control)
}

// Load reads the record of an instance.
func Load(view ledger.View, id string) (Record, bool, error) {
	value, ok := view.Get(naming.KeyInstance + id)
	if !ok {
		return Record{}, false, nil
	}
	r, err := Decode(value)
	if err != nil {
		return Record{}, false, fmt.Errorf("record of instance %s: %w", id, err)
	}
	return r, true, nil
}

// Existing is the record of an instance that the operator called ref. The error
// is a *NotFoundError if there is none.
func Existing(view ledger.View, id, ref string) (Record, error) {
	r, known, err := Load(view, id)
	if err == nil && !known {
		err = Missing(view, ref)
	}
	return r, err
}

// All reads every record, ordered by id.
func All(view ledger.View) ([]Record, error) {
	var found []ledger.Fact
	for key, value := range view.All(naming.KeyInstance) {
		found = append(found, ledger.Fact{Key: key, Value: value})
	}
	records := make([]Record, len(found)) // at once: they are large
	// Side by side, in parts: to read ten thousand is a third of what it takes to list them.
	const part = 500
	errs := make([]error, (len(found)+part-1)/part)
	var all sync.WaitGroup
	for n := range errs {
		all.Go(func() {
			for i := n * part; i < min((n+1)*part, len(found)) && errs[n] == nil; i++ {
				records[i], errs[n] = decodeAt(found[i].Key, found[i].Value)
			}
		})
	}
	all.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	return records, nil
}

// Records is All for who stays, and keeps little of each record: those that he has
// seen are no longer in memory. An error is the last that it gives.
func Records(view ledger.View) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for key, value := range view.All(naming.KeyInstance) {
			if r, err := decodeAt(key, value); !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func decodeAt(key string, value json.RawMessage) (Record, error) {
	r, err := Decode(value)
	if err != nil {
		return Record{}, fmt.Errorf("record %s: %w", key, err)
	}
	return r, nil
}

// IDs are the ids of all recorded instances.
func IDs(view ledger.View) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range view.All(naming.KeyInstance) {
			if !yield(key[len(naming.KeyInstance):]) {
				return
			}
		}
	}
}

// Names lists the names of all instances, for completion.
func Names(view ledger.View) []string {
	var names []string
	for key := range view.All(naming.KeyName) {
		names = append(names, key[len(naming.KeyName):])
	}
	return names
}

// NotFoundError is an instance that the ledger does not know. Near is the name that was
// probably meant; empty: none is near.
type NotFoundError struct{ Name, Near string }

// Missing is the error about an instance that a view does not have.
func Missing(view ledger.View, name string) *NotFoundError {
	return &NotFoundError{Name: name, Near: naming.Nearest(name, Names(view))}
}

// Hint names what was probably meant.
func (e *NotFoundError) Hint() string {
	if e.Near == "" {
		return ""
	}
	return "did you mean " + e.Near + "? to list the instances, run: sledctl instance list"
}

// Error names it.
func (e *NotFoundError) Error() string { return fmt.Sprintf("no instance %q", e.Name) }

func (*NotFoundError) Kind() fault.Kind { return fault.NotFound }

// Facts are the record and all that it reserves.
func (r Record) Facts() ([]ledger.Fact, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	owner, err := json.Marshal(r.ID)
	if err != nil {
		return nil, err
	}
	facts := []ledger.Fact{{Key: naming.KeyInstance + r.ID, Value: value}}
	for _, key := range r.Reserves() {
		facts = append(facts, ledger.Fact{Key: key, Value: owner})
	}
	return facts, nil
}

// Reserves lists the keys next to the record that are the instance's own.
func (r Record) Reserves() []string {
	keys := []string{naming.KeyName + r.Name}
	if r.Spec.Address.Mode == Static {
		keys = append(keys, naming.KeyAddress+r.Spec.Address.Prefix.Addr().String())
	}
	if r.Control != "" {
		keys = append(keys, naming.KeyNIC+r.Control)
	}
	for _, n := range r.Spec.NICs {
		if n.MAC != "" {
			keys = append(keys, naming.KeyNIC+n.MAC)
		}
	}
	for _, incarnation := range r.Incarnations() {
		for _, v := range incarnation.VNICs() {
			keys = append(keys, naming.KeyVNIC+v.Name)
		}
	}
	for _, d := range r.AllDisks() {
		if !d.ReadOnly {
			keys = append(keys, d.key())
		}
	}
	for _, d := range r.Spec.Crucible {
		if !d.ReadOnly {
			keys = append(keys, d.key())
		}
	}
	return keys
}

// Replaces are the facts that turn record old into r: what only old reserved
// is given back. A zero old or r stands for none.
func (r Record) Replaces(old Record) ([]ledger.Fact, error) {
	var facts []ledger.Fact
	kept := map[string]bool{}
	if r.ID != "" {
		own, err := r.Facts()
		if err != nil {
			return nil, err
		}
		facts = own
		for _, f := range own {
			kept[f.Key] = true
		}
	}
	if old.ID == "" {
		return facts, nil
	}
	if r.ID == "" {
		facts = append(facts, ledger.Fact{Key: naming.KeySent + old.ID})
	}
	for _, key := range append([]string{naming.KeyInstance + old.ID}, old.Reserves()...) {
		if !kept[key] {
			facts = append(facts, ledger.Fact{Key: key})
		}
	}
	return facts, nil
}

// Owner is the instance that a key is reserved for; empty when it is free.
func Owner(view ledger.View, key string) string {
	value, ok := view.Get(key)
	if !ok {
		return ""
	}
	var id string
	if json.Unmarshal(value, &id) != nil {
		return "unreadable" // taken, by an unknown owner
	}
	return id
}

func AddressOwner(view ledger.View, ip netip.Addr) string {
	return Owner(view, naming.KeyAddress+ip.String())
}

// ClonedSince names an instance or a spare whose record has changed between two views and that
// is, or was to be, cloned from a base: what was seen of the sled between them may
// lack its clone. Empty: there is none.
func ClonedSince(before, now ledger.View, base string) (name string, err error) {
	for id := range IDs(now) {
		was, _ := before.Get(Subject(id))
		is, _ := now.Get(Subject(id))
		if bytes.Equal(was, is) {
			continue
		}
		r, _, err := Load(now, id)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(r.Incarnations(), func(incarnation Incarnation) bool { return incarnation.Base == base }) {
			return r.Name, nil
		}
	}
	spares, err := Spares(now)
	for _, s := range spares {
		if was, _ := before.Get(s.Key()); s.Base == base && was == nil {
			return "spare " + s.Zone, err
		}
	}
	return "", err
}

// UserOfVNIC is the record of the instance whose incarnation a VNIC belongs to.
func UserOfVNIC(view ledger.View, name string) (user Record, used bool, err error) {
	id := Owner(view, naming.KeyVNIC+name)
	if id == "" {
		return Record{}, false, nil
	}
	return Load(view, id)
}

// Subject is what an instance is locked as.
func Subject(id string) string { return naming.KeyInstance + id }

// Resolve turns a name or UUID into an id. A name that is not known gives the
// id that it would have.
func Resolve(namespace uuid.UUID, view ledger.View, ref string) (string, error) {
	if id, err := uuid.Parse(ref); err == nil {
		return id.String(), nil // every spelling of a UUID is the same instance
	}
	if err := ValidateName(ref); err != nil {
		return "", err
	}
	if id := Owner(view, naming.KeyName+ref); id != "" {
		return id, nil
	}
	id := naming.InstanceID(namespace, ref).String()
	if r, known, err := Load(view, id); err != nil || known {
		return "", errors.Join(err, &RenamedError{Name: ref, Now: r.Name})
	}
	return id, nil
}

// RenamedError is a name whose id an instance with another name has.
type RenamedError struct{ Name, Now string }

// Error names both.
func (e *RenamedError) Error() string {
	return fmt.Sprintf("no instance %q: it is named %q now", e.Name, e.Now)
}

func (*RenamedError) Kind() fault.Kind { return fault.NotFound }

func (r Record) HasZone(zoneName string) bool {
	return slices.ContainsFunc(r.Incarnations(), func(incarnation Incarnation) bool { return incarnation.Zone == zoneName })
}

// Objects lists what an incarnation will be made of, for an intent.
func (r Record) Objects() []operation.Object {
	objects := []operation.Object{{Kind: "zone", Name: r.Incarnation.Zone}, {Kind: "dataset", Name: r.Incarnation.Dataset}}
	for _, v := range r.Incarnation.VNICs() {
		objects = append(objects, operation.Object{Kind: v.Kind(), Name: v.Name, Identity: v.MAC})
	}
	return objects
}
