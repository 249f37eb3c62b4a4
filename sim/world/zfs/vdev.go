package zfs

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// The devices of pools: usr/src/cmd/zpool/zpool_vdev.c looks at them before a
// pool is made, and zpool_label_disk in usr/src/lib/libzfs/common/libzfs_pool.c
// partitions whole disks.
//
// A pool names its devices as zpool status does: a disk that ZFS has to itself
// (c11t0d0), a slice of one (c1t0d0s5), or the full name of a file.

const diskDirectory = "/dev/dsk/"

// resolveVdev turns the argument of a specification into the name of a device
// (make_leaf_vdev).
func resolveVdev(tx *world.Tx, word string) (string, error) {
	path := word
	if !strings.HasPrefix(word, "/") {
		path = diskDirectory + word
	}
	d, ok := FindDevice(tx, path)
	switch {
	case ok && d.Disk == nil:
		info, err := tx.Files.Stat(d.File)
		if errors.Is(err, fs.ErrNotExist) {
			return "", refuse("cannot open '%s': No such file or directory", word)
		}
		if err == nil && !info.Mode.IsRegular() {
			err = world.NotSimulated("zpool: the device '%s'", word)
		}
		return d.File, err
	case !ok && path != word:
		return "", refuse("cannot open '%s': no such device in /dev/dsk\nmust be a full path or shorthand device name", word)
	case !ok:
		return "", refuse("cannot open '%s': No such file or directory", word)
	case d.Raw || d.Minor >= minorFdisk:
		return "", world.NotSimulated("zpool: the device '%s'", word)
	case d.Minor == minorWhole:
		return d.Disk.Name, nil
	}
	return SliceName(d.Disk, d.Minor), nil
}

// VdevPath is a pool's device as its label has it: what it is, its full path,
// and whether ZFS has the whole disk.
func VdevPath(tx *world.Tx, vdev string) (kind, path string, whole bool) {
	switch {
	case strings.HasPrefix(vdev, "/"):
		return "file", vdev, false
	case slices.ContainsFunc(tx.State.Disks, func(d *world.Disk) bool { return d.Name == vdev }):
		return "disk", diskDirectory + vdev + "s0", true
	}
	return "disk", diskDirectory + vdev, false
}

// NodeOf is the path below /devices of a pool's device that is there, without that.
func NodeOf(tx *world.Tx, vdev string) string {
	_, path, _ := VdevPath(tx, vdev)
	d, _ := FindDevice(tx, path)
	i := slices.IndexFunc(Minors(), func(m Minor) bool { return m.Number == d.Minor })
	return DevicesPath(tx, d.Disk) + ":" + Minors()[i].Name
}

// reservedM2 is what the other partitions of an M.2 take.
//
// Guess parts-of-an-m2-take-64-gib: the parts of an M.2 next to its pool take 64 GiB: images of 4
// GiB each, and room for a dump.
// Check: `prtvtoc /dev/rdsk/c1t0d0`
const reservedM2 = 64 << 30

// VdevSize is the size of a device, 0 if it does not exist.
func VdevSize(tx *world.Tx, vdev string) uint64 {
	if strings.HasPrefix(vdev, "/") {
		info, err := tx.Files.Stat(vdev)
		if err != nil || info.Mode.IsDir() {
			return 0
		}
		return uint64(info.Size)
	}
	d := DiskOf(tx, vdev)
	switch {
	case d == nil || d.Gone:
		return 0
	case d.Layout == LayoutM2 && vdev == SliceName(d, M2PoolSlice):
		return minus(d.Size, reservedM2)
	case d.Layout == LayoutM2 && d.Name != vdev:
		return 4 << 30
	}
	return d.Size
}

// checkDevice refuses a device that a pool uses or may use (check_device).
func checkDevice(tx *world.Tx, vdev string) error {
	for _, p := range tx.State.Pools {
		at := overlap(tx, p, vdev)
		if at == "" {
			continue
		}
		which := "exported or potentially active"
		if p.Imported {
			which = "active"
		}
		_, path, _ := VdevPath(tx, at)
		return refuse("invalid vdev specification\nuse '-f' to override the following errors:\n"+
			"%s is part of %s ZFS pool %s. Please see zpool(8).", path, which, p.Name)
	}
	return nil
}

// overlap is the device of a pool that has a part of this one, or "".
func overlap(tx *world.Tx, p *world.Pool, vdev string) string {
	disk := DiskOf(tx, vdev)
	if disk == nil {
		if owner, at := ReadLabel(tx, Device{File: vdev}); owner == p {
			return p.Vdevs[at]
		}
		return ""
	}
	for _, v := range p.Vdevs {
		if !p.Orphaned && DiskOf(tx, v) == disk && (v == vdev || vdev == disk.Name || v == disk.Name && vdev == SliceName(disk, 0)) {
			return v
		}
	}
	return ""
}

// openVdev is what making a pool does to its device before it writes a label: a
// whole disk gets a partition table, and what cannot be written is found out.
func openVdev(tx *world.Tx, c *checker, v string) error {
	disk := DiskOf(tx, v)
	whole := disk != nil && disk.Name == v
	switch {
	case disk == nil:
	case disk.Failing || !whole && v != SliceName(disk, M2PoolSlice):
		return c.refuse("one or more devices is currently unavailable")
	case whole:
		eraseDisk(tx, disk)
		disk.Layout = LayoutWhole
	}
	return nil
}

// eraseDisk removes what is on a disk: pools that are not imported.
func eraseDisk(tx *world.Tx, d *world.Disk) {
	forgetPools(tx, func(p *world.Pool) bool {
		return !p.Imported && slices.ContainsFunc(p.Vdevs, func(v string) bool { return DiskOf(tx, v) == d })
	})
	d.Layout, d.Pool, d.Scraps = "", "", nil
}

// HostID is that of the system. One whose root forgets has another after every
// boot.
//
// Guess host-id-after-each-boot: Helios has another host id after each boot, so that `zpool import`
// wants -f (zfs_force_import_required).
// Check: `hostid` before and after a boot; `zpool import`
func HostID(tx *world.Tx) uint32 {
	id := tx.State.Seed + 1
	if tx.Forgets() {
		id += uint64(tx.State.Boots) << 16
	}
	return uint32(id*0x9e3779b97f4a7c15>>40) | 1<<24
}

// Ashift is the alignment of its devices, as a power of two in digits.
func Ashift(p *world.Pool) string {
	return cmp.Or(strings.TrimPrefix(p.Properties["ashift"], "0"), "12")
}

// DeviceGUID is the number that one of a pool's devices bears.
func DeviceGUID(p *world.Pool, index int) uint64 {
	return max(1, (p.GUID+uint64(index)+1)*0x9e3779b97f4a7c15)
}

// LabelState is the state that its labels tell: POOL_STATE_ACTIVE or
// POOL_STATE_EXPORTED of usr/src/uts/common/sys/fs/zfs.h.
func LabelState(p *world.Pool) int {
	if p.Exported {
		return 1
	}
	return 0
}
