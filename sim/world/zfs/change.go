package zfs

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Changing datasets: zfs_prop_set_list and zfs_prop_inherit in usr/src/lib/libzfs/common/libzfs_dataset.c.

// SetProperties sets properties of a dataset: all or none. File systems whose
// mountpoint changes by it are unmounted before and mounted after.
func SetProperties(tx *world.Tx, name string, props map[string]string) error {
	d, err := OpenDataset(tx, name, TypeDataset)
	if err != nil {
		return err
	}
	c := &checker{
		tx: tx, action: "cannot set property for '" + name + "'", types: Kind(d), target: d,
		zoned: Kind(d) == TypeFilesystem && word(tx, d, "zoned") == "on",
	}
	checked, err := c.check(props)
	if err != nil {
		return err
	}
	if err := cmp.Or(c.writable(name), c.room(d, checked)); err != nil {
		return err
	}
	list, err := c.moved(d, checked)
	if err != nil {
		return err
	}
	tx.TouchDataset(d.Name)
	apply(d, checked)
	if err := list.remount(); err != nil {
		return joinRefusals(err, refuse("property may be set but unable to remount filesystem"))
	}
	return nil
}

// moved unmounts the file systems that settings move and gives their list.
func (c *checker) moved(d *world.Dataset, s settings) (*changeList, error) {
	_, where := s["mountpoint"]
	_, zoned := s["zoned"]
	list := &changeList{tx: c.tx}
	switch {
	case where:
		list = gather(c.tx, d, false)
		if slices.ContainsFunc(list.nodes, func(n *changeNode) bool { return n.zoned && n.dataset != d }) {
			return nil, c.refuse("child dataset with inherited mountpoint is used in a non-global zone")
		}
	case zoned:
		list = gather(c.tx, d, true)
	case s["canmount"] == "off" && d.Mounted != "":
		return nil, world.NotSimulated("zfs set canmount=off of what is mounted")
	}
	return list, list.unmount()
}

// Inherit drops a property's own value of a dataset. It is fine if there is
// none.
func Inherit(tx *world.Tx, name, property string) error {
	d, err := OpenDataset(tx, name, TypeDataset)
	if err != nil {
		return err
	}
	c := &checker{tx: tx, action: "cannot inherit " + property + " for '" + name + "'"}
	p := FindDatasetProperty(property)
	if p != nil && (!p.Inheritable() || p.Types&Kind(d) == 0 || p.Name == "mountpoint" && word(tx, d, "zoned") == "on") {
		return world.NotSimulated("zfs inherit %s", property)
	}
	list, err := c.moved(d, settings{property: ""})
	if err != nil {
		return err
	}
	tx.TouchDataset(d.Name)
	delete(d.Local, property)
	return list.remount()
}

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
