// Package spec is the machine that a Propolis server is asked for: the instance
// spec of oxidecomputer/propolis, one for all versions of the API. At writes it
// for the version that is spoken.
//
// A spec is a board and a bag of components under names that its author
// chooses. A disk is two components, a device that the guest sees and a backend
// that serves it; so is a NIC. Build makes a spec from a short description, Parse
// reads one from a file, Check finds what the server would refuse or die of, and
// Compare tells whether a server has the spec that it was sent.
package spec

// InstanceSpec is a virtual machine.
type InstanceSpec struct {
	Board      Board      `json:"board"`
	Components Components `json:"components"`
	SMBIOS     *SMBIOS    `json:"smbios,omitempty"` // nil: an Oxide OxVM
}

// Components are the devices and backends of a machine by their keys. A key
// that reads as a UUID comes back from a server in its canonical form.
type Components map[string]Component

// Board is the main board.
type Board struct {
	CPUs      uint8   `json:"cpus"`      // 1 to MaxCPUs
	MemoryMiB uint64  `json:"memory_mb"` // mebibytes, in spite of its name on the wire
	Chipset   Chipset `json:"chipset"`
	// Hypervisor is what the guest is told to run on; nil: bhyve. The server
	// leaves the default out of what it sends.
	Hypervisor *Hypervisor `json:"guest_hv_interface,omitempty"`
	// CPUID is what the guest's cpuid instruction says; nil: what bhyve gives
	// it on this host. A server always sends one.
	CPUID *CPUID `json:"cpuid,omitempty"`
}

// MaxCPUs bounds Board.CPUs, and with it the CPUs of every instance and of the
// configuration. Builds for Oxide's racks (feature omicron-build) take 254, all others 32
// (lib/propolis/src/vcpu.rs in oxidecomputer/propolis); sledctl cannot ask a server for its
// build: one that takes fewer says so when the machine is made.
const MaxCPUs = 254

// Chipset is a kind of chipset; ChipsetI440FX is the only one.
type Chipset struct {
	Type  string `json:"type"`
	Value I440FX `json:"value"`
}

// ChipsetI440FX is the Type of an Intel 440FX.
const ChipsetI440FX = "i440_fx"

// I440FX are the settings of that chipset.
type I440FX struct {
	PCIe bool `json:"enable_pcie"` // PCI configuration space also by the PCIe mechanism
}

// Hypervisor is a hypervisor interface: HypervisorBhyve, which has no value, or
// HypervisorHyperV.
type Hypervisor struct {
	Type  string  `json:"type"`
	Value *HyperV `json:"value,omitempty"`
}

// The hypervisor interfaces.
const (
	HypervisorBhyve  = "bhyve"
	HypervisorHyperV = "hyper_v"
)

// HyperV names the enlightenments that are on.
type HyperV struct {
	Features []string `json:"features"`
}

// ReferenceTSC is the only enlightenment.
const ReferenceTSC = "reference_tsc"

// CPUID is a set of answers of the cpuid instruction.
type CPUID struct {
	Vendor  string       `json:"vendor"` // "amd" or "intel"
	Entries []CPUIDEntry `json:"entries"`
}

// CPUIDEntry is the answer to one leaf, or to one of its subleaves.
type CPUIDEntry struct {
	Leaf    uint32  `json:"leaf"`
	Subleaf *uint32 `json:"subleaf,omitempty"`
	EAX     uint32  `json:"eax"`
	EBX     uint32  `json:"ebx"`
	ECX     uint32  `json:"ecx"`
	EDX     uint32  `json:"edx"`
}

// SMBIOS is what the guest reads in its type 1 table.
type SMBIOS struct {
	Manufacturer string `json:"manufacturer"`
	Product      string `json:"product_name"`
	Serial       string `json:"serial_number"`
	Version      uint64 `json:"version"`
}
