// Package image keeps disks that others are cloned from: each is a volume that carries
// sledctl's mark, and the snapshot @image of it, which nothing changes. An import that has not
// ended is recorded by its intent only; the next of the same name, and reap, remove what it made.
package image

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Record is what the ledger keeps of an image, under image/<id>.
type Record struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Pool    string `json:"pool"`
	Dataset string `json:"dataset"`
	GUID    string `json:"guid"` // of the volume
	// Size is that of the disk in bytes; the volume is as large, in whole blocks.
	Size        int64     `json:"size"`
	Format      string    `json:"format"`
	Compression string    `json:"compression,omitempty"`
	SHA256      string    `json:"sha256"` // of the file
	Time        time.Time `json:"time_imported"`
	// Copies are on further pools, on which disks were to be cloned from it.
	Copies []Place `json:"copies,omitempty"`
}

// snapshot is that of every image, behind its volume's name.
const snapshot = "@image"

// Snapshot is what disks are cloned from on the pool of the import.
func (r Record) Snapshot() string { return r.Dataset + snapshot }

func (r Record) key() string { return naming.KeyImage + r.ID }

// Forget is the fact that removes the record.
func (r Record) Forget() ledger.Fact { return ledger.Fact{Key: r.key()} }

// Subject is the one of operations on it.
func (r Record) Subject() string { return subject(r.Name) }

// Without is the fact that makes it an image that is not on a pool: a copy takes the place of what was
// imported there; without one, the image is forgotten. False: it was not on the pool.
func (r Record) Without(pool string) (f ledger.Fact, had bool, err error) {
	copies := slices.DeleteFunc(slices.Clone(r.Copies), func(p Place) bool { return p.Pool == pool })
	had = r.Pool == pool || len(copies) < len(r.Copies)
	if r.Copies = copies; r.Pool == pool {
		if len(copies) == 0 {
			return r.Forget(), had, nil
		}
		r.Pool, r.Dataset, r.GUID, r.Copies = copies[0].Pool, copies[0].Dataset, copies[0].GUID, copies[1:]
	}
	value, err := json.Marshal(r)
	return ledger.Fact{Key: r.key(), Value: value}, had, err
}

// All reads every record, by name.
func All(view ledger.View) ([]Record, error) {
	var records []Record
	for k, value := range view.All(naming.KeyImage) {
		var r Record
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, fmt.Errorf("record %s: %w", k, err)
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b Record) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	return records, nil
}

// Find is the image with a name or an id; false: there is none.
func Find(view ledger.View, ref string) (Record, bool, error) {
	all, err := All(view)
	i := slices.IndexFunc(all, func(r Record) bool { return r.Name == ref || r.ID == ref })
	if err != nil || i < 0 {
		return Record{}, false, err
	}
	return all[i], true, nil
}

// NotFoundError is an image that the ledger does not know. Near is the name that was probably meant;
// empty: none is near.
type NotFoundError struct{ Name, Near string }

// Error names it.
func (e *NotFoundError) Error() string { return fmt.Sprintf("no image %q", e.Name) }

func (*NotFoundError) Kind() fault.Kind { return fault.NotFound }

// Hint names what was probably meant.
func (e *NotFoundError) Hint() string {
	if e.Near != "" {
		return "did you mean " + e.Near + "? to list the images, run: sledctl image list"
	}
	return "to list the images, run: sledctl image list"
}

// Get is Find for one that must exist (*NotFoundError).
func Get(view ledger.View, ref string) (Record, error) {
	r, there, err := Find(view, ref)
	if err != nil || there {
		return r, err
	}
	all, err := All(view)
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.Name
	}
	return r, cmp.Or[error](err, &NotFoundError{Name: ref, Near: naming.Nearest(ref, names)})
}

// NameError is a text that cannot name an image.
type NameError struct{ Name string }

// Error says what can.
func (e *NameError) Error() string {
	return fmt.Sprintf("image name %q: want 1 to 63 of a-z, 0-9, '-', '_' and '.', the first a letter or digit, and no UUID", e.Name)
}

func (*NameError) Kind() fault.Kind { return fault.Usage }

// ValidateName refuses what cannot name an image (*NameError).
func ValidateName(name string) error {
	const first = "abcdefghijklmnopqrstuvwxyz0123456789"
	_, notID := uuid.Parse(name)
	if notID == nil || name == "" || len(name) > 63 || !strings.Contains(first, name[:1]) || strings.Trim(name, first+"._-") != "" {
		return &NameError{Name: name}
	}
	return nil
}

// Mark is the id of the image whose volume a dataset is, by its mark; empty: it has none.
func Mark(d zfs.Dataset) string {
	if mark := d.User[naming.PropertyImage]; mark.Source == zfs.Local && d.Type == zfs.TypeVolume {
		return mark.Value
	}
	return ""
}

// Status is a recorded image and what the host shows of it.
type Status struct {
	Record
	State  string   `json:"state"`  // "ready", "missing" or "unknown"
	Reason string   `json:"reason"` // why a place of it cannot be seen
	Used   uint64   `json:"used"`   // on its pools, in bytes
	Clones []string `json:"clones"`
}

// The states.
const (
	Ready   = "ready"
	Missing = "missing" // its volume or its snapshot is gone, on each of its pools
	Unseen  = "unknown" // it is on none of the pools that answer
)

// StatusOf compares a record with what was seen.
func StatusOf(r Record, inv *inventory.Inventory) Status {
	s := Status{Record: r, State: Missing, Reason: r.unseen(inv), Clones: clonesOf(r, inv)}
	if s.Reason != "" {
		s.State = Unseen
	}
	for _, p := range r.Places() {
		if p.whole(inv) {
			d, _ := inv.Dataset(p.Dataset)
			s.State, s.Used = Ready, s.Used+d.Used
		}
	}
	return s
}

// unseen says which pool hides whether the image is there, and what was cloned from it; empty: none.
func (r Record) unseen(inv *inventory.Inventory) string {
	for _, p := range r.Places() {
		if _, listed := inv.Dataset(p.Pool); !listed {
			return cmp.Or(inv.Unseen(p.Pool), "pool "+p.Pool+" is not one for zones now")
		}
	}
	return ""
}

// UnseenError is an image on a pool that does not answer: it is not gone.
type UnseenError struct{ Name, Why string }

// Error says how the pool is.
func (e *UnseenError) Error() string {
	return fmt.Sprintf("image %q cannot be seen: %s", e.Name, e.Why)
}

func (*UnseenError) Kind() fault.Kind { return fault.Refused }

// Hint says where to look.
func (*UnseenError) Hint() string {
	return "to see the pool and its disk, run: sledctl storage list; when it answers, run: sledctl bootstrap"
}

// clonesOf are the datasets that were cloned from an image, and the snapshots of its volume that
// somebody else has taken.
func clonesOf(r Record, inv *inventory.Inventory) []string {
	return clonesAt(append(r.Places(), r.unfinished(inv)...), inv)
}

func clonesAt(places []Place, inv *inventory.Inventory) []string {
	clones := []string{}
	datasets, _ := inv.Datasets()
	for _, d := range datasets {
		for _, p := range places {
			if strings.HasPrefix(d.Origin, p.Dataset+"@") || strings.HasPrefix(d.Name, p.Dataset+"@") && d.Name != p.Snapshot() {
				clones = append(clones, d.Name)
			}
		}
	}
	return clones
}

// Wants is what is looked at.
func Wants() inventory.Want {
	return inventory.Want{Parts: []inventory.Part{inventory.Pools, inventory.Datasets}, Roots: inventory.ZonePools, User: []string{naming.PropertyImage}}
}
