// Package volume makes and removes volumes that VMs have as disks: ZFS volumes of
// sledctl's own, each with a record and a mark.
//
// A record in the ledger says what a volume is, the host shows what is there. A volume whose
// record is unfinished was being made by an operation that died; one that carries the mark and
// has no record was recorded by a ledger that was lost. What has a record is never removed but
// by Delete, and what an instance has as a disk not even by that.
package volume

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Record is what the ledger keeps of a volume, under volume/<id>.
type Record struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Pool    string `json:"pool"`
	Dataset string `json:"dataset"`
	// GUID is the dataset's; empty until the volume is made.
	GUID      string `json:"guid,omitempty"`
	Size      uint64 `json:"size"`       // bytes
	Block     uint64 `json:"block_size"` // bytes
	Thin      bool   `json:"thin"`       // the pool keeps nothing back for it
	Protected bool   `json:"protected"`  // Delete refuses it
	// Follows says that it is deleted with the instance that has it as a disk.
	Follows bool `json:"delete_with_instance"`
	// Image is the name of the image that it was cloned from; empty: of none.
	Image string `json:"image,omitempty"`
	// Received is the GUID of the snapshot whose stream it was made of; empty: of none.
	Received string `json:"received,omitempty"`
	// Arrives is the id of the instance with which it moves here, until that has: its latest snapshot is the one that
	// Received names, and nothing else uses it.
	Arrives string    `json:"arrives,omitempty"`
	Created time.Time `json:"created"`
}

// Path is the raw device of the volume: the disk of a VM that has it.
func (r Record) Path() string { return naming.VolumeDevice(r.Dataset) }

// Subject is what an operation on a volume locks: the key of its record.
func Subject(id string) string { return naming.KeyVolume + id }

func (r Record) fact() (ledger.Fact, error) {
	value, err := json.Marshal(r)
	return ledger.Fact{Key: Subject(r.ID), Value: value}, err
}

// Forget is the fact that takes a volume out of the ledger.
func (r Record) Forget() ledger.Fact { return ledger.Fact{Key: Subject(r.ID)} }

// All reads every record, by name.
func All(view ledger.View) ([]Record, error) {
	var all []Record
	for key, value := range view.All(naming.KeyVolume) {
		var r Record
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, fmt.Errorf("record %s: %w", key, err)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Find reads the record of the volume that ref, a name or an id, means. Errors:
// *NotFoundError.
func Find(view ledger.View, ref string) (Record, error) {
	all, err := All(view)
	if err != nil {
		return Record{}, err
	}
	names := make([]string, len(all))
	for i, r := range all {
		if names[i] = r.Name; r.Name == ref || r.ID == ref {
			return r, nil
		}
	}
	return Record{}, &NotFoundError{Name: ref, Near: naming.Nearest(ref, names)}
}

// PathOf is the raw device of the volume of a name. Errors: *NotFoundError, *UnfinishedError, *ArrivingError.
func PathOf(view ledger.View, name string) (string, error) {
	r, err := Find(view, name)
	switch {
	case err != nil:
	case r.GUID == "":
		err = &UnfinishedError{Name: r.Name}
	case r.Arrives != "":
		err = &ArrivingError{Name: r.Name, Instance: r.Arrives}
	}
	return r.Path(), err
}

// BySubject finds the record that a subject is the key of.
func BySubject(view ledger.View, subject string) (r Record, known bool) {
	value, there := view.Get(subject)
	known = there && json.Unmarshal(value, &r) == nil
	return r, known
}

// At finds the record of the volume that is this dataset.
func At(view ledger.View, dataset string) (Record, bool) {
	all, _ := All(view) // an error is reported by what needs the records
	i := slices.IndexFunc(all, func(r Record) bool { return r.Dataset == dataset })
	if i < 0 {
		return Record{}, false
	}
	return all[i], true
}

// Settings are what volumes take from the sled's configuration and from the packages next
// to this one.
type Settings struct {
	// Namespace is the sled's own, in which names become ids.
	Namespace uuid.UUID
	// Pools are the pools that volumes may be put on, in order of preference; nil: those of
	// zones.
	Pools []string
	// Attached names the instances that have volumes as disks, by the volumes' datasets.
	Attached func(ledger.View) (map[string][]string, error)
	// Image finds the image of a name.
	Image func(view ledger.View, name, pool string) (Image, error)
	// CopyImage makes an image on a further pool, on which a volume is to be cloned from it.
	CopyImage func(ctx context.Context, env operation.Env, name, pool string, dryRun bool) (snapshot string, report operation.Report, err error)
}

// Image is what a volume may begin as.
type Image struct {
	Name, Pool string
	Snapshot   string // of its volume
	Size       uint64 // bytes, whole blocks
	Block      uint64 // bytes
	Copied     bool   // it can be made on another pool, too
}

// id is the id of a volume with a name: that of its record, else the first that the name stands
// for and that no volume has, which was given another name.
func (s Settings) id(view ledger.View, name string) (string, error) {
	all, err := All(view)
	taken := map[string]bool{}
	for _, r := range all {
		if taken[r.ID] = true; r.Name == name {
			return r.ID, err
		}
	}
	for n := 0; ; n++ {
		if id := naming.VolumeID(s.Namespace, name, n).String(); !taken[id] {
			return id, err
		}
	}
}

// attached are the instances that have the volume.
func (s Settings) attached(view ledger.View, r Record) ([]string, error) {
	if s.Attached == nil {
		return nil, nil
	}
	all, err := s.Attached(view)
	return all[r.Dataset], err
}
