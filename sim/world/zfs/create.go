package zfs

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Making datasets: zfs_create, zfs_clone and zfs_snapshot_nvl in
// usr/src/lib/libzfs/common/libzfs_dataset.c.

// OwnBytes is what a new file system takes on a pool of 4 KiB sectors.
//
// Guess sizes-of-empty-datasets: an empty file system uses 96 KiB, a sparse volume 56 KiB, as in
// listings of pools of 4 KiB sectors; the figures differ with the layout.
// Check: `zfs list -p`
const OwnBytes = 96 << 10

// CreateFilesystem makes a file system. Mounting it is for the caller
// (MountAuto).
func CreateFilesystem(tx *world.Tx, name string, props map[string]string) error {
	return create(tx, name, TypeFilesystem, props, KeyOptions{})
}

// CreateFilesystemWith is CreateFilesystem with key material at hand.
func CreateFilesystemWith(tx *world.Tx, name string, props map[string]string, key KeyOptions) error {
	return create(tx, name, TypeFilesystem, props, key)
}

// CreateVolume makes a volume of a size that is a multiple of its block size,
// and its device files. Unless it is sparse, space for all of it is reserved.
func CreateVolume(tx *world.Tx, name string, size uint64, sparse bool, props map[string]string, key KeyOptions) error {
	all := map[string]string{"volsize": strconv.FormatUint(size, 10)}
	maps.Copy(all, props)
	props = all
	if _, set := props["refreservation"]; !set && !sparse {
		props["refreservation"] = "auto"
	}
	return create(tx, name, TypeVolume, props, key)
}

// Create does what zfs create does with a name: the checks in their order.
func create(tx *world.Tx, name string, kind DatasetTypes, props map[string]string, key KeyOptions) error {
	return createAs(tx, "cannot create '"+name+"'", name, kind, props, key)
}

// createAs is create for a command that says by itself what it cannot do.
func createAs(tx *world.Tx, action, name string, kind DatasetTypes, props map[string]string, key KeyOptions) error {
	c := &checker{tx: tx, action: action, types: kind, keysToo: true}
	parent, err := c.parent(name)
	if err != nil {
		return err
	}
	if FindDataset(tx, name) != nil {
		return c.refuse("dataset already exists")
	}
	c.zoned = word(tx, parent, "zoned") == "on"
	local, err := c.check(props)
	if err != nil {
		return err
	}
	d := &world.Dataset{Name: name, Type: "filesystem", Used: OwnBytes, Local: local}
	err = inTurn(
		func() error { return cmp.Or(c.writable(name), c.fits(name)) },
		func() error { return c.fitReservation(parent, d) },
		func() error { return c.fitVolume(parent, d) },
		func() error { return c.encrypt(parent, d, key) },
	)
	if err != nil {
		return err
	}
	if len(d.Local) == 0 {
		d.Local = nil
	}
	addDataset(tx, d)
	return addDevices(tx, d)
}

// parent checks the name of what is to be made and finds the dataset above it
// (zfs_validate_name, check_parents).
func (c *checker) parent(name string) (*world.Dataset, error) {
	if err := checkName(name, c.types, true); err != nil {
		return nil, err
	}
	if pool := PoolName(name); FindDataset(c.tx, pool) == nil {
		return nil, c.refuse("no such pool '%s'", pool)
	}
	parent := FindDataset(c.tx, parentName(name))
	switch {
	case !strings.Contains(name, "/") || parent != nil && Kind(parent) != TypeFilesystem:
		return nil, world.NotSimulated("zfs create of a pool, or below a volume")
	case parent == nil:
		return nil, c.refuse("parent does not exist")
	}
	return parent, nil
}

// fitReservation checks that there is room for what a new dataset reserves, and for its quota
// (dsl_dir_set_reservation_check in usr/src/uts/common/fs/zfs/dsl_dir.c).
func (c *checker) fitReservation(parent, d *world.Dataset) error {
	reserved, quota := number(d, "reservation"), number(d, "quota")
	if reserved > NewSurvey(c.tx).free(parent) || quota > 0 && reserved > quota {
		return c.refuse("out of space")
	}
	return nil
}

// BlockBytes is the size of a volume's blocks where none is asked for
// (ZVOL_DEFAULT_BLOCKSIZE of usr/src/uts/common/sys/fs/zfs.h).
const BlockBytes = 8192

// blockBytes is that of a volume.
func blockBytes(d *world.Dataset) uint64 { return cmp.Or(number(d, "volblocksize"), BlockBytes) }

// volumeBytes is what a volume takes that nobody has written to; see OwnBytes.
const volumeBytes = 56 << 10

// fitVolume completes the settings of a new volume and checks that there is
// room for it.
func (c *checker) fitVolume(parent, d *world.Dataset) error {
	if c.types != TypeVolume {
		return nil
	}
	d.Type, d.Used = "volume", volumeBytes
	size := number(d, "volsize")
	if size == 0 || size%blockBytes(d) != 0 {
		return world.NotSimulated("zfs create -V: a size of %d bytes", size)
	}
	if d.Local["refreservation"] == "auto" {
		d.Local["refreservation"] = strconv.FormatUint(reservationOf(size, blockBytes(d)), 10)
	}
	if max(number(d, "refreservation"), d.Used) > NewSurvey(c.tx).free(parent) {
		return c.refuse("out of space")
	}
	return nil
}

