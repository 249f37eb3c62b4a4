package zfs

import (
	"errors"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Rename gives a volume another name in its pool, and its snapshots with it: zfs_rename in
// usr/src/lib/libzfs/common/libzfs_dataset.c.
func Rename(tx *world.Tx, name, target string) error {
	d, err := OpenDataset(tx, name, typeHeads)
	if err != nil {
		return err
	}
	own, _ := tx.DatasetsOf(name)
	if Kind(d) != TypeVolume || given(tx, name) || PoolName(name) != PoolName(target) || slices.ContainsFunc(own, func(of *world.Dataset) bool { return len(Clones(tx, of.Name)) > 0 }) {
		return world.NotSimulated("zfs rename of a file system, of a volume that is in use or has clones, or into another pool")
	}
	c := &checker{tx: tx, action: "cannot rename '" + name + "'", types: TypeVolume}
	if _, err := (&checker{tx: tx, action: "cannot create '" + target + "'", types: TypeVolume}).parent(target); err != nil {
		return err
	}
	if err := c.writable(name); err != nil {
		return err
	}
	if FindDataset(tx, target) != nil {
		return c.refuse("dataset already exists")
	}
	err = removeDevices(tx, d)
	for _, of := range own {
		moved := cloneDataset(of)
		moved.Name = target + strings.TrimPrefix(of.Name, name)
		tx.TouchDataset(of.Name)
		tx.TouchDataset(moved.Name)
		delete(tx.State.Datasets, of.Name)
		tx.State.Datasets[moved.Name] = moved
	}
	return errors.Join(err, addDevices(tx, FindDataset(tx, target)))
}
