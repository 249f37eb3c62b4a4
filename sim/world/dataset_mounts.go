package world

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Mounting: libzfs_mount.c of usr/src/lib/libzfs/common, and the checks of zfs
// mount and unmount in usr/src/cmd/zfs/zfs_main.c (share_mount_one,
// unshare_unmount).

// MountOptions are those of zfs mount.
type MountOptions struct {
	Overlay  bool // -O: also over a directory that is not empty
	LoadKeys bool // -l
	// Quiet is zfs mount -a: what is not to be mounted is passed over.
	Quiet bool
}

// MountedAt is the dataset that is mounted on exactly this directory, or nil.
func (tx *Tx) MountedAt(dir string) *Dataset {
	for _, d := range tx.State.Datasets {
		if d.Mounted == dir && dir != "" {
			return d
		}
	}
	return nil
}

// DatasetOf is the mounted dataset that a path lies on, or nil.
func (tx *Tx) DatasetOf(name string) *Dataset {
	var best *Dataset
	for _, d := range tx.State.Datasets {
		if d.Mounted != "" && (d.Mounted == name || under(name, d.Mounted)) && (best == nil || len(d.Mounted) > len(best.Mounted)) {
			best = d
		}
	}
	return best
}

// mountsBelow are the datasets mounted strictly below a directory, deepest
// first.
func (tx *Tx) mountsBelow(dir string) []*Dataset {
	var found []*Dataset
	for _, d := range tx.State.Datasets {
		if d.Mounted != "" && under(d.Mounted, dir) {
			found = append(found, d)
		}
	}
	slices.SortFunc(found, func(a, b *Dataset) int { return cmp.Compare(b.Mounted, a.Mounted) })
	return found
}

// Mount is "zfs mount NAME": what cannot be mounted is refused.
func (tx *Tx) Mount(name string) error { return tx.MountWith(name, MountOptions{}) }

// MountWith is Mount with options.
func (tx *Tx) MountWith(name string, o MountOptions) error {
	d, err := tx.OpenDataset(name, TypeFilesystem)
	if err != nil {
		return err
	}
	where, _ := tx.mountpoint(d)
	canmount := tx.word(d, "canmount")
	why := ""
	switch {
	case tx.word(d, "zoned") == "on":
		why = "dataset is exported to a local zone"
	case where == "legacy":
		why = "legacy mountpoint\nuse mount(8) to mount this filesystem"
	case where == "none":
		why = "no mountpoint set"
	case canmount == "off":
		why = "'canmount' property is set to 'off'"
	case canmount == "noauto" && o.Quiet:
		return nil
	case !o.LoadKeys && tx.locked(d):
		why = "encryption key not loaded"
	case d.Mounted != "":
		why = "filesystem already mounted"
	}
	switch {
	case why != "" && o.Quiet:
		return nil
	case why != "":
		return refuse("cannot mount '%s': %s", name, why)
	}
	if o.LoadKeys && tx.locked(d) {
		if err := tx.LoadKey(tx.encryptionRoot(d).Name, KeyOptions{}); err != nil {
			return err
		}
	}
	return tx.mount(d, o.Overlay)
}

// MountAuto mounts a file system that is to be mounted wherever it belongs, as
// zfs create and zfs clone do with what they made: only if canmount is on.
func (tx *Tx) MountAuto(name string) error {
	d := tx.FindDataset(name)
	if d == nil || d.Kind() != TypeFilesystem || tx.word(d, "canmount") != "on" {
		return nil
	}
	return tx.mount(d, false)
}

// MountAll is "zfs mount -a", parents first. It tries all; the error is the
// refusals, one per line.
func (tx *Tx) MountAll(o MountOptions) error {
	o.Quiet = true
	all := tx.selectDatasets(func(d *Dataset) bool { return d.Kind() == TypeFilesystem && d.Mounted == "" })
	slices.SortStableFunc(all, func(a, b *Dataset) int {
		am, _ := tx.mountpoint(a)
		bm, _ := tx.mountpoint(b)
		return cmp.Compare(am, bm)
	})
	var failed error
	for _, d := range all {
		failed = joinRefusals(failed, tx.MountWith(d.Name, o))
	}
	return failed
}

