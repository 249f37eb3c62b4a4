// Package localdisk makes and removes the volumes that VMs of a control plane have as local disks,
// as Oxide's sled agent lays them out: in POOL/local_storage_unencrypted or
// POOL/crypt/local_storage a dataset with the id of the disk, whose quota and reservation are one
// size, and the volume vol in it (omicron sled-agent/src/sled_agent.rs).
//
// A local disk outlives the VMs that have it as a disk: only who asked for it has it removed.
package localdisk

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Record is what the ledger keeps of a local disk, under localdisk/ID.
type Record struct {
	ID        uuid.UUID `json:"id"`
	Pool      string    `json:"pool"`
	Encrypted bool      `json:"encrypted,omitempty"`
	Size      uint64    `json:"size"`  // of the local disk, bytes
	Quota     uint64    `json:"quota"` // of its dataset, bytes, which are reserved, too
	// Removing is set as long as it is being removed, and stays if that did not end.
	Removing bool `json:"removing,omitempty"`
}

// Dataset is where the local disk lies.
func (r Record) Dataset() string {
	return naming.LocalStorage(r.Pool, r.Encrypted).Join(r.ID.String()).Dataset
}

// Volume is its dataset; the sled agent calls all of them so.
func (r Record) Volume() string { return r.Dataset() + "/vol" }

// Device is what a zone is given of it.
func (r Record) Device() string { return naming.VolumeDevice(r.Volume()) }

// Subject is what an operation on it locks, and the key of its record.
func Subject(id uuid.UUID) string { return naming.KeyLocalDisk + id.String() }

func (r Record) fact() (ledger.Fact, error) {
	value, err := json.Marshal(r)
	return ledger.Fact{Key: Subject(r.ID), Value: value}, err
}

// Forget is the fact that removes the record.
func (r Record) Forget() ledger.Fact { return ledger.Fact{Key: Subject(r.ID)} }

// Load reads the record of a local disk; false: there is none.
func Load(view ledger.View, id uuid.UUID) (r Record, known bool, err error) {
	value, known := view.Get(Subject(id))
	if !known {
		return Record{}, false, nil
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return Record{}, false, fmt.Errorf("record of local disk %s: %w", id, err)
	}
	return r, true, nil
}

// All are the recorded local disks, by id.
func All(view ledger.View) ([]Record, error) {
	var all []Record
	for key, value := range view.All(naming.KeyLocalDisk) {
		var r Record
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, fmt.Errorf("record %s: %w", key, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// Of is the local disk whose mark a dataset carries, as far as the dataset tells it; false: it
// carries none, or one that was set for another name.
func Of(d zfs.Dataset) (r Record, marked bool) {
	mark := d.User[naming.PropertyLocalDisk]
	id, err := uuid.Parse(mark.Value)
	if err != nil || mark.Source != zfs.Local || path.Base(d.Name) != id.String() {
		return Record{}, false
	}
	pool := naming.PoolOf(d.Name)
	for _, encrypted := range []bool{false, true} {
		r := Record{ID: id, Pool: pool, Encrypted: encrypted, Quota: d.Quota}
		if r.Dataset() == d.Name {
			return r, true
		}
	}
	return Record{}, false
}
