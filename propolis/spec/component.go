package spec

import (
	"encoding/json"
	"fmt"
)

// Component is a device or a backend: one of the types of this file, as a
// value.
type Component interface {
	// Type is its tag on the wire: "nvme_disk".
	Type() string
}

// PCIPath is where a device sits: devices 0 to 31, functions 0 to 7. Guests keep
// these in boot entries and in the names of NICs.
type PCIPath struct {
	Bus      uint8 `json:"bus"`
	Device   uint8 `json:"device"`
	Function uint8 `json:"function"`
}

// String is BUS.DEVICE.FUNCTION in decimal, as Propolis' TOML has it.
func (p PCIPath) String() string { return fmt.Sprintf("%d.%d.%d", p.Bus, p.Device, p.Function) }

// SerialNumber is what an NVMe controller says when it is asked: 20 bytes.
type SerialNumber [20]byte

// UnmarshalJSON refuses what has not 20 bytes: left to itself, encoding/json
// fills up and cuts off.
func (n *SerialNumber) UnmarshalJSON(data []byte) error {
	var list []uint16 // of bytes, it would read base64 too
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) != len(n) {
		return fmt.Errorf("a serial number of %d bytes: want %d", len(list), len(n))
	}
	for i, b := range list {
		if b > 0xff {
			return fmt.Errorf("a serial number with %d in it: want bytes", b)
		}
		n[i] = byte(b)
	}
	return nil
}

// Disks, in the guest's eyes.
type (
	// NVMeDisk is a disk behind an NVMe controller of its own.
	NVMeDisk struct {
		Backend string       `json:"backend_id"`
		PCI     PCIPath      `json:"pci_path"`
		Serial  SerialNumber `json:"serial_number"`
		// WriteCache says whether the guest sees a volatile write cache;
		// nil: it is, as before version 6, which has the field.
		WriteCache *bool `json:"has_write_cache,omitempty"`
	}
	// VirtioDisk is a virtio-blk device.
	VirtioDisk struct {
		Backend string  `json:"backend_id"`
		PCI     PCIPath `json:"pci_path"`
	}
)

// What serves a disk.
type (
	// FileStorage is a file or a raw device of the server's zone.
	FileStorage struct {
		Path      string  `json:"path"`
		ReadOnly  bool    `json:"readonly"`
		BlockSize uint32  `json:"block_size"`        // bytes
		Workers   *uint64 `json:"workers,omitempty"` // threads; nil: the server's choice
	}
	// BlobStorage is a disk whose contents are in the spec, and lost with it.
	BlobStorage struct {
		Base64   string `json:"base64"` // of a multiple of 512 bytes
		ReadOnly bool   `json:"readonly"`
	}
	// CrucibleStorage is a Crucible volume. The request holds keys: it is
	// nothing to print.
	CrucibleStorage struct {
		Request  string `json:"request_json"`
		ReadOnly bool   `json:"readonly"`
	}
)

// Networks and sockets.
type (
	// VirtioNIC is a NIC that the guest sees.
	VirtioNIC struct {
		Backend   string  `json:"backend_id"`
		Interface string  `json:"interface_id"` // a UUID that labels metrics; may be the nil one
		PCI       PCIPath `json:"pci_path"`
	}
	// VirtioNetwork serves a NIC by viona over a VNIC of the server's zone.
	VirtioNetwork struct {
		VNIC string `json:"vnic_name"`
	}
	// VirtioSocket is a vsock device.
	VirtioSocket struct {
		CID uint64  `json:"guest_cid"` // 3 to 2^32-1
		PCI PCIPath `json:"pci_path"`
	}
)

// The rest of a machine.
type (
	// SerialPort is com1 to com4. A server whose machine has no com1 dies.
	SerialPort struct {
		Number string `json:"num"`
	}
	// PCIBridge makes a further bus. Such a machine cannot migrate.
	PCIBridge struct {
		Downstream uint8   `json:"downstream_bus"`
		PCI        PCIPath `json:"pci_path"`
	}
	// Pvpanic lets a guest tell that it panicked.
	Pvpanic struct {
		ISA bool `json:"enable_isa"`
	}
	// BootSettings is the order in which the firmware tries disks.
	BootSettings struct {
		Order []BootEntry `json:"order"`
	}
	// BootEntry names a disk device, not its backend.
	BootEntry struct {
		ID string `json:"id"`
	}
)

