package zfs

import "github.com/sledctl/sledctl/sim/world"

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
	if err := c.writable(name); err != nil {
		return err
	}
	if err := c.room(d, checked); err != nil {
		return err
	}
	list, err := c.moved(d, checked)
	if err != nil {
		return err
	}
	if list != nil {
		if err := list.unmount(false); err != nil {
			return err
		}
	}
	apply(d, checked)
	if list == nil {
		return nil
	}
	if err := list.remount(); err != nil {
		return joinRefusals(err, refuse("property may be set but unable to remount filesystem"))
	}
	return nil
}

// moved is the list of file systems that settings unmount, or nil.
func (c *checker) moved(d *world.Dataset, s settings) (*changeList, error) {
	_, where := s["mountpoint"]
	_, zoned := s["zoned"]
	switch {
	case where:
		list := gather(c.tx, d, "mountpoint")
		if list.zonedChild(d) {
			return nil, c.refuse("child dataset with inherited mountpoint is used in a non-global zone")
		}
		return list, nil
	case zoned:
		return gather(c.tx, d, "zoned"), nil
	case s["canmount"] == "off" && d.Mounted != "":
		return gather(c.tx, d, "mountpoint"), nil
	}
	return nil, nil
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
	switch {
	case p == nil && !UserProperty(property):
		return c.refuse("invalid property")
	case suspended(tx, name):
		return c.writable(name)
	case p == nil:
		delete(d.Local, property)
		return nil
	case !p.Inheritable() || p.Types&Kind(d) == 0 || p.Name == "mountpoint" && word(tx, d, "zoned") == "on":
		return c.refuse("the property %s cannot be inherited here", property)
	}
	list, err := c.moved(d, settings{p.Name: ""})
	if err != nil {
		return err
	}
	if list == nil {
		delete(d.Local, p.Name)
		return nil
	}
	if err := list.unmount(false); err != nil {
		return err
	}
	delete(d.Local, p.Name)
	return list.remount()
}