// mount is zfs_mount: at the mountpoint, which is made if it is absent. A file
// system that has none, or is not mounted by ZFS here, is left alone.
func (tx *Tx) mount(d *Dataset, overlay bool) error {
	where, _ := tx.mountpoint(d)
	if !strings.HasPrefix(where, "/") || tx.word(d, "canmount") == "off" || tx.word(d, "zoned") == "on" {
		return nil
	}
	if tx.fixed(where) || host.MkdirAll(tx.Files, where, 0o755) != nil {
		return refuse("cannot mount '%s': failed to create mountpoint", where)
	}
	entries, err := tx.Files.ReadDir(where)
	if err != nil {
		return err
	}
	if len(entries) > 0 && !overlay {
		return refuse("cannot mount '%s': directory is not empty", where)
	}
	if tx.suspended(d.Name) {
		return refuse("cannot mount '%s': I/O error", where) // EIO of mount(2)
	}
	if tx.locked(d) {
		// EACCES of mount(2).
		return refuse("cannot mount '%s': encryption key not loaded", d.Name)
	}
	if d.Mounted != "" || tx.MountedAt(where) != nil || len(tx.mountsBelow(where)) > 0 {
		return refuse("cannot mount '%s': mountpoint or dataset is busy", d.Name)
	}
	return tx.place(d, where)
}

// place moves the contents of d to a directory.
func (tx *Tx) place(d *Dataset, dir string) error {
	if err := tx.moveIn(d, dir); err != nil {
		return err
	}
	d.Mounted = dir
	return nil
}

// MountAt is "mount -F zfs -O NAME DIR": for file systems that ZFS does not
// mount by itself, at a directory that is there, empty or not, whatever the
// properties canmount and zoned say.
func (tx *Tx) MountAt(name, dir string) error {
	d, err := tx.OpenDataset(name, TypeFilesystem)
	if err != nil {
		return err
	}
	if where, _ := tx.mountpoint(d); where != "legacy" {
		return refuse("filesystem '%s' cannot be mounted using 'mount -F zfs'\nUse 'zfs set mountpoint=%s' instead.\n"+
			"If you must use 'mount -F zfs' or /etc/vfstab, use 'zfs set mountpoint=legacy'.\nSee zfs(8) for more information.",
			name, dir)
	}
	dir = path.Clean(dir)
	info, err := tx.Files.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("mount failed: No such file or directory")
	case err != nil:
		return err
	case !info.Mode.IsDir():
		return refuse("mount failed: Not a directory")
	case tx.locked(d):
		return refuse("mount failed: Permission denied")
	case d.Mounted != "" || dir == "/" || tx.MountedAt(dir) != nil || len(tx.mountsBelow(dir)) > 0:
		// Guess: mounting over a mount point works on a real sled; nobody does it.
		return refuse("mount failed: Device busy")
	}
	return tx.place(d, dir)
}

// Unmount takes one file system away from wherever it is mounted. It is no
// error if it is not mounted. Force is MS_FORCE: who uses it loses it.
func (tx *Tx) Unmount(name string, force bool) error {
	d := tx.FindDataset(name)
	if d == nil || d.Mounted == "" {
		return nil
	}
	if tx.busy(d.Mounted, force) {
		return refuse("cannot unmount '%s': Device busy", d.Mounted)
	}
	dir := d.Mounted
	if err := tx.moveOut(d, dir); err != nil {
		return err
	}
	d.Mounted = ""
	return nil
}

// busy says whether a file system mounted on dir cannot be unmounted: another
// one is mounted below it, or a zone that the kernel knows has its root there,
// something mounted below it, or a directory of it mounted elsewhere.
func (tx *Tx) busy(dir string, force bool) bool {
	if dir == "/" || len(tx.mountsBelow(dir)) > 0 {
		return true
	}
	if force {
		return false
	}
	at := func(name string) bool { return name == dir || under(name, dir) }
	for _, z := range tx.State.Zones {
		if z.Kernel == nil {
			continue
		}
		if at(path.Join(z.Kernel.Config.Zonepath, "root")) ||
			slices.ContainsFunc(z.Kernel.Mounts, func(m string) bool { return under(m, dir) }) ||
			slices.ContainsFunc(z.Kernel.Loops, func(l Loop) bool { return at(l.Special) }) {
			return true
		}
	}
	return false
}

