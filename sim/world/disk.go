package world

import (
	"fmt"
	"slices"
	"strings"
)

// What an operator does to the disks of the sled, and what happens to them.

// FindDisk is the disk with this name or serial number, or nil.
func (tx *Tx) FindDisk(name string) *Disk {
	i := slices.IndexFunc(tx.State.Disks, func(d *Disk) bool { return d.Name == name || strings.EqualFold(d.Serial, name) })
	if i < 0 {
		return nil
	}
	return tx.State.Disks[i]
}

// DiskState says what is the matter with a disk: gone, failing, full, or ok. Full
// is one whose pool FillDisk has filled.
func (tx *Tx) DiskState(d *Disk) string {
	switch {
	case d.Gone:
		return "gone"
	case d.Failing:
		return "failing"
	case slices.ContainsFunc(tx.poolsOn(d), func(p *Pool) bool { return p.Ballast > 0 }):
		return "full"
	}
	return "ok"
}

// LoseDisk takes a disk out of the sled, by its name or serial number. A pool
// that cannot do without it is suspended. False if there is no such disk.
func (tx *Tx) LoseDisk(name string) bool {
	d := tx.FindDisk(name)
	if d != nil {
		d.Gone = true
		tx.notice()
	}
	return d != nil
}

// InsertDisk puts a disk back as it was when it was taken out. A pool that is
// suspended stays so until zpool clear. False if there is no such disk.
func (tx *Tx) InsertDisk(name string) bool {
	d := tx.FindDisk(name)
	if d != nil {
		d.Gone = false
		tx.notice()
	}
	return d != nil
}

// FailDisk makes all input and output of a disk end with EIO.
func (tx *Tx) FailDisk(name string) bool {
	d := tx.FindDisk(name)
	if d != nil {
		d.Failing = true
		tx.notice()
	}
	return d != nil
}

// HealDisk ends what FailDisk and FillDisk did. A pool that is suspended stays so
// until zpool clear.
func (tx *Tx) HealDisk(name string) bool {
	d := tx.FindDisk(name)
	if d == nil {
		return false
	}
	d.Failing = false
	for _, p := range tx.poolsOn(d) {
		p.Ballast = 0
	}
	tx.notice()
	return true
}

// ReturnDisk is InsertDisk and HealDisk, and zpool clear of the pools that had
// lost a disk.
func (tx *Tx) ReturnDisk(name string) bool {
	if !tx.InsertDisk(name) || !tx.HealDisk(name) {
		return false
	}
	for _, p := range tx.State.Pools {
		if p.Imported && p.Lost() {
			_ = tx.ClearPool(p.Name, "") // What another disk keeps down stays down.
		}
	}
	return true
}

// poolsOn are the pools that have a part of the disk.
func (tx *Tx) poolsOn(d *Disk) []*Pool {
	var found []*Pool
	for _, p := range tx.State.Pools {
		if !p.Orphaned && slices.ContainsFunc(p.Vdevs, func(v string) bool { return !vdevWord(v) && tx.DiskOf(v) == d }) {
			found = append(found, p)
		}
	}
	return found
}

// FillDisk leaves so many bytes free in the pools on a disk.
func (tx *Tx) FillDisk(name string, free uint64) error {
	d := tx.FindDisk(name)
	if d == nil {
		return fmt.Errorf("there is no disk %s", name)
	}
	found := false
	for _, p := range tx.poolsOn(d) {
		if !p.Imported || p.Lost() {
			continue
		}
		found, p.Ballast = true, 1 // so that files are counted
		left := tx.Survey().bytes(tx.State.Datasets[p.Name], "available")
		p.Ballast = 1 + minus(left, free)
	}
	if !found {
		return fmt.Errorf("there is no imported pool on disk %s", name)
	}
	return nil
}

// ReplaceDisk puts a new disk, which is blank, into the slot of another, which is
// gone for good. A pool that the running system has open there stays suspended,
// whatever zpool clear says, until it is exported or the system reboots. It is an
// error while the old disk is in use.
func (tx *Tx) ReplaceDisk(name string) error {
	d := tx.FindDisk(name)
	if d == nil {
		return fmt.Errorf("there is no disk %s", name)
	}
	for _, p := range tx.poolsOn(d) {
		switch {
		case p.Imported && !p.Lost():
			return fmt.Errorf("disk %s is in use by pool %s: remove it first", d.Name, p.Name)
		case p.Imported:
			p.Orphaned = true
		}
	}
	if err := tx.dropImage(d); err != nil {
		return err
	}
	if err := tx.eraseTrees(d); err != nil {
		return err
	}
	tx.eraseDisk(d)
	if d.Kind == "m2" {
		d.Layout = LayoutM2 // it comes from the factory, as the first one did
	}
	d.Serial, d.Gone, d.Failing = tx.serialNumber(), false, false
	tx.notice()
	return nil
}

// eraseTrees removes the contents of the file systems on a disk.
func (tx *Tx) eraseTrees(d *Disk) error {
	for _, p := range tx.poolsOn(d) {
		if err := tx.eraseContents(p); err != nil {
			return err
		}
	}
	return nil
}

// eraseContents removes those of a pool that is not imported.
func (tx *Tx) eraseContents(p *Pool) error {
	for _, d := range tx.parkedOf(p) {
		if err := removeTree(tx.Files, treeOf(d.id())); err != nil {
			return err
		}
	}
	return nil
}

// parkedOf are the datasets of a pool that is not imported.
func (tx *Tx) parkedOf(p *Pool) []*Dataset {
	var found []*Dataset
	for name, d := range tx.State.Datasets {
		if strings.HasPrefix(name, p.park()) {
			found = append(found, d)
		}
	}
	slices.SortFunc(found, CompareDatasets)
	return found
}

func (tx *Tx) serialNumber() string { return fmt.Sprintf("A%07X", uint32(tx.Draw("serial"))>>4) }
