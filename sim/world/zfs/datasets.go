// Package zfs does what libzfs and the kernel do for zfs(8) and zpool(8) on the
// state of a simulated sled: datasets, pools, and the disks that they lie on.
package zfs

import (
	"maps"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
)

// Datasets and pools. The functions of the files dataset*.go and pool*.go do
// what libzfs and the kernel do for zfs(8) and zpool(8), with their checks, in
// their order and with their messages (usr/src/lib/libzfs/common, usr/src/uts/common/fs/zfs);
// parsing arguments and printing is for package tools.
//
// The datasets of an exported pool are parked in State.Datasets under names
// that open with the pool's GUID and a colon. No dataset's name begins with a
// digit, so they do not collide.

// FindDataset is the dataset of this name, or nil.
func FindDataset(tx *world.Tx, name string) *world.Dataset {
	if parked(name) {
		return nil
	}
	return tx.State.Datasets[name]
}

func parked(name string) bool { return name != "" && name[0] >= '0' && name[0] <= '9' }

// Kind is the dataset's type as one of the constants.
func Kind(d *world.Dataset) DatasetTypes {
	switch d.Type {
	case "volume":
		return TypeVolume
	case "snapshot":
		return TypeSnapshot
	}
	return TypeFilesystem
}

// Children are the file systems and volumes directly below, by name.
func Children(tx *world.Tx, name string) []*world.Dataset {
	return slices.DeleteFunc(Descendants(tx, name), func(d *world.Dataset) bool { return parentName(d.Name) != name })
}

// Snapshots are the snapshots of a file system or volume, oldest first.
func Snapshots(tx *world.Tx, name string) []*world.Dataset {
	own, _ := tx.DatasetsOf(name)
	return chosen(own, func(d *world.Dataset) bool { return Kind(d) == TypeSnapshot })
}

// Clones are the datasets that began as this snapshot, by name.
func Clones(tx *world.Tx, snapshot string) []*world.Dataset {
	return SelectDatasets(tx, func(d *world.Dataset) bool { return d.Origin == snapshot })
}

// Descendants are the file systems and volumes below, at any depth, by name.
func Descendants(tx *world.Tx, name string) []*world.Dataset {
	_, below := tx.DatasetsOf(name)
	return chosen(below, func(d *world.Dataset) bool { return Kind(d) != TypeSnapshot })
}

// SelectDatasets lists what take takes, in the order of zfs list.
func SelectDatasets(tx *world.Tx, take func(*world.Dataset) bool) []*world.Dataset {
	return chosen(tx.Datasets(), take)
}

// ofPool are all datasets of a pool, in the order of zfs list.
func ofPool(tx *world.Tx, pool string) []*world.Dataset {
	own, below := tx.DatasetsOf(pool)
	return slices.Concat(own, below)
}

func chosen(from []*world.Dataset, take func(*world.Dataset) bool) []*world.Dataset {
	var found []*world.Dataset
	for _, d := range from {
		if !parked(d.Name) && take(d) {
			found = append(found, d)
		}
	}
	return found
}

// CompareDatasets orders datasets as zfs list does when it is not told otherwise.
func CompareDatasets(a, b *world.Dataset) int { return world.CompareNames(a, b) }

// OpenDataset finds a dataset as zfs_open does: the name must be valid and the
// dataset of one of the types.
//
// Guess dataset-of-unopened-pool-is-enxio: a dataset of a pool that a boot could not open is "No
// such device or address" (ENXIO of spa_open).
// Check: pull a disk, boot, `zfs list POOL`
func OpenDataset(tx *world.Tx, name string, types DatasetTypes) (*world.Dataset, error) {
	if err := checkName(name, types, false); err != nil {
		return nil, err
	}
	d := FindDataset(tx, name)
	p := FindPool(tx, PoolName(name))
	switch {
	case p != nil && p.Unloaded:
		return nil, refuse("cannot open '%s': No such device or address", name)
	case suspended(tx, name):
		return nil, refuse("cannot open '%s': %s", name, suspendedIO)
	case d == nil:
		return nil, refuse("cannot open '%s': dataset does not exist", name)
	case Kind(d)&types == 0:
		return nil, refuse("cannot open '%s': operation not applicable to datasets of this type", name)
	}
	return d, nil
}

// txg is a new transaction group: each change that makes a dataset has its own.
func txg(tx *world.Tx) uint64 { return tx.Count("txg") }

// addDataset enters a new dataset. A GUID is never 0.
func addDataset(tx *world.Tx, d *world.Dataset) *world.Dataset {
	d.GUID = max(1, tx.Draw("guid"))
	d.Created = txg(tx)
	d.Time = tx.Now.Unix()
	tx.TouchDataset(d.Name)
	tx.State.Datasets[d.Name] = d
	return d
}

func cloneDataset(d *world.Dataset) *world.Dataset {
	c := *d
	c.Local, c.Immutable = maps.Clone(d.Local), slices.Clone(d.Immutable)
	return &c
}
