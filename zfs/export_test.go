package zfs

import "strings"

// ShortDevice is the name of a disk or slice as zpool takes and shows it: without
// the directory /dev/dsk, and without the first slice, which stands for a whole
// disk (zpool_vdev_name of usr/src/lib/libzfs/common/libzfs_pool.c). Other paths
// are as they are.
func ShortDevice(name string) string {
	short, found := strings.CutPrefix(name, "/dev/dsk/")
	if !found && strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(short, "s0")
}
