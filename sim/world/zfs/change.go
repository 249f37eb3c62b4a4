package zfs

import (
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Changing datasets: zfs_prop_set_list, zfs_prop_inherit, zfs_rename and
// zfs_promote in usr/src/lib/libzfs/common/libzfs_dataset.c.

// SetProperty sets one property.
func SetProperty(tx *world.Tx, name, property, value string) error {
	return SetProperties(tx, name, map[string]string{property: value})
}

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
	fitReservation(tx, d, checked)
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

// fitReservation keeps the reservation of a volume in step with its size, if it
// was in step before (zfs_add_synthetic_resv), and resolves "auto".
func fitReservation(tx *world.Tx, d *world.Dataset, s settings) {
	if Kind(d) != TypeVolume {
		return
	}
	block := max(512, number(d, "volblocksize"))
	size := number(d, "volsize")
	inStep := number(d, "refreservation") == reservationOf(size, block, word(tx, d, "copies"))
	if v, ok := s["volsize"]; ok {
		size, _ = strconv.ParseUint(v, 10, 64)
		if _, set := s["refreservation"]; !set && inStep {
			s["refreservation"] = "auto"
		}
	}
	if s["refreservation"] == "auto" {
		s["refreservation"] = strconv.FormatUint(reservationOf(size, block, word(tx, d, "copies")), 10)
	}
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
	case p.ReadOnly():
		return c.refuse("read-only property")
	case !p.Inheritable():
		return c.refuse("property cannot be inherited")
	case p.Types&Kind(d) == 0:
		return c.refuse("property doesn't apply to datasets of this type")
	case p.Name == "mountpoint" && word(tx, d, "zoned") == "on":
		return c.refuse("dataset is used in a non-global zone")
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

// Rename gives a dataset another name, in the same pool; a snapshot keeps its
// dataset. With recursive the snapshots of that name of all below are renamed
// too. What is mounted moves to where it then belongs.
func Rename(tx *world.Tx, from, to string, recursive, force bool) error {
	d, err := OpenDataset(tx, from, TypeDataset)
	if err != nil || from == to {
		return err
	}
	if Kind(d) == TypeSnapshot {
		return renameSnapshot(tx, d, to, recursive)
	}
	c := &checker{tx: tx, action: "cannot rename to '" + to + "'", types: Kind(d)}
	if _, err := c.parent(to); err != nil {
		return err
	}
	switch {
	case PoolName(from) != PoolName(to) || !strings.Contains(from, "/"):
		return c.refuse("datasets must be within same pool")
	case isBelow(to, from):
		return c.refuse("New dataset name cannot be a descendant of current dataset name")
	}
	c.action = "cannot rename '" + from + "'"
	switch {
	case Kind(d) == TypeFilesystem && word(tx, d, "zoned") == "on":
		return c.refuse("dataset is used in a non-global zone")
	case d.Mounted == "/":
		return c.refuse("dataset is mounted as \"/\"")
	case FindDataset(tx, to) != nil:
		return c.refuse("dataset already exists")
	case suspended(tx, from):
		return c.writable(from)
	}
	list := gather(tx, d, "name")
	if list.zonedChild(d) {
		return c.refuse("child dataset with inherited mountpoint is used in a non-global zone")
	}
	if err := list.unmount(force); err != nil {
		return err
	}
	if err := rename(tx, d, to); err != nil {
		return err
	}
	return list.remount()
}

// rename moves a dataset and all below it to another name.
func rename(tx *world.Tx, d *world.Dataset, to string) error {
	from := d.Name
	for _, o := range SelectDatasets(tx, func(o *world.Dataset) bool { return o == d || isBelow(o.Name, from) }) {
		if err := removeDevices(tx, o); err != nil {
			return err
		}
		delete(tx.State.Datasets, o.Name)
		o.Name = to + o.Name[len(from):]
		tx.State.Datasets[o.Name] = o
		if err := addDevices(tx, o); err != nil {
			return err
		}
	}
	for _, o := range tx.State.Datasets {
		if o.Origin == from || isBelow(o.Origin, from) {
			o.Origin = to + o.Origin[len(from):]
		}
	}
	return nil
}

func renameSnapshot(tx *world.Tx, d *world.Dataset, to string, recursive bool) error {
	head, old, _ := strings.Cut(d.Name, "@")
	c := &checker{tx: tx, action: "cannot rename to '" + to + "'", types: TypeSnapshot}
	toHead, short, full := strings.Cut(to, "@")
	switch {
	case !full:
		short = to
	case toHead != "" && toHead != head:
		return c.refuse("snapshots must be part of same dataset")
	}
	if why := CheckDatasetName(head+"@"+short, TypeSnapshot, true); why != "" {
		return c.refuse("%s", why)
	}
	heads := []string{head}
	if recursive {
		for _, below := range Descendants(tx, head) {
			if FindDataset(tx, below.Name+"@"+old) != nil {
				heads = append(heads, below.Name)
			}
		}
	}
	for _, h := range heads {
		if FindDataset(tx, h+"@"+short) == nil {
			continue
		}
		c.action = "cannot rename '" + h + "@" + old + "'"
		if recursive {
			return c.refuse("a child dataset already has a snapshot with the new name")
		}
		return c.refuse("dataset already exists")
	}
	c.action = "cannot rename '" + d.Name + "'"
	if err := c.writable(head); err != nil {
		return err
	}
	for _, h := range heads {
		if err := rename(tx, tx.State.Datasets[h+"@"+old], h+"@"+short); err != nil {
			return err
		}
	}
	return nil
}

// Promote makes a clone the one that owns the snapshots up to its origin; what
// owned them becomes its clone.
func Promote(tx *world.Tx, name string) error {
	d, err := OpenDataset(tx, name, typeHeads)
	if err != nil {
		return err
	}
	c := &checker{tx: tx, action: "cannot promote '" + name + "'"}
	if d.Origin == "" {
		return c.refuse("not a cloned filesystem")
	}
	if err := c.writable(name); err != nil {
		return err
	}
	origin := tx.State.Datasets[d.Origin]
	owner := tx.State.Datasets[parentName(d.Origin)]
	_, last, _ := strings.Cut(d.Origin, "@")
	var moving []*world.Dataset
	for _, s := range Snapshots(tx, owner.Name) {
		if s.Created > origin.Created {
			continue
		}
		_, short, _ := strings.Cut(s.Name, "@")
		if FindDataset(tx, name+"@"+short) != nil {
			return c.refuse("conflicting snapshot '%s' from parent '%s'", short, d.Origin)
		}
		moving = append(moving, s)
	}
	d.Origin, owner.Origin = owner.Origin, name+"@"+last
	for _, s := range moving {
		_, short, _ := strings.Cut(s.Name, "@")
		if err := rename(tx, s, name+"@"+short); err != nil {
			return err
		}
	}
	// What they share counts for the one that owns the snapshots.
	d.Used, owner.Used = d.Used+owner.Used, 0
	return nil
}
