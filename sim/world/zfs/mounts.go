package zfs

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// Mounting: libzfs_mount.c of usr/src/lib/libzfs/common, and the checks of zfs
// mount and unmount in usr/src/cmd/zfs/zfs_main.c (share_mount_one,
// unshare_unmount).

// MountedAt is the dataset that is mounted on exactly this directory, or nil.
func MountedAt(tx *world.Tx, dir string) *world.Dataset { return tx.MountedAt(dir) }

// DatasetOf is the mounted dataset that a path lies on, or nil.
func DatasetOf(tx *world.Tx, name string) *world.Dataset {
	for dir := name; ; dir = path.Dir(dir) {
		if d := tx.MountedAt(dir); d != nil {
			return d
		}
		if dir == "/" || dir == "." {
			return nil
		}
	}
}

// ByMountpoint is the first file system, by name, whose mountpoint is exactly this, mounted
// or not; nil: there is none. Dir is a path. A mountpoint is a dataset's own, goes on from that of the
// nearest above which has one, or is the pool's default.
func ByMountpoint(tx *world.Tx, dir string) *world.Dataset {
	tops := map[string]string{} // mountpoints, by the name of what has them
	for _, p := range tx.State.Pools {
		tops[p.Name] = "/" + p.Name
	}
	for _, d := range tx.WithMountpoint() {
		tops[d.Name] = d.Local["mountpoint"]
	}
	var found *world.Dataset
	for name, top := range tops {
		if rest, within := strings.CutPrefix(dir, strings.TrimSuffix(top, "/")); within {
			name += strings.TrimSuffix(rest, "/")
		}
		d := FindDataset(tx, name)
		if d == nil || Kind(d) != TypeFilesystem || !Reachable(tx, d.Name) || Mountpoint(tx, d) != dir {
			continue
		}
		if found == nil || world.CompareNames(d, found) < 0 {
			found = d
		}
	}
	return found
}

// mountsBelow are the datasets mounted strictly below a directory, deepest
// first.
func mountsBelow(tx *world.Tx, dir string) []*world.Dataset {
	found := tx.MountsBelow(dir)
	slices.Reverse(found)
	return found
}

// MountWith is zfs mount. Quiet is zfs mount -a: what is not to be mounted is passed
// over.
func MountWith(tx *world.Tx, name string, quiet bool) error {
	d, err := OpenDataset(tx, name, TypeFilesystem)
	if err != nil {
		return err
	}
	where, _ := mountpoint(tx, d)
	why := ""
	switch canmount := word(tx, d, "canmount"); {
	case word(tx, d, "zoned") == "on":
		why = "dataset is exported to a local zone"
	case where == "legacy":
		why = "legacy mountpoint\nuse mount(8) to mount this filesystem"
	case where == "none":
		why = "no mountpoint set"
	case canmount == "off":
		why = "'canmount' property is set to 'off'"
	case canmount == "noauto" && quiet:
		return nil
	case locked(tx, d):
		why = "encryption key not loaded"
	case d.Mounted != "":
		why = "filesystem already mounted"
	}
	switch {
	case why != "" && quiet:
		return nil
	case why != "":
		return refuse("cannot mount '%s': %s", name, why)
	}
	return mount(tx, d)
}

// MountAuto mounts a file system that is to be mounted wherever it belongs, as
// zfs create and zfs clone do with what they made: only if canmount is on.
func MountAuto(tx *world.Tx, name string) error {
	d := FindDataset(tx, name)
	if d == nil || Kind(d) != TypeFilesystem || word(tx, d, "canmount") != "on" {
		return nil
	}
	return mount(tx, d)
}

// MountAll is "zfs mount -a", parents first. It tries all; the error is the
// refusals, one per line.
func MountAll(tx *world.Tx) error {
	return mountAll(tx, func(*world.Dataset) bool { return true })
}

