package world

import (
	"strconv"
	"strings"
)

// Changing datasets: zfs_prop_set_list, zfs_prop_inherit, zfs_rename and
// zfs_promote in usr/src/lib/libzfs/common/libzfs_dataset.c.

// SetProperty sets one property.
func (tx *Tx) SetProperty(name, property, value string) error {
	return tx.SetProperties(name, map[string]string{property: value})
}

// SetProperties sets properties of a dataset: all or none. File systems whose
// mountpoint changes by it are unmounted before and mounted after.
func (tx *Tx) SetProperties(name string, props map[string]string) error {
	d, err := tx.OpenDataset(name, TypeDataset)
	if err != nil {
		return err
	}
	c := &checker{
		tx: tx, action: "cannot set property for '" + name + "'", types: d.Kind(), target: d,
		zoned: d.Kind() == TypeFilesystem && tx.word(d, "zoned") == "on",
	}
	checked, err := c.check(props)
	if err != nil {
		return err
	}
	if err := c.writable(name); err != nil {
		return err
	}
	tx.fitReservation(d, checked)
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
	d.apply(checked)
	if list == nil {
		return nil
	}
	if err := list.remount(); err != nil {
		return joinRefusals(err, refuse("property may be set but unable to remount filesystem"))
	}
	return nil
}

// moved is the list of file systems that settings unmount, or nil.
func (c *checker) moved(d *Dataset, s settings) (*changeList, error) {
	_, where := s["mountpoint"]
	_, zoned := s["zoned"]
	switch {
	case where:
		list := c.tx.gather(d, "mountpoint")
		if list.zonedChild(d) {
			return nil, c.refuse("child dataset with inherited mountpoint is used in a non-global zone")
		}
		return list, nil
	case zoned:
		return c.tx.gather(d, "zoned"), nil
	case s["canmount"] == "off" && d.Mounted != "":
		return c.tx.gather(d, "mountpoint"), nil
	}
	return nil, nil
}

// fitReservation keeps the reservation of a volume in step with its size, if it
// was in step before (zfs_add_synthetic_resv), and resolves "auto".
func (tx *Tx) fitReservation(d *Dataset, s settings) {
	if d.Kind() != TypeVolume {
		return
	}
	block := max(512, d.number("volblocksize"))
	size := d.number("volsize")
	inStep := d.number("refreservation") == reservationOf(size, block, tx.word(d, "copies"))
	if v, ok := s["volsize"]; ok {
		size, _ = strconv.ParseUint(v, 10, 64)
		if _, set := s["refreservation"]; !set && inStep {
			s["refreservation"] = "auto"
		}
	}
	if s["refreservation"] == "auto" {
		s["refreservation"] = strconv.FormatUint(reservationOf(size, block, tx.word(d, "copies")), 10)
	}
}

