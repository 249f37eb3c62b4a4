package storage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Record is what the ledger keeps of a disk, under disk/<identity>: which pool
// belongs to it, so that another one on it is noticed, and so is its absence.
type Record struct {
	Name   string    `json:"name"`
	Kind   disk.Kind `json:"kind"`
	Slot   int       `json:"slot"`
	Vendor string    `json:"vendor"`
	Model  string    `json:"model"`
	Serial string    `json:"serial"`
	Pool   string    `json:"pool"`
	Time   time.Time `json:"time"` // since when it is known with this pool
}

// text is a disk's identity as one word.
func text(id disk.Identity) string { return id.Vendor + "-" + id.Model + "-" + id.Serial }

func recordOf(d disk.Disk, pool string, now time.Time) Record {
	return Record{Name: d.Name, Kind: d.Kind, Slot: d.Slot, Vendor: d.Identity.Vendor, Model: d.Identity.Model, Serial: d.Identity.Serial, Pool: pool, Time: now}
}

// Place is the slot that the disk was in, e.g. u2:3.
func (r Record) Place() string { return slot(disk.Disk{Kind: r.Kind, Slot: r.Slot}) }

// Identity is the disk's.
func (r Record) Identity() disk.Identity {
	return disk.Identity{Vendor: r.Vendor, Model: r.Model, Serial: r.Serial}
}

func (r Record) fact() (ledger.Fact, error) {
	value, err := json.Marshal(r)
	return ledger.Fact{Key: path.Join(naming.KeyDisk, text(r.Identity())), Value: value}, err
}

// Records are the disks that the ledger knows, by identity.
func Records(view ledger.View) (map[disk.Identity]Record, error) {
	known := map[disk.Identity]Record{}
	for k, value := range view.All(naming.KeyDisk) {
		if bytes.HasPrefix(value, []byte(`"`)) {
			continue // until 2026-11 an instance reserved its disks here, by its id
		}
		var r Record
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, fmt.Errorf("ledger: %s: %w", k, err)
		}
		known[r.Identity()] = r
	}
	return known, nil
}
