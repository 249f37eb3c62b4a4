package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/storage"
)

// SledConfig is the body of PUT /omicron-config: what a control plane wants a sled to have.
type SledConfig struct {
	Generation     uint64                     `json:"generation"`
	Disks          map[string]WantedDisk      `json:"disks"`    // by their ids
	Datasets       map[string]WantedDataset   `json:"datasets"` // by their ids
	Zones          map[string]json.RawMessage `json:"zones"`    // by their ids
	RemoveOverride *uuid.UUID                 `json:"remove_mupdate_override"`
	HostPhase2     HostPhase2                 `json:"host_phase_2"`
	Measurements   []Measurement              `json:"measurements"`
}

// WantedDisk is a disk that the control plane uses.
type WantedDisk struct {
	ID       uuid.UUID         `json:"id"`
	Identity InventoryIdentity `json:"identity"`
	Pool     uuid.UUID         `json:"pool_id"`
}

// WantedDataset is a dataset that a pool must have.
type WantedDataset struct {
	ID          uuid.UUID   `json:"id"`
	Name        DatasetName `json:"name"`
	Compression Compression `json:"compression"`
	Quota       *uint64     `json:"quota"`
	Reservation *uint64     `json:"reservation"`
}

// DatasetName is a kind of dataset on a pool.
type DatasetName struct {
	Pool string `json:"pool_name"`
	Kind string `json:"kind"`
}

// Compression is a way of it.
type Compression struct {
	Type  string `json:"type"`
	Level *uint8 `json:"level,omitempty"` // of gzip_n
}

// HostPhase2 is what the boot slots are to hold.
type HostPhase2 struct {
	A SlotContents `json:"slot_a"`
	B SlotContents `json:"slot_b"`
}

// SlotContents is the image of one of them.
type SlotContents struct {
	Type string `json:"type"` // current_contents, artifact
	Hash string `json:"hash,omitempty"`
}

// Measurement is one that the control plane wants to hold a boot to.
type Measurement struct {
	Hash string `json:"hash"`
}

// ParseSledConfig reads such a body. Errors: a 400 for what cannot be read, and for an image, of
// which a sled of sledctl has none, as the sled agent refuses one that it does not have (omicron
// sled-agent/config-reconciler/src/ledger.rs).
func ParseSledConfig(data []byte) (SledConfig, *Error) {
	c := SledConfig{HostPhase2: HostPhase2{A: SlotContents{Type: "current_contents"}, B: SlotContents{Type: "current_contents"}}}
	err := whole(data, &c, "generation", "disks", "datasets", "zones", "measurements")
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return c, BadRequest("unable to parse JSON body: " + err.Error())
	}
	images, err := c.images()
	if err != nil {
		return c, BadRequest("unable to parse JSON body: " + err.Error())
	}
	if len(images) > 0 {
		for i, hash := range images {
			images[i] = "Artifact " + hash + " not found"
		}
		return c, BadRequest("sled config is invalid: " + strings.Join(images, ", "))
	}
	return c, nil
}

// check holds ids, pools and words to what they can be.
func (c SledConfig) check() error {
	for key, d := range c.Disks {
		if key != d.ID.String() {
			return fmt.Errorf("disks: key %q does not match id %s", key, d.ID)
		}
	}
	for key, d := range c.Datasets {
		if key != d.ID.String() {
			return fmt.Errorf("datasets: key %q does not match id %s", key, d.ID)
		}
		if kind, _ := naming.ParsePool(d.Name.Pool); kind == naming.OtherPool {
			return fmt.Errorf("datasets: pool_name %q: want oxp_UUID or oxi_UUID", d.Name.Pool)
		}
		if d.Compression.text() == "" {
			return fmt.Errorf("datasets: compression: unknown variant `%s`", d.Compression.Type)
		}
	}
	return nil
}

