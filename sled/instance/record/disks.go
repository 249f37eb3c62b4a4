package record

import (
	"net/url"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
)

// AllDisks are the disks that the instance has, and those that its next incarnation has besides.
func (r Record) AllDisks() []Disk {
	if r.Later == nil {
		return r.Spec.Disks
	}
	all := slices.Clone(r.Spec.Disks)
	for _, d := range *r.Later {
		if !hasDisk(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// NextDisks are the disks of the next incarnation.
func (r Record) NextDisks() []Disk {
	if r.Later == nil {
		return r.Spec.Disks
	}
	return *r.Later
}

// WithDisks is the record with other disks: from the next incarnation on, if there is one that was
// made with those that it has.
func (r Record) WithDisks(disks []Disk) Record {
	r.Later = nil
	switch {
	case len(r.Incarnations()) == 0:
		r.Spec.Disks = disks
	case !slices.Equal(disks, r.Spec.Disks):
		r.Later = &disks
	}
	return r
}

// Renewed is the record without its present incarnation, in the place of which comes one with
// the disks of the next.
func (r Record) Renewed() Record {
	if r.Later != nil {
		r.Spec.Disks, r.Later = *r.Later, nil
	}
	return r
}

// VolumesOf are the datasets of the disks that are volumes.
func VolumesOf(disks []Disk) (datasets []string) {
	for _, d := range disks {
		if dataset, ok := d.Volume(); ok {
			datasets = append(datasets, dataset)
		}
	}
	return datasets
}

// key is what a disk is reserved by: one that a guest writes to is its alone.
func (d Disk) key() string { return naming.KeyAttached + url.PathEscape(d.Path) }

// DiskOwner is the instance that a disk is reserved for; empty when it is free.
// Until 2026-11 reservations stood below disk/, which is that of the physical
// disks: one counts as long as its instance has the disk.
func DiskOwner(view ledger.View, d Disk) (id string, err error) {
	if id = Owner(view, d.key()); id != "" {
		return id, nil
	}
	id = Owner(view, naming.KeyDisk+url.PathEscape(d.Path))
	if id == "" {
		return "", nil
	}
	r, known, err := Load(view, id)
	if err != nil || !known || !slices.ContainsFunc(r.Spec.Disks, func(has Disk) bool { return has.Path == d.Path && !has.ReadOnly }) {
		return "", err
	}
	return id, nil
}

// UsersOfVolumes names the instances that have volumes as disks, by the volumes' datasets.
func UsersOfVolumes(view ledger.View) (map[string][]string, error) {
	records, err := All(view)
	has := map[string][]string{}
	for _, r := range records {
		for _, d := range r.AllDisks() {
			if dataset, ok := d.Volume(); ok {
				has[dataset] = append(has[dataset], r.Name)
			}
		}
	}
	return has, err
}