// Inherit drops a property's own value of a dataset. It is fine if there is
// none.
func (tx *Tx) Inherit(name, property string) error {
	d, err := tx.OpenDataset(name, TypeDataset)
	if err != nil {
		return err
	}
	c := &checker{tx: tx, action: "cannot inherit " + property + " for '" + name + "'"}
	p := FindDatasetProperty(property)
	switch {
	case p == nil && !UserProperty(property):
		return c.refuse("invalid property")
	case tx.suspended(name):
		return c.writable(name)
	case p == nil:
		delete(d.Local, property)
		return nil
	case p.ReadOnly():
		return c.refuse("read-only property")
	case !p.Inheritable():
		return c.refuse("property cannot be inherited")
	case p.Types&d.Kind() == 0:
		return c.refuse("property doesn't apply to datasets of this type")
	case p.Name == "mountpoint" && tx.word(d, "zoned") == "on":
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
func (tx *Tx) Rename(from, to string, recursive, force bool) error {
	d, err := tx.OpenDataset(from, TypeDataset)
	if err != nil || from == to {
		return err
	}
	if d.Kind() == TypeSnapshot {
		return tx.renameSnapshot(d, to, recursive)
	}
	c := &checker{tx: tx, action: "cannot rename to '" + to + "'", types: d.Kind()}
	if _, err := c.parent(to); err != nil {
		return err
	}
	switch {
	case poolName(from) != poolName(to) || !strings.Contains(from, "/"):
		return c.refuse("datasets must be within same pool")
	case isBelow(to, from):
		return c.refuse("New dataset name cannot be a descendant of current dataset name")
	}
	c.action = "cannot rename '" + from + "'"
	switch {
	case d.Kind() == TypeFilesystem && tx.word(d, "zoned") == "on":
		return c.refuse("dataset is used in a non-global zone")
	case d.Mounted == "/":
		return c.refuse("dataset is mounted as \"/\"")
	case tx.FindDataset(to) != nil:
		return c.refuse("dataset already exists")
	case tx.suspended(from):
		return c.writable(from)
	}
	list := tx.gather(d, "name")
	if list.zonedChild(d) {
		return c.refuse("child dataset with inherited mountpoint is used in a non-global zone")
	}
	if err := list.unmount(force); err != nil {
		return err
	}
	if err := tx.rename(d, to); err != nil {
		return err
	}
	return list.remount()
}

// rename moves a dataset and all below it to another name.
func (tx *Tx) rename(d *Dataset, to string) error {
	from := d.Name
	for _, o := range tx.selectDatasets(func(o *Dataset) bool { return o == d || isBelow(o.Name, from) }) {
		if err := tx.removeDevices(o); err != nil {
			return err
		}
		delete(tx.State.Datasets, o.Name)
		o.Name = to + o.Name[len(from):]
		tx.State.Datasets[o.Name] = o
		if err := tx.addDevices(o); err != nil {
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

func (tx *Tx) renameSnapshot(d *Dataset, to string, recursive bool) error {
	head, old, _ := strings.Cut(d.Name, "@")
	c := &checker{tx: tx, action: "cannot rename to '" + to + "'", types: TypeSnapshot}
	toHead, short, full := strings.Cut(to, "@")
	switch {
	case !full:
		short = to
	case toHead != "" && toHead != head:
		return c.refuse("snapshots must be part of same dataset")
	}
	if why := checkDatasetName(head+"@"+short, TypeSnapshot, true); why != "" {
		return c.refuse("%s", why)
	}
	heads := []string{head}
	if recursive {
		for _, below := range tx.Descendants(head) {
			if tx.FindDataset(below.Name+"@"+old) != nil {
				heads = append(heads, below.Name)
			}
		}
	}
	for _, h := range heads {
		if tx.FindDataset(h+"@"+short) == nil {
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
		if err := tx.rename(tx.State.Datasets[h+"@"+old], h+"@"+short); err != nil {
			return err
		}
	}
	return nil
}

// Promote makes a clone the one that owns the snapshots up to its origin; what
// owned them becomes its clone.
func (tx *Tx) Promote(name string) error {
	d, err := tx.OpenDataset(name, typeHeads)
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
	var moving []*Dataset
	for _, s := range tx.Snapshots(owner.Name) {
		if s.Created > origin.Created {
			continue
		}
		_, short, _ := strings.Cut(s.Name, "@")
		if tx.FindDataset(name+"@"+short) != nil {
			return c.refuse("conflicting snapshot '%s' from parent '%s'", short, d.Origin)
		}
		moving = append(moving, s)
	}
	d.Origin, owner.Origin = owner.Origin, name+"@"+last
	for _, s := range moving {
		_, short, _ := strings.Cut(s.Name, "@")
		if err := tx.rename(s, name+"@"+short); err != nil {
			return err
		}
	}
	// What they share counts for the one that owns the snapshots.
	d.Used, owner.Used = d.Used+owner.Used, 0
	return nil
}
