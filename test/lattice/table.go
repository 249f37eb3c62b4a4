// Package lattice is the table of what differs between sleds and between
// machines, and rows of it in which every pair of values occurs (Cover). A row is
// one sled, which Lay lays out in the simulator: histories, the kill matrix and
// stories take place on the sleds of the rows, shared out over them. It is for
// tests.
package lattice

// The names of the dimensions.
const (
	Mode       = "mode"
	Disks      = "disks of the sled"
	Packaging  = "packaging"
	Keys       = "source of keys"
	Addresses  = "addresses"
	Link       = "lower link"
	MTU        = "MTU"
	NICs       = "NICs of a VM"
	VMDisks    = "disks of a VM"
	CPUs       = "CPUs"
	Reservoir  = "reservoir"
	Server     = "server"
	Protected  = "protected"
	Agent      = "agent"
	Neighbours = "neighbours"
	Latencies  = "latencies"
	Rebooted   = "zones after a reboot"
	Spares     = "spares"
)

// The values that something is decided by in more than one place.
const (
	OmniOS  = "omnios"
	Helios  = "helios"
	RAMDisk = "helios with its root on a RAM disk"

	TwoM2s    = "two M.2s and U.2s"
	OneM2     = "one M.2 and a U.2"
	LoneM2    = "one M.2"
	RpoolOnly = "rpool alone"

	Auto  = "auto"
	Lofs  = "lofs"
	Image = "image"

	IPv4 = "static IPv4"
	IPv6 = "IPv6 underlay"
	DHCP = "DHCP"

	Physical    = "physical"
	Aggregation = "aggregation"
	VLAN        = "VLAN"
	Etherstub   = "etherstub"

	None      = "none"
	Narrow    = "1500"
	Wide      = "9000"
	File      = "file"
	Zvol      = "zvol"
	ReadOnly  = "read-only"
	Shared    = "shared"
	Crucible  = "Crucible in the spec"
	Told      = "zvol, and cloud-init data"
	Made      = "two made with it"
	Cloned    = "cloned from an image"
	Remote    = "a volume in a Crucible"
	Enough    = "enough"
	TooLittle = "too little"
	Yes       = "yes"
	No        = "no"
	Running   = "running"
	Held      = "1 held to limits"
	InVPC     = "1 in a VPC"
	Capped    = "2 capped to 1.5, start order 10"

	Development = "development"
	KeyFile     = "file"
	KeyCommand  = "command"

	OmicronBuild = "omicron-build"

	SledAgents = "a sled agent's objects"
	NearMisses = "near-miss names"
	VMsOfOther = "VMs of others"

	Helios2021 = "helios2021"

	AsTheyWere = "as they were"
	Configured = "configured by somebody"
	Written    = "written to by somebody"
	Booted     = "booted"
)

// Dimension is one thing in which sleds or machines differ.
type Dimension struct {
	Name   string
	Values []string
}

// Never is a combination that no sled has, and why: one of the values of each of
// its dimensions, all at once.
type Never struct {
	Of  map[string][]string
	Why string
}

type never = map[string][]string

// Table is what is explored.
type Table struct {
	Dimensions []Dimension
	Never      []Never
}

// Sleds is the table of sleds and machines.
func Sleds() Table {
	return Table{
		Dimensions: []Dimension{
			{Mode, []string{OmniOS, Helios, RAMDisk}},
			{Disks, []string{TwoM2s, OneM2, LoneM2, RpoolOnly}},
			{Packaging, []string{Auto, Lofs, Image}},
			{Keys, []string{Development, KeyFile, KeyCommand}},
			{Addresses, []string{IPv4, IPv6, DHCP}},
			{Link, []string{Etherstub, Physical, Aggregation, VLAN}},
			{MTU, []string{Narrow, Wide}},
			{NICs, []string{"1", "0", "8", Held, InVPC}},
			{VMDisks, []string{None, File, Zvol, ReadOnly, Shared, Crucible, Told, Made, Cloned, Remote}},
			{CPUs, []string{"2", "1", "32", Capped}},
			{Reservoir, []string{None, Enough, TooLittle}},
			{Server, []string{Development, OmicronBuild}},
			{Protected, []string{No, Yes}},
			{Agent, []string{None, Running}},
			{Neighbours, []string{None, SledAgents, NearMisses, VMsOfOther}},
			{Latencies, []string{None, Helios2021}},
			{Rebooted, []string{AsTheyWere, Configured, Written}},
			{Spares, []string{None, AsTheyWere, Configured, Written, Booted}},
		},
		Never: []Never{
			{never{Packaging: {Lofs}, Mode: {Helios, RAMDisk}}, "the base zone is of the sparse brand, which only OmniOS has"},
			{never{Packaging: {Image}, Mode: {OmniOS}}, "zone images are of the omicron1 brand, which only Helios has"},
			{never{Packaging: {Image}, Addresses: {IPv4, DHCP}}, "the service in the zone image takes nothing but an IPv6 address with a gateway"},
			{never{Mode: {Helios, RAMDisk}, Addresses: {IPv4, DHCP}}, "zones are installed from images, whose service takes nothing but an IPv6 address with a gateway"},
			{never{NICs: {InVPC}, Mode: {OmniOS}}, "OPTE, which makes ports, is part of Helios"},
			{never{NICs: {InVPC}, Addresses: {IPv4, DHCP}}, "OPTE is part of Helios, on which zones have IPv6 addresses"},
			{never{NICs: {InVPC}, Link: {Physical, Aggregation, VLAN}, MTU: {Narrow}}, "OPTE is part of Helios, whose zones have VNICs with 9000 bytes"},
			{never{NICs: {InVPC}, Packaging: {Lofs}}, "OPTE is part of Helios, which has no sparse brand"},
			{never{NICs: {InVPC}, VMDisks: {Crucible}}, "the machine of this spec has NICs of another kind"},
			{never{Link: {Etherstub}, Addresses: {DHCP}}, "nobody answers DHCP behind an etherstub"},
			{never{Mode: {RAMDisk}, Disks: {RpoolOnly}}, "a RAM disk keeps no ledger: there is an M.2 for it"},
			{never{Mode: {RAMDisk}, Disks: {LoneM2}, VMDisks: {Made, Cloned}}, "the only pool for zones lies in memory, where sledctl makes no volume"},
			{never{Packaging: {Image}, Link: {Physical, Aggregation, VLAN}, MTU: {Narrow}}, "the service in the zone image makes its VNIC with 9000 bytes, more than the link has"},
			{never{Mode: {Helios, RAMDisk}, Link: {Physical, Aggregation, VLAN}, MTU: {Narrow}}, "the service in the zone image makes its VNIC with 9000 bytes, more than the link has"},
		},
	}
}
