package zfs

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// Making datasets: zfs_create, zfs_clone and zfs_snapshot_nvl in
// usr/src/lib/libzfs/common/libzfs_dataset.c.

// OwnBytes is what a new file system takes on a pool of 4 KiB sectors.
//
// Guess: from listings of such pools; the figure differs with the layout.
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
	c := &checker{tx: tx, action: "cannot create '" + name + "'", types: kind, keysToo: true}
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
	if err := cmp.Or(c.writable(name), c.fits(name)); err != nil {
		return err
	}
	d := &world.Dataset{Name: name, Type: "filesystem", Used: OwnBytes, Local: local}
	if kind == TypeVolume {
		d.Type = "volume"
		if err := c.fitVolume(parent, d); err != nil {
			return err
		}
	}
	if err := c.encrypt(parent, d, key); err != nil {
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
	if why := CheckDatasetName(name, c.types, true); why != "" {
		return nil, c.refuse("%s", why)
	}
	above := parentName(name)
	if above == "" {
		return nil, c.refuse("missing dataset name")
	}
	if pool := PoolName(name); FindDataset(c.tx, pool) == nil {
		return nil, c.refuse("no such pool '%s'", pool)
	}
	parent := FindDataset(c.tx, above)
	switch {
	case parent == nil:
		return nil, c.refuse("parent does not exist")
	case Kind(parent) != TypeFilesystem:
		return nil, c.refuse("parent is not a filesystem")
	}
	return parent, nil
}

// fitVolume completes the settings of a new volume and checks that there is
// room for it.
func (c *checker) fitVolume(parent, d *world.Dataset) error {
	d.Used = 56 << 10 // Guess: as ownBytes.
	block := cmp.Or(number(d, "volblocksize"), 8192)
	size := number(d, "volsize")
	switch {
	case size == 0:
		return c.refuse("volume size cannot be zero")
	case size%block != 0:
		return c.refuse("volume size must be a multiple of volume block size")
	}
	if d.Local["volblocksize"] == "" {
		d.Local["volblocksize"] = strconv.FormatUint(block, 10)
	}
	if d.Local["refreservation"] == "auto" {
		d.Local["refreservation"] = strconv.FormatUint(reservationOf(size, block, d.Local["copies"]), 10)
	}
	survey := NewSurvey(c.tx)
	survey.account()
	if max(number(d, "refreservation"), number(d, "reservation"), d.Used) > survey.space[parent.Name].free {
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
		if why := CheckDatasetName(name, TypeSnapshot, true); why != "" {
			return refuse("cannot create snapshot '%s': %s", name, why)
		}
		if err := cmp.Or(c.writable(name), c.fits(name)); err != nil {
			return err
		}
		switch {
		case FindDataset(tx, head) == nil:
			failed = joinRefusals(failed, refuse("cannot create snapshot '%s': dataset does not exist", name))
		case FindDataset(tx, name) != nil:
			failed = joinRefusals(failed, refuse("cannot create snapshot '%s': dataset already exists", name))
		case heads[head]:
			return c.refuse("multiple snapshots of same fs not allowed")
		}
		heads[head] = true
	}
	if failed != nil {
		return failed
	}
	group := txg(tx)
	for _, name := range names {
		s := addDataset(tx, &world.Dataset{Name: name, Type: "snapshot", Local: maps.Clone(local)})
		s.Created = group
		if err := copyContents(tx, FindDataset(tx, parentName(name)), s); err != nil {
			return err
		}
	}
	return nil
}

// Clone makes a file system or volume that begins as a snapshot. Settings of
// the snapshot's file system do not come along; the volume's size does.
// Mounting it is for the caller (MountAuto).
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
	case local["encryption"] != "" || local["keyformat"] != "" || local["keylocation"] != "":
		return c.refuse("Encryption properties must inherit from origin dataset.")
	case PoolName(snapshot) != PoolName(name):
		return c.refuse("source and target pools differ")
	case FindDataset(tx, name) != nil:
		return c.refuse("dataset already exists")
	case locked(tx, head):
		return c.refuse("encryption root's key is not loaded or provided")
	}
	if err := cmp.Or(c.writable(name), c.fits(name)); err != nil {
		return err
	}
	for _, p := range []string{"volsize", "volblocksize"} { // kept in the volume itself
		if v, ok := head.Local[p]; ok {
			local[p] = v
		}
	}
	d := addDataset(tx, &world.Dataset{Name: name, Type: head.Type, Origin: snapshot, Local: local})
	if err := copyContents(tx, origin, d); err != nil {
		return err
	}
	return addDevices(tx, d)
}

// Devices of volumes: links on a real sled (usr/src/uts/common/fs/zfs/zvol.c,
// devfsadm), empty files here.
var volumeDirectories = []string{"/dev/zvol/dsk", "/dev/zvol/rdsk"}

// addDevices makes the device files of a volume.
func addDevices(tx *world.Tx, d *world.Dataset) error {
	if Kind(d) != TypeVolume {
		return nil
	}
	for _, dir := range volumeDirectories {
		name := path.Join(dir, d.Name)
		if err := host.MkdirAll(tx.Files, path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := world.Put(tx.Files, name, nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// removeDevices removes the device files of a volume and the directories that
// are empty then.
func removeDevices(tx *world.Tx, d *world.Dataset) error {
	if Kind(d) != TypeVolume {
		return nil
	}
	for _, dir := range volumeDirectories {
		for name := path.Join(dir, d.Name); !slices.Contains(volumeDirectories, name); name = path.Dir(name) {
			if err := tx.Files.Remove(name); err != nil && name == path.Join(dir, d.Name) {
				return world.RemoveFile(tx.Files, name)
			}
		}
	}
	return nil
}
