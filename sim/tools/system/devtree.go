package system

import (
	"fmt"
	"strconv"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// The device tree of the sled, as far as its disks go, with a few others that a
// reader has to pass over. A node's name is that of the device, not of its
// driver: a bridge is "pci1de,fff9", an NVMe controller "pci1b96,0"; prtconf -D
// tells the drivers.

// Sources of the properties: vendor-id and the like come from
// usr/src/uts/intel/io/pci/pci_boot.c, physical-slot# from
// usr/src/uts/common/io/hotplug/pcicfg, the inquiry properties from
// usr/src/uts/common/io/blkdev/blkdev.c with vendor, product and serial number from
// nvme.c.

// Guess nodes-and-properties-of-prtconf: which nodes, properties, types and values `prtconf -v`
// prints beyond the lines that prtconf.c formats: device-nblocks and the like, the properties of an
// Oxide sled's root node, whose names are those of omicron sled-hardware/src/illumos/mod.rs.
// Check: `prtconf -vD`
func deviceTree(tx *world.Tx) *node {
	root := &node{name: "i86pc", driver: "rootnex", instance: 0}
	system := []property{integer("#size-cells", 2), integer("#address-cells", 3), integer("relative-addressing", 1)}
	if tx.State.Mode == world.Helios {
		root.name = "Oxide,Gimlet"
		system = append(system, word("baseboard-identifier", tx.Fact(world.FactBoard, fmt.Sprintf("BRM4222%04d", 13+tx.State.Seed%9000))), word("baseboard-model", "913-0000019"),
			integer("baseboard-revision", 6), integer("boot-storage-unit", bootStorageUnit(tx)))
	}
	root.sections = []section{{title: "System", properties: append(system, boolean("MMU_PAGEOFFSET"))}}
	pci := &node{name: "pci", driver: "npe", instance: 0, sections: []section{{title: "Hardware", properties: []property{
		word("device_type", "pciex"), integer("#address-cells", 3), integer("#size-cells", 2), integer("bus-range", 0),
	}}}}
	for _, l := range tx.State.Links {
		if l.Class == "phys" {
			pci.children = append(pci.children, networkCard(len(pci.children)))
		}
	}
	if tx.State.Mode == world.OmniOS {
		pci.children = append(pci.children, bootDisk(tx))
	}
	for _, d := range tx.State.Disks {
		pci.children = append(pci.children, bridge(tx, d))
	}
	root.children = []*node{
		{name: "scsi_vhci", driver: "scsi_vhci", instance: 0}, pci,
		{name: "fw", instance: -1},
		{name: "options", driver: "options", instance: 0},
		{name: "pseudo", driver: "pseudo", instance: 0},
		{name: "cpus", driver: "cpunex", instance: 0},
	}
	return root
}

// bootStorageUnit says from which M.2 the sled was booted: 'A' or 'B'.
func bootStorageUnit(tx *world.Tx) int {
	for i, d := range tx.State.Disks {
		if d.Kind == "m2" && !d.Gone {
			return 'A' + i
		}
	}
	return 'A'
}

func networkCard(n int) *node {
	return &node{name: "pci15d9,37d2", driver: "i40e", instance: n, sections: []section{{title: "Hardware", properties: []property{
		integer("vendor-id", 0x8086), integer("device-id", 0x37d2), integer("subsystem-vendor-id", 0x15d9),
		integer("subsystem-id", 0x37d2), word("model", "Ethernet controller"),
	}}}}
}

// bootDisk is a disk that is in no slot: the one with the root pool.
func bootDisk(tx *world.Tx) *node {
	serial := tx.Fact(world.FactBootDisk, "BTDV733206LX240B")
	const path = "/pci@0,0/pci15d9,7201@1f,2/disk@0,0"
	disk := &node{name: "disk", driver: "sd", instance: 0, sections: []section{
		{title: "Driver", dev: true, properties: []property{
			word("inquiry-serial-no", serial), boolean("ddi-kernel-ioctl"),
		}},
		{title: "Hardware", properties: []property{
			word("devid", "id1,sd@SATA_____INTEL_SSDSCKJF24____"+serial), integer("inquiry-device-type", 0),
			word("inquiry-revision-id", "LLDi"), word("inquiry-product-id", "SSDSCKJF240A5L"), word("inquiry-vendor-id", "INTEL"),
			word("class", "scsi"),
		}},
	}}
	disk.minors = func(o *printout) { minorNodes(o, 4, 90, 0, path, "c0t0d0") }
	return &node{name: "pci15d9,7201", driver: "ahci", instance: 0, children: []*node{disk}, sections: []section{{
		title: "Hardware", properties: []property{integer("vendor-id", 0x8086), integer("device-id", 0xa282)},
	}}}
}

// bridge is a slot, and the disk in it.
func bridge(tx *world.Tx, d *world.Disk) *node {
	n := zfs.Instance(tx, d)
	slot := &node{name: zfs.Bridge(tx), driver: "pcieb", instance: 1 + n, sections: []section{{title: "Hardware", properties: []property{
		word("device_type", "pciex"), integer("physical-slot#", d.Slot), integer("vendor-id", 0x1022), integer("device-id", 0x1483),
	}}}}
	if d.Gone {
		return slot
	}
	vendor, _ := strconv.ParseInt(d.Vendor, 16, 32)
	slot.children = []*node{{name: "pci" + d.Vendor + ",0", driver: "nvme", instance: n, children: []*node{blockDevice(tx, d)},
		sections: []section{{title: "Hardware", properties: []property{
			integer("vendor-id", int(vendor)), integer("device-id", 0x2500), integer("class-code", 0x10802),
			integer("subsystem-vendor-id", int(vendor)), integer("subsystem-id", 0), word("model", "Non-Volatile memory controller"),
		}}},
	}}
	return slot
}

// blockSize is that of the disks' blocks.
const blockSize = 4096

func blockDevice(tx *world.Tx, d *world.Disk) *node {
	n := zfs.Instance(tx, d)
	disk := &node{name: "blkdev", driver: "blkdev", instance: n, sections: []section{
		{title: "Driver", dev: true, properties: []property{
			boolean("ddi-kernel-ioctl"), integer64("device-nblocks", d.Size/blockSize), integer("device-blksize", blockSize),
			integer("device-solid-state", 1),
		}},
		{title: "Hardware", properties: []property{
			word("devid", "id1,kdev@E"+d.Vendor+"-"+d.Model+"-"+d.Serial), word("inquiry-revision-id", "R2210000"),
			word("inquiry-serial-no", d.Serial), word("inquiry-product-id", d.Model), word("inquiry-vendor-id", "NVMe"),
		}},
	}}
	disk.minors = func(o *printout) { minorNodes(o, 5, 202, n, zfs.DevicesPath(tx, d), d.Name) }
	return disk
}

// minorNodes prints the minors of a disk: the block device and the raw one of
// each partition have one number (dump_minor_data).
func minorNodes(o *printout, level, major, instance int, path, name string) {
	for _, m := range zfs.Minors() {
		o.line(level+1, "dev=(%d,%d)", major, instance<<6|m.Number)
		o.line(level+2, "dev_path=%s:%s", path, m.Name)
		o.line(level+3, "spectype=blk type=minor")
		o.line(level+3, "dev_link=/dev/dsk/%s%s", name, m.Suffix)
		o.line(level+2, "dev_path=%s:%s,raw", path, m.Name)
		o.line(level+3, "spectype=chr type=minor")
		o.line(level+3, "dev_link=/dev/rdsk/%s%s", name, m.Suffix)
	}
}