// images are the hashes of all that are named.
func (c SledConfig) images() (all []string, err error) {
	for _, key := range slices.Sorted(maps.Keys(c.Zones)) {
		var zone struct {
			ID     uuid.UUID     `json:"id"`
			Source *SlotContents `json:"image_source"`
		}
		err := json.Unmarshal(c.Zones[key], &zone)
		if err == nil && key != zone.ID.String() {
			err = fmt.Errorf("key %q does not match id %s", key, zone.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("zones: %w", err)
		}
		if zone.Source != nil && zone.Source.Hash != "" {
			all = append(all, zone.Source.Hash)
		}
	}
	for _, slot := range []SlotContents{c.HostPhase2.A, c.HostPhase2.B} {
		if slot.Hash != "" {
			all = append(all, slot.Hash)
		}
	}
	for _, m := range c.Measurements {
		all = append(all, m.Hash)
	}
	return all, nil
}

// text is the value of ZFS' property; empty: it is none.
func (c Compression) text() string {
	if c.Type == "gzip_n" && c.Level != nil && *c.Level >= 1 && *c.Level <= 9 {
		return "gzip-" + strconv.Itoa(int(*c.Level))
	}
	if slices.Contains([]string{"on", "off", "gzip", "lz4", "lzjb", "zle"}, c.Type) {
		return c.Type
	}
	return ""
}

// Assignment is what of it a sled of sledctl has: disks and datasets.
func (c SledConfig) Assignment() (storage.Assignment, error) {
	a := storage.Assignment{Generation: c.Generation}
	for _, key := range slices.Sorted(maps.Keys(c.Disks)) {
		d := c.Disks[key]
		a.Disks = append(a.Disks, storage.AssignedDisk{ID: d.ID, Pool: d.Pool, Identity: disk.Identity{Vendor: d.Identity.Vendor, Model: d.Identity.Model, Serial: d.Identity.Serial}})
	}
	for _, key := range slices.Sorted(maps.Keys(c.Datasets)) {
		d := c.Datasets[key]
		is := storage.AssignedDataset{ID: d.ID, Pool: d.Name.Pool, Kind: d.Name.Kind, Compression: d.Compression.text()}
		for to, from := range map[*uint64]*uint64{&is.Quota: d.Quota, &is.Reservation: d.Reservation} {
			if from != nil {
				*to = *from
			}
		}
		a.Datasets = append(a.Datasets, is)
	}
	var err error
	for key, zone := range c.Zones { // so that what means the same is the same
		var any any
		if err := json.Unmarshal(zone, &any); err != nil {
			return a, err
		}
		c.Zones[key] = encode(any)
	}
	a.Body, err = json.Marshal(c)
	return a, err
}

// Reconciliation is the result of applying a SledConfig.
type Reconciliation struct {
	Config     SledConfig                  `json:"last_reconciled_config"`
	Disks      map[string]ReconciledResult `json:"external_disks"`
	Datasets   map[string]ReconciledResult `json:"datasets"`
	Orphans    []InventoryMeasurement      `json:"orphaned_datasets"`
	Zones      map[string]ReconciledResult `json:"zones"`
	Partitions map[string]InventoryError   `json:"boot_partitions"`
	Override   *InventoryError             `json:"remove_mupdate_override"` // nothing is removed
}

// ReconciledResult says whether one thing became as it is wanted.
type ReconciledResult struct {
	Result  string `json:"result"` // ok, err
	Message string `json:"message,omitempty"`
}

// Reconciled is the result of applying an assignment.
func Reconciled(a storage.Assignment, is storage.Applied) (*Reconciliation, error) {
	const noImages = "sledctl does not look at the boot images"
	r := &Reconciliation{
		Disks: results(is.Disks), Datasets: results(is.Datasets), Orphans: []InventoryMeasurement{}, Zones: map[string]ReconciledResult{},
		Partitions: map[string]InventoryError{"boot_disk": {Err: noImages}, "slot_a": {Err: noImages}, "slot_b": {Err: noImages}},
	}
	if err := json.Unmarshal(a.Body, &r.Config); err != nil {
		return nil, err
	}
	for id := range r.Config.Zones {
		r.Zones[id] = result(errors.New("a sled of sledctl has no zones of the control plane's"))
	}
	return r, nil
}

func results(all map[uuid.UUID]error) map[string]ReconciledResult {
	list := map[string]ReconciledResult{}
	for id, err := range all {
		list[id.String()] = result(err)
	}
	return list
}

func result(err error) ReconciledResult {
	if err != nil {
		return ReconciledResult{Result: "err", Message: err.Error()}
	}
	return ReconciledResult{Result: "ok"}
}