// SnapshotAll takes several snapshots of one pool at once: all or none.
func SnapshotAll(tx *world.Tx, names []string, props map[string]string) error {
	c := &checker{tx: tx, action: "cannot create snapshots ", types: TypeSnapshot}
	local, err := c.check(props)
	if err != nil {
		return err
	}
	heads := map[string]bool{}
	var failed error
	for _, name := range names {
		head := parentName(name)
		if err := cmp.Or(checkName(name, TypeSnapshot, true), c.writable(name), c.fits(name)); err != nil {
			return err
		}
		switch {
		case FindDataset(tx, head) == nil || heads[head] || FindDataset(tx, head).Partial != nil:
			return world.NotSimulated("zfs snapshot of nothing, of one file system twice, or of what is half received")
		case FindDataset(tx, name) != nil:
			failed = joinRefusals(failed, refuse("cannot create snapshot '%s': dataset already exists", name))
		}
		heads[head] = true
	}
	if failed != nil {
		return failed
	}
	group := txg(tx)
	for _, name := range names {
		head := FindDataset(tx, parentName(name))
		s := addDataset(tx, &world.Dataset{Name: name, Type: "snapshot", Local: maps.Clone(local), Volsize: head.Local["volsize"]})
		s.Created = group
		if err := copyContents(tx, head, s); err != nil {
			return err
		}
	}
	return nil
}

// Clone makes a file system or volume that begins as a snapshot. Settings of the snapshot's
// file system do not come along; a volume has the size of its snapshot, its blocks, and nothing kept
// back for it (zfs_clone in usr/src/lib/libzfs/common/libzfs_dataset.c). Mounting it is for the caller
// (MountAuto).
func Clone(tx *world.Tx, snapshot, name string, props map[string]string) error {
	origin, err := OpenDataset(tx, snapshot, TypeSnapshot)
	if err != nil {
		return err
	}
	head := FindDataset(tx, parentName(snapshot))
	c := &checker{tx: tx, action: "cannot create '" + name + "'", types: Kind(head), keysToo: true}
	parent, err := c.parent(name)
	if err != nil {
		return err
	}
	c.target, c.zoned = origin, word(tx, parent, "zoned") == "on"
	local, err := c.check(props)
	if err != nil {
		return err
	}
	switch {
	case local["encryption"]+local["keyformat"]+local["keylocation"] != "" || PoolName(snapshot) != PoolName(name) || local["volsize"]+local["refreservation"] != "":
		return world.NotSimulated("zfs clone into another pool, with a key of its own, or of another size")
	case FindDataset(tx, name) != nil:
		return c.refuse("dataset already exists")
	case locked(tx, head):
		return c.refuse("encryption root's key is not loaded or provided")
	}
	if err := cmp.Or(c.writable(name), c.fits(name)); err != nil {
		return err
	}
	d := &world.Dataset{Name: name, Type: head.Type, Origin: snapshot, Local: local}
	if Kind(d) == TypeVolume {
		d.Used, d.Local["volsize"], d.Local["volblocksize"] = volumeBytes, origin.Volsize, strconv.FormatUint(blockBytes(head), 10)
	}
	return inTurn(
		func() error { return copyContents(tx, origin, addDataset(tx, d)) },
		func() error { return addDevices(tx, d) },
	)
}

// Devices of volumes: links on a real sled (usr/src/uts/common/fs/zfs/zvol.c,
// devfsadm), empty files here.
var volumeDirectories = []string{"/dev/zvol/dsk", "/dev/zvol/rdsk"}

// addDevices makes the device files of a volume.
func addDevices(tx *world.Tx, d *world.Dataset) (err error) {
	for _, dir := range volumeDirectories {
		if Kind(d) == TypeVolume {
			err = errors.Join(err, world.Put(tx.Files, path.Join(dir, d.Name), nil, 0o600))
		}
	}
	return err
}

// removeDevices removes the device files of a volume and the directories that
// are empty then.
func removeDevices(tx *world.Tx, d *world.Dataset) (err error) {
	for _, dir := range volumeDirectories {
		if Kind(d) != TypeVolume {
			return nil
		}
		name := path.Join(dir, d.Name)
		err = errors.Join(err, world.RemoveFile(tx.Files, name))
		for above := path.Dir(name); above != dir && tx.Files.Remove(above) == nil; above = path.Dir(above) {
		}
	}
	return err
}

// What is written to a volume is kept as a file system's contents are, in a file of this name; a
// volume that nobody has written to has none, and reads as zeros.
const volumeFile = ".volume"

// VolumeAt is the volume whose device has this name; empty: it is none.
func VolumeAt(name string) string {
	for _, dir := range volumeDirectories {
		if volume, ok := strings.CutPrefix(name, dir+"/"); ok {
			return volume
		}
	}
	return ""
}

// OpenVolume is where the bytes of a volume are kept, and its size. Empty: it has none yet, and
// it was not opened to be written to.
func OpenVolume(tx *world.Tx, name string, write bool) (file string, size int64, err error) {
	d, err := OpenDataset(tx, name, TypeVolume)
	if err != nil {
		return "", 0, err
	}
	if d.Partial != nil && d.Partial.New { // it has no minor yet (zvol_create_minor)
		return "", 0, fs.ErrNotExist
	}
	size = int64(number(d, "volsize"))
	if d.Tree == "" && !write {
		return "", size, nil
	}
	if err := ensureTree(tx, d); err != nil {
		return "", 0, err
	}
	file = path.Join(d.Tree, volumeFile)
	if !tx.Exists(file) && write {
		err = world.Put(tx.Files, file, nil, 0o600)
	}
	return file, size, err
}

// Wrote has a volume take as much more as was written to it, but no more than it has.
func Wrote(tx *world.Tx, name string, bytes uint64) error {
	d, err := OpenDataset(tx, name, TypeVolume)
	if err == nil {
		tx.TouchDataset(name)
		d.Used = min(d.Used+bytes, volumeBytes+number(d, "volsize"))
	}
	return err
}