// What only servers take that are built with the feature falcon.
type (
	// SoftNPUPCIPort is the PCI device of an emulated switch.
	SoftNPUPCIPort struct {
		PCI PCIPath `json:"pci_path"`
	}
	// SoftNPUPort is a port of that switch.
	SoftNPUPort struct {
		Link    string `json:"link_name"`
		Backend string `json:"backend_id"`
	}
	// SoftNPUP9 shares the switch's files with the guest.
	SoftNPUP9 struct {
		PCI PCIPath `json:"pci_path"`
	}
	// P9FS shares a directory with the guest.
	P9FS struct {
		Source    string  `json:"source"` // on the host
		Target    string  `json:"target"` // its tag in the guest
		ChunkSize uint32  `json:"chunk_size"`
		PCI       PCIPath `json:"pci_path"`
	}
	// DLPINetwork serves a SoftNPUPort over a VNIC of the server's zone.
	DLPINetwork struct {
		VNIC string `json:"vnic_name"`
	}
)

// MigrationFailureInjector makes migrations fail. Only servers that are built
// with the feature failure-injection take it.
type MigrationFailureInjector struct {
	Exports uint32 `json:"fail_exports"` // how many to fail
	Imports uint32 `json:"fail_imports"`
}

// Other is any other component, as it was read: one of a later version.
type Other struct {
	Tag  string
	Body json.RawMessage
}

// MarshalJSON is the body as it was read.
func (o Other) MarshalJSON() ([]byte, error) { return o.Body, nil }

// Type is the tag.
func (NVMeDisk) Type() string { return "nvme_disk" }

// Type is the tag.
func (VirtioDisk) Type() string { return "virtio_disk" }

// Type is the tag.
func (FileStorage) Type() string { return "file_storage_backend" }

// Type is the tag.
func (BlobStorage) Type() string { return "blob_storage_backend" }

// Type is the tag.
func (CrucibleStorage) Type() string { return "crucible_storage_backend" }

// Type is the tag.
func (VirtioNIC) Type() string { return "virtio_nic" }

// Type is the tag.
func (VirtioNetwork) Type() string { return "virtio_network_backend" }

// Type is the tag.
func (VirtioSocket) Type() string { return "virtio_socket" }

// Type is the tag.
func (SerialPort) Type() string { return "serial_port" }

// Type is the tag.
func (PCIBridge) Type() string { return "pci_pci_bridge" }

// Type is the tag.
func (Pvpanic) Type() string { return "qemu_pvpanic" }

// Type is the tag.
func (BootSettings) Type() string { return "boot_settings" }

// Type is the tag.
func (SoftNPUPCIPort) Type() string { return "soft_npu_pci_port" }

// Type is the tag.
func (SoftNPUPort) Type() string { return "soft_npu_port" }

// Type is the tag.
func (SoftNPUP9) Type() string { return "soft_npu_p9" }

// Type is the tag.
func (P9FS) Type() string { return "p9fs" }

// Type is the tag.
func (DLPINetwork) Type() string { return "dlpi_network_backend" }

// Type is the tag.
func (MigrationFailureInjector) Type() string { return "migration_failure_injector" }

// Type is the tag.
func (o Other) Type() string { return o.Tag }

// kinds lists every component that is known, empty.
func kinds() []Component {
	return []Component{
		NVMeDisk{}, VirtioDisk{}, FileStorage{}, BlobStorage{}, CrucibleStorage{}, VirtioNIC{}, VirtioNetwork{}, VirtioSocket{},
		SerialPort{}, PCIBridge{}, Pvpanic{}, BootSettings{},
		SoftNPUPCIPort{}, SoftNPUPort{}, SoftNPUP9{}, P9FS{}, DLPINetwork{}, MigrationFailureInjector{},
	}
}

// feature is what a server must be built with to take a component; empty for
// those that every server takes.
func feature(c Component) string {
	switch c.(type) {
	case SoftNPUPCIPort, SoftNPUPort, SoftNPUP9, P9FS, DLPINetwork:
		return FeatureFalcon
	case MigrationFailureInjector:
		return FeatureFailureInjection
	}
	return ""
}
