package spec

import (
	"fmt"
	"strconv"

	"github.com/google/uuid"
)

// Description is a machine in a few words.
type Description struct {
	ID        string // a UUID
	Name      string
	CPUs      int    // 1 to MaxCPUs
	MemoryMiB uint64 // at least 1
	Disks     []Disk // at most MaxDisks; booted from in this order
	NICs      []NIC  // at most MaxNICs
	CloudInit string // a volume with cloud-init data, in base64; empty: none
}

// Disk is a file or a volume's raw device, by its absolute name in the
// server's zone; or a volume in a Crucible.
type Disk struct {
	Path     string
	ReadOnly bool
	Request  string // of a CrucibleVolume, or what stands for it
}

// NIC is a VNIC that the guest is to have.
type NIC struct {
	VNIC        string
	InterfaceID string // a UUID that labels metrics; empty: none
}

// How many disks and NICs have a place on the PCI bus.
const (
	MaxDisks = 12
	MaxNICs  = 8
)

// The places, and the components that every machine has, are those that Nexus
// gives (slot_to_pci_bdf and Components::default in
// nexus/src/app/instance_platform/mod.rs of oxidecomputer/omicron). Guests keep
// PCI addresses in boot entries and NIC names: these must never change.
const (
	firstNIC       = 0x08
	firstDisk      = 0x10 // disks 0 to 7
	cloudInitSlot  = 0x18
	firstExtraDisk = 0x1a // disks 8 to 11
)

// Keys of components. Disks and NICs are disk0, disk0-backend, net0,
// net0-backend and so on.
const (
	KeyCOM1         = "com1"
	KeyPvpanic      = "pvpanic"
	KeyBootSettings = "boot-settings"
	KeyCloudInit    = "cloud-init-backend" // both as Nexus names them
	cloudInitDevice = "cloud-init-dev"
	backendSuffix   = "-backend"
)

// blockSize is how the guest sees files and volumes, in bytes.
const blockSize = 512

// description is what the server is told to tell others.
const description = "sledctl instance"

// Build makes the request for a new machine. Every disk is an NVMe disk whose
// serial number is its key; the firmware tries all of them, in order. Errors:
// *InvalidError, *TooLargeError.
func Build(d Description) (EnsureRequest, error) {
	if err := d.check(); err != nil {
		return EnsureRequest{}, err
	}
	s := InstanceSpec{
		Board:      Board{CPUs: uint8(d.CPUs), MemoryMiB: d.MemoryMiB, Chipset: Chipset{Type: ChipsetI440FX}},
		Components: Components{KeyPvpanic: Pvpanic{ISA: true}},
	}
	for i := 1; i <= 4; i++ {
		port := "com" + strconv.Itoa(i)
		s.Components[port] = SerialPort{Number: port}
	}
	for i, disk := range d.Disks {
		s.Components.addDisk(i, disk)
	}
	if len(d.Disks) > 0 {
		s.Components[KeyBootSettings] = bootOrder(len(d.Disks))
	}
	for i, nic := range d.NICs {
		s.Components.addNIC(i, nic)
	}
	if d.CloudInit != "" {
		s.Components.AddCloudInit(d.CloudInit)
	}
	return Request(d.ID, d.Name, s, Server{})
}

// check is for what a spec cannot even say.
func (d Description) check() error {
	var p problems
	if uuid.Validate(d.ID) != nil {
		p.add("id", "%q is not a UUID", d.ID)
	}
	if d.CPUs < 1 || d.CPUs > MaxCPUs {
		p.add("cpus", "%d is not from 1 to %d", d.CPUs, MaxCPUs)
	}
	if len(d.Disks) > MaxDisks {
		p.add("disks", "%d are more than %d", len(d.Disks), MaxDisks)
	}
	if len(d.NICs) > MaxNICs {
		p.add("nics", "%d are more than %d", len(d.NICs), MaxNICs)
	}
	return p.err()
}

// properties leave the metadata empty: it labels metrics, which nobody collects
// here.
//
// Guess empty-metadata-is-accepted: metadata of nil UUIDs and empty texts is accepted: it names
// metrics that nobody collects here, and the server does not check it.
// Check: an `instance ensure`
func properties(id, name string) Properties {
	none := uuid.Nil.String()
	return Properties{
		ID: Key(id), Name: name, Description: description,
		Metadata: Metadata{SiloID: none, ProjectID: none, SledID: none},
	}
}

func diskKey(i int) string { return fmt.Sprintf("disk%d", i) }

// Guess guests-take-read-only-nvme: guests can do with a read-only NVMe disk.
// Check: `--disk FILE,readonly`
func (c Components) addDisk(i int, d Disk) {
	key, slot := diskKey(i), firstDisk+i
	if i >= 8 {
		slot = firstExtraDisk + i - 8
	}
	c[key] = NVMeDisk{Backend: key + backendSuffix, PCI: PCIPath{Device: uint8(slot)}, Serial: Serial(key)}
	c[key+backendSuffix] = FileStorage{Path: d.Path, ReadOnly: d.ReadOnly, BlockSize: blockSize}
	if d.Request != "" {
		c[key+backendSuffix] = CrucibleStorage{Request: d.Request, ReadOnly: d.ReadOnly}
	}
}

func (c Components) addNIC(i int, n NIC) {
	key, label := fmt.Sprintf("net%d", i), n.InterfaceID
	if label == "" {
		label = uuid.Nil.String()
	}
	c[key] = VirtioNIC{Backend: key + backendSuffix, Interface: label, PCI: PCIPath{Device: uint8(firstNIC + i)}}
	c[key+backendSuffix] = VirtioNetwork{VNIC: n.VNIC}
}

// AddCloudInit gives a machine the disk from which cloud-init reads its data: a volume, in base64. The guest cannot write to it, and the firmware does not try it.
func (c Components) AddCloudInit(volume string) {
	c[cloudInitDevice] = VirtioDisk{Backend: KeyCloudInit, PCI: PCIPath{Device: cloudInitSlot}}
	c[KeyCloudInit] = BlobStorage{Base64: volume, ReadOnly: true}
}

// TakeCloudInit gives a machine that disk of another one, or none if that has none.
func (c Components) TakeCloudInit(other Components) {
	for _, key := range []string{cloudInitDevice, KeyCloudInit} {
		delete(c, key)
		if part, there := other[key]; there {
			c[key] = part
		}
	}
}

// Guess firmware-passes-over-blank-disks: with all disks in the boot order, the firmware passes
// over a blank one to the next.
// Check: a blank disk and an installer
func bootOrder(disks int) BootSettings {
	var b BootSettings
	for i := range disks {
		b.Order = append(b.Order, BootEntry{diskKey(i)})
	}
	return b
}

// Serial is a serial number of these characters, cut at 20 and filled up with
// spaces as NVMe wants it (NVM Express 1.2, section 1.5).
func Serial(s string) SerialNumber {
	var n SerialNumber
	for i := copy(n[:], s); i < len(n); i++ {
		n[i] = ' '
	}
	return n
}