// volumeBusy says whether a zone that the kernel knows has the volume's device.
func (tx *Tx) volumeBusy(name string) bool {
	for _, z := range tx.State.Zones {
		if z.Kernel == nil {
			continue
		}
		for _, r := range z.Kernel.Config.All("device") {
			if m := r.Get("match"); m == "/dev/zvol/rdsk/"+name || m == "/dev/zvol/dsk/"+name {
				return true
			}
		}
	}
	return false
}

// lent says whether the dataset, or what it lies in, was given to a zone that
// the kernel knows (zonecfg's resource dataset).
func (tx *Tx) lent(name string) bool {
	for _, z := range tx.State.Zones {
		if z.Kernel == nil {
			continue
		}
		for _, r := range z.Kernel.Config.All("dataset") {
			if n := r.Get("name"); n == name || isBelow(name, n) {
				return true
			}
		}
	}
	return false
}

// UnmountTree is "zfs unmount NAME": with all that inherits its mountpoint.
func (tx *Tx) UnmountTree(name string, force bool) error {
	d, err := tx.OpenDataset(name, TypeFilesystem)
	if err != nil {
		return err
	}
	switch where, _ := tx.mountpoint(d); {
	case where == "legacy":
		return refuse("cannot unmount '%s': legacy mountpoint\nuse umount(8) to unmount this filesystem", name)
	case d.Mounted == "":
		return refuse("cannot unmount '%s': not currently mounted", name)
	}
	return tx.gather(d, "mountpoint").unmount(force)
}

// UnmountPath is "zfs unmount /DIR".
func (tx *Tx) UnmountPath(dir string, force bool) error {
	if !tx.exists(dir) {
		return refuse("cannot unmount '%s': No such file or directory", dir)
	}
	d := tx.DatasetOf(path.Clean(dir))
	switch {
	case d == nil:
		return refuse("cannot unmount '%s': not a ZFS filesystem", dir)
	case d.Mounted != path.Clean(dir):
		return refuse("cannot unmount '%s': not a mountpoint", dir)
	}
	if where, _ := tx.mountpoint(d); where == "legacy" {
		return refuse("cannot unmount '%s': legacy mountpoint\nuse umount(8) to unmount this filesystem", d.Name)
	}
	return tx.gather(d, "mountpoint").unmount(force)
}

// UnmountAll is "zfs unmount -a", deepest first. It tries all.
func (tx *Tx) UnmountAll(force bool) error {
	var failed error
	for _, d := range tx.mountsBelow("/") {
		if where, _ := tx.mountpoint(d); where != "legacy" && tx.word(d, "canmount") != "noauto" {
			failed = joinRefusals(failed, tx.Unmount(d.Name, force))
		}
	}
	return failed
}

// RebootDatasets is what a reboot does: nothing is mounted and no key loaded;
// then svc:/system/filesystem/local mounts what canmount=on says. What was
// mounted stays where it is if that comes to the same.
func (tx *Tx) RebootDatasets() error {
	for _, d := range tx.State.Datasets {
		d.KeyReady = false
	}
	for _, d := range tx.mountsBelow("/") {
		where, _ := tx.mountpoint(d)
		if where == d.Mounted && tx.word(d, "canmount") == "on" && tx.word(d, "zoned") == "off" && !tx.locked(d) {
			continue
		}
		for _, below := range append(tx.mountsBelow(d.Mounted), d) {
			if err := tx.moveOut(below, below.Mounted); err != nil {
				return err
			}
			below.Mounted = ""
		}
	}
	err := tx.MountAll(MountOptions{})
	if _, refused := errors.AsType[*Refusal](err); refused {
		return nil // The service fails, the sled is up.
	}
	return err
}