func mountAll(tx *world.Tx, take func(*world.Dataset) bool) error {
	all := SelectDatasets(tx, func(d *world.Dataset) bool { return Kind(d) == TypeFilesystem && d.Mounted == "" && take(d) })
	slices.SortStableFunc(all, func(a, b *world.Dataset) int {
		am, _ := mountpoint(tx, a)
		bm, _ := mountpoint(tx, b)
		return cmp.Compare(am, bm)
	})
	var failed error
	for _, d := range all {
		failed = joinRefusals(failed, MountWith(tx, d.Name, true))
	}
	return failed
}

// mount is zfs_mount: at the mountpoint, which is made if it is absent. A file
// system that has none, or is not mounted by ZFS here, is left alone.
//
// Guess mounted-below-is-busy: a file system with another one mounted below it is "Device busy" for
// `unmount -f` and `destroy -f`.
// Check: those commands
func mount(tx *world.Tx, d *world.Dataset) error {
	where, _ := mountpoint(tx, d)
	if !strings.HasPrefix(where, "/") || word(tx, d, "canmount") == "off" || word(tx, d, "zoned") == "on" {
		return nil
	}
	if fixed(tx, where) || host.MkdirAll(tx.Files, where, 0o755) != nil {
		return refuse("cannot mount '%s': failed to create mountpoint", where)
	}
	entries, err := tx.Files.ReadDir(where)
	switch {
	case err != nil:
		return err
	case len(entries) > 0:
		return refuse("cannot mount '%s': directory is not empty", where)
	case suspended(tx, d.Name):
		return refuse("cannot mount '%s': I/O error", where) // EIO of mount(2)
	case locked(tx, d):
		return refuse("cannot mount '%s': encryption key not loaded", d.Name) // EACCES of mount(2)
	case d.Mounted != "" || MountedAt(tx, where) != nil || len(mountsBelow(tx, where)) > 0:
		return refuse("cannot mount '%s': mountpoint or dataset is busy", d.Name)
	}
	return moveIn(tx, d, where)
}

// MountAt is "mount -F zfs -O NAME DIR": for file systems that ZFS does not
// mount by itself, at a directory that is there, empty or not, whatever the
// properties canmount and zoned say.
//
// Guess mount-over-mountpoint: mounting over a mount point works on a real sled; no command of
// sledctl does it.
// Check: nothing: sledctl does not do it
func MountAt(tx *world.Tx, name, dir string) error {
	d, err := OpenDataset(tx, name, TypeFilesystem)
	if err != nil {
		return err
	}
	where, _ := mountpoint(tx, d)
	dir = path.Clean(dir)
	info, err := tx.Files.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && where == "legacy":
		return refuse("mount failed: No such file or directory")
	case err != nil || where != "legacy" || !info.Mode.IsDir() || locked(tx, d):
		return world.NotSimulated("mount -F zfs of '%s' on '%s'", name, dir)
	case d.Mounted != "" || dir == "/" || MountedAt(tx, dir) != nil || len(mountsBelow(tx, dir)) > 0:
		return refuse("mount failed: Device busy")
	}
	return moveIn(tx, d, dir)
}

// RebootDatasets is what a reboot does: nothing is mounted and no key loaded;
// then svc:/system/filesystem/local mounts what canmount=on says. What was
// mounted stays where it is if that comes to the same.
func RebootDatasets(tx *world.Tx) error {
	for _, d := range tx.State.Datasets {
		if d.KeyReady {
			tx.TouchDataset(d.Name)
			d.KeyReady = false
		}
	}
	for _, d := range mountsBelow(tx, "/") {
		where, _ := mountpoint(tx, d)
		if where == d.Mounted && word(tx, d, "canmount") == "on" && word(tx, d, "zoned") == "off" && !locked(tx, d) {
			continue
		}
		for _, below := range append(mountsBelow(tx, d.Mounted), d) {
			if err := moveOut(tx, below); err != nil {
				return err
			}
		}
	}
	err := MountAll(tx)
	if _, refused := errors.AsType[*world.Refusal](err); refused {
		return nil // The service fails, the sled is up.
	}
	return err
}
