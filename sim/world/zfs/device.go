package zfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// A disk as the rest of the system sees it: its partitions, its nodes below
// /devices, and the links to them in /dev/dsk and /dev/rdsk (cmlb.c in
// usr/src/uts/common/io, usr/src/cmd/devfsadm/disk_link.c).

// The partition tables that a disk may have.
//
// Guess disks-counted-from-t0: disks have neither GUID nor EUI-64 and are counted from t0: c11t0d0.
// Real ones are named after their GUID, or without one after their EUI-64, as
// c2t0014EE81000BC481d0.
// Check: `ls /dev/dsk`
// State: settled by usr/src/uts/common/io/blkdev/blkdev.c:2357-2376
const (
	// LayoutM2 is what the disks of a sled's M.2 slots leave the factory with:
	// boot image, three that are reserved, dump device, pool (omicron
	// sled-hardware/src/illumos/partitions.rs).
	LayoutM2 = "m2"
	// LayoutWhole is what zpool create writes on a whole disk: slice 0 for the
	// pool, slice 8 reserved (zpool_label_disk in libzfs_pool.c).
	LayoutWhole = "whole"
)

// M2PoolSlice is the partition that an M.2's pool lies in.
const M2PoolSlice = 5

// The minors of a disk (dk_minor_data_efi in usr/src/uts/common/io/cmlb.c):
// partitions a to g, the whole disk, and what fdisk(8) sees, q to u.
const (
	minorWhole = 7
	minorFdisk = 16
	lastMinor  = 20
)

// Minor is a minor node of a disk, and the link that leads to it.
type Minor struct {
	Number int    // of the partition; 7 is the whole disk
	Name   string // a, wd, q
	Suffix string // s0, nothing, p0: what the link's name ends with
}

// Minors are those of a disk with an EFI label, in the order of their making.
//
// Guess unlabelled-disk-has-efi-minors: a disk without a label has the minor nodes of one with an
// EFI label (cmlb.c).
// Check: `prtconf -v` with a fresh disk in
func Minors() []Minor {
	var all []Minor
	for n := range lastMinor + 1 {
		m := Minor{Number: n, Name: string(rune('a' + n)), Suffix: "s" + strconv.Itoa(n)}
		switch {
		case n == minorWhole:
			m.Name, m.Suffix = "wd", ""
		case n >= minorFdisk:
			m.Suffix = "p" + strconv.Itoa(n-minorFdisk)
		case n > minorWhole:
			continue
		}
		all = append(all, m)
	}
	return all
}

// Device is what a name of a disk, one of its partitions, or a file leads to.
type Device struct {
	Disk  *world.Disk
	Minor int  // of the disk
	Raw   bool // the character device
	File  string
}

// FindDevice resolves a full path: below /dev/dsk, /dev/rdsk or /devices, or
// that of a file, which need not exist. A device of a disk that is missing is
// none.
func FindDevice(tx *world.Tx, name string) (Device, bool) {
	dir, base := "", ""
	for _, dir = range []string{"/dev/dsk/", "/dev/rdsk/"} {
		if base, _ = strings.CutPrefix(name, dir); base != name {
			break
		}
	}
	if base == name {
		return Device{File: name}, strings.HasPrefix(name, "/")
	}
	for _, d := range tx.State.Disks {
		if suffix, ok := strings.CutPrefix(base, d.Name); ok && !d.Gone {
			for _, m := range Minors() {
				if m.Suffix == suffix {
					return Device{Disk: d, Minor: m.Number, Raw: dir == "/dev/rdsk/"}, true
				}
			}
		}
	}
	return Device{}, false
}

// Bridge is the name of the PCIe bridges that disks are behind.
func Bridge(tx *world.Tx) string {
	if tx.State.Mode == world.Helios {
		return "pci1de,fff9"
	}
	return "pci1022,1453"
}

// Instance is the number that the drivers of a disk and its bridge give it: it
// is the slot's, and so the same for whatever disk is in there.
func Instance(tx *world.Tx, d *world.Disk) int { return slices.Index(tx.State.Disks, d) }

// DevicesPath is the disk's path below /devices, as libdevinfo tells it:
// controller, bridge, NVMe controller, disk.
func DevicesPath(tx *world.Tx, d *world.Disk) string {
	n := Instance(tx, d)
	return fmt.Sprintf("/pci@0,0/%s@%x,%x/pci%s,0@0/blkdev@0,0", Bridge(tx), 1+n/8, 1+n%8, d.Vendor)
}

// Exists says whether the partition is one that the disk has. The whole disk
// and what fdisk sees always are.
//
// Guess unlabelled-slice-0-is-whole: slice 0 of a disk without a label is the whole disk
// (CMLB_FAKE_LABEL_ONE_PARTITION of cmlb.c).
// Check: `fstyp -a` of the s0 of a fresh disk
func Exists(d *world.Disk, minor int) bool {
	switch {
	case minor >= minorWhole:
		return true
	case d.Layout == LayoutM2:
		return minor <= M2PoolSlice
	}
	return minor == 0
}

// vdev is how a pool that lies on the device names it (zpool_vdev_name): a disk
// that ZFS has to itself without the slice.
func (d Device) vdev() string {
	switch {
	case d.Disk == nil:
		return d.File
	case d.Minor == 0 && d.Disk.Layout == LayoutWhole:
		return d.Disk.Name
	}
	return SliceName(d.Disk, d.Minor)
}

func SliceName(d *world.Disk, n int) string { return d.Name + "s" + strconv.Itoa(n) }
