// Package inventory describes what a sled has as a control plane asks for it.
package inventory

import (
	"cmp"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/nexus"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/zfs"
)

// Seen is what the sled was seen to have.
type Seen struct {
	ID       uuid.UUID
	Sled     nexus.Sled // as it registers
	Disks    []storage.Found
	Pools    []zfs.Pool
	Datasets []zfs.Dataset
}

const noImages = "sledctl makes zones from its own images"

// Of writes what was seen. Pools that are not the sled's, with their datasets, and disks that
// are absent, are none of the control plane's.
func Of(s Seen) api.Inventory {
	none := []api.InventoryMeasurement{}
	manifest := api.InventoryManifest{Boot: api.InventoryError{Err: noImages}, NonBoot: none}
	i := api.Inventory{
		SledID: s.ID, Address: s.Sled.Address, Role: s.Sled.Role, Baseboard: api.InventoryBaseboard{Part: s.Sled.Baseboard.Part, Serial: s.Sled.Baseboard.Serial},
		Threads: s.Sled.Threads, RAM: s.Sled.RAM, CPUFamily: s.Sled.CPUFamily, Reservoir: s.Sled.Reservoir,
		Disks: []api.InventoryDisk{}, Zpools: []api.InventoryZpool{}, Datasets: []api.InventoryDataset{}, Measurements: none,
		Reconciler: api.InventoryReconciler{Status: "not_yet_run"},
		Files:      api.InventoryFiles{Zones: manifest, Measurements: manifest, Override: api.InventoryOverride(manifest)},
		Services:   api.InventoryServices{Type: "data_unavailable"},
		FMD:        api.InventoryFMD{Err: api.InventoryFMDError{Kind: "fmd_error", Message: "sledctl does not ask the fault manager"}},
	}
	for _, d := range s.Disks {
		if !d.Absent {
			i.Disks = append(i.Disks, diskOf(d.Disk))
		}
	}
	for _, p := range s.Pools {
		if _, id := naming.ParsePool(p.Name); id != uuid.Nil {
			i.Zpools = append(i.Zpools, api.InventoryZpool{ID: id, Size: p.Size, Health: health(p)})
		}
	}
	for _, d := range s.Datasets {
		pool, _, _ := strings.Cut(d.Name, "/")
		if _, id := naming.ParsePool(pool); id != uuid.Nil && d.Type == zfs.TypeFilesystem {
			i.Datasets = append(i.Datasets, datasetOf(d))
		}
	}
	return i
}

// diskOf gives each disk one slot of firmware, of an unknown version: the API has no word for
// what is not known.
func diskOf(d disk.Disk) api.InventoryDisk {
	return api.InventoryDisk{
		Identity: api.InventoryIdentity{Vendor: d.Identity.Vendor, Model: d.Identity.Model, Serial: d.Identity.Serial},
		Variant:  strings.ToUpper(string(d.Kind)), Slot: int64(d.Slot), ActiveFirmware: 1, FirmwareSlots: 1, Firmware: []*string{nil},
	}
}

// health is that of a pool. A suspended one waits for disks: of those in the API, faulted says
// best that it does not work.
func health(p zfs.Pool) string {
	words := map[string]string{"ONLINE": "online", "DEGRADED": "degraded", "FAULTED": "faulted", "OFFLINE": "offline", "REMOVED": "removed", "UNAVAIL": "unavailable"}
	return cmp.Or(words[p.Health], "faulted")
}

func datasetOf(d zfs.Dataset) api.InventoryDataset {
	is := api.InventoryDataset{Name: d.Name, Available: d.Available, Used: d.Used, Quota: some(d.Quota), Reservation: some(d.Reservation), Compression: d.Compression}
	if id, err := uuid.Parse(d.User[storage.PropertyUUID].Value); err == nil {
		is.ID = &id
	}
	return is
}

// some is a number, or nil for 0.
func some(n uint64) *uint64 {
	if n == 0 {
		return nil
	}
	return &n
}
