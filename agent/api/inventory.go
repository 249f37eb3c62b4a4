package api

import (
	"time"

	"github.com/google/uuid"
)

// Inventory is what a sled has, as a control plane asks for it (version 48 of omicron's sled
// agent). What sledctl has none of, or does not know, is said by the words that the API has for that.
type Inventory struct {
	SledID       uuid.UUID              `json:"sled_id"`
	Address      string                 `json:"sled_agent_address"`
	Role         string                 `json:"sled_role"`
	Baseboard    InventoryBaseboard     `json:"baseboard_id"`
	Threads      uint32                 `json:"usable_hardware_threads"`
	RAM          uint64                 `json:"usable_physical_ram"`
	CPUFamily    string                 `json:"cpu_family"`
	Reservoir    uint64                 `json:"reservoir_size"`
	Disks        []InventoryDisk        `json:"disks"`
	Zpools       []InventoryZpool       `json:"zpools"`
	Datasets     []InventoryDataset     `json:"datasets"`
	Config       *SledConfig            `json:"ledgered_sled_config"` // nil: none was put
	Reconciled   *Reconciliation        `json:"last_reconciliation"`
	Reconciler   InventoryReconciler    `json:"reconciler_status"`
	Files        InventoryFiles         `json:"file_source_resolver"`
	Measurements []InventoryMeasurement `json:"reference_measurements"`
	Services     InventoryServices      `json:"smf_services_enabled_not_online"`
	FMD          InventoryFMD           `json:"fmd"`
}

// InventoryBaseboard identifies a machine.
type InventoryBaseboard struct {
	Part   string `json:"part_number"`
	Serial string `json:"serial_number"`
}

// InventoryDisk is a disk in a slot.
type InventoryDisk struct {
	Identity InventoryIdentity `json:"identity"`
	Variant  string            `json:"variant"` // U2, M2
	Slot     int64             `json:"slot"`
	// What firmware it runs is not known.
	ActiveFirmware uint8     `json:"active_firmware_slot"`
	NextFirmware   *uint8    `json:"next_active_firmware_slot"`
	FirmwareSlots  uint8     `json:"number_of_firmware_slots"`
	ReadOnly       bool      `json:"slot1_is_read_only"`
	Firmware       []*string `json:"slot_firmware_versions"`
}

// InventoryIdentity is how a disk identifies itself.
type InventoryIdentity struct {
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	Serial string `json:"serial"`
}

// InventoryZpool is a pool of the sled's.
type InventoryZpool struct {
	ID     uuid.UUID `json:"id"`
	Size   uint64    `json:"total_size"`
	Health string    `json:"health"` // online, degraded …
}

// InventoryDataset is a dataset in such a pool.
type InventoryDataset struct {
	ID          *uuid.UUID `json:"id"`
	Name        string     `json:"name"`
	Available   uint64     `json:"available"`
	Used        uint64     `json:"used"`
	Quota       *uint64    `json:"quota"`
	Reservation *uint64    `json:"reservation"`
	Compression string     `json:"compression"`
}

// InventoryReconciler is how far a control plane's configuration has been applied.
type InventoryReconciler struct {
	Status    string         `json:"status"`           // not_yet_run, running, idle
	Config    *SledConfig    `json:"config,omitempty"` // running
	Started   *time.Time     `json:"started_at,omitempty"`
	Running   *InventoryTime `json:"running_for,omitempty"`
	Completed *time.Time     `json:"completed_at,omitempty"` // idle
	Ran       *InventoryTime `json:"ran_for,omitempty"`
}

// InventoryTime is how long something took.
type InventoryTime struct {
	Seconds     uint64 `json:"secs"`
	Nanoseconds uint32 `json:"nanos"`
}

// InventoryMeasurement is one of the boot's; a sled of sledctl has none.
type InventoryMeasurement struct {
	Path string `json:"path"`
}

// InventoryFiles are the images that zones are made from, of which a sled of sledctl has none
// of the control plane's.
type InventoryFiles struct {
	Zones        InventoryManifest `json:"zone_manifest"`
	Measurements InventoryManifest `json:"measurement_manifest"`
	Override     InventoryOverride `json:"mupdate_override"`
}

// InventoryManifest lists images.
type InventoryManifest struct {
	Path    string                 `json:"boot_disk_path"`
	Boot    InventoryError         `json:"boot_inventory"`
	NonBoot []InventoryMeasurement `json:"non_boot_status"`
}

// InventoryOverride is what takes the place of such a list.
type InventoryOverride struct {
	Path    string                 `json:"boot_disk_path"`
	Boot    InventoryError         `json:"boot_override"`
	NonBoot []InventoryMeasurement `json:"non_boot_status"`
}

// InventoryError is why something is not known.
type InventoryError struct {
	Err string `json:"err"`
}

// InventoryServices are those that do not run as they should.
type InventoryServices struct {
	Type string `json:"type"` // data_unavailable
}

// InventoryFMD are faults of the hardware.
type InventoryFMD struct {
	Err InventoryFMDError `json:"err"`
}

// InventoryFMDError is why they are not known.
type InventoryFMDError struct {
	Kind    string `json:"kind"` // fmd_error
	Message string `json:"message"`
}

// Identifiers name a sled.
type Identifiers struct {
	RackID   uuid.UUID `json:"rack_id"`
	SledID   uuid.UUID `json:"sled_id"`
	Model    string    `json:"model"`
	Revision uint32    `json:"revision"`
	Serial   string    `json:"serial"`
}
