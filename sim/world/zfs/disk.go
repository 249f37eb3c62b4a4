package zfs

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// What an operator does to the disks of the sled, and what happens to them.

// FindDisk is the disk with this name or serial number, or nil.
func FindDisk(tx *world.Tx, name string) *world.Disk {
	i := slices.IndexFunc(tx.State.Disks, func(d *world.Disk) bool { return d.Name == name || strings.EqualFold(d.Serial, name) })
	if i < 0 {
		return nil
	}
	return tx.State.Disks[i]
}

// DiskState says what is the matter with a disk: gone, failing, full, or ok. Full
// is one whose pool FillDisk has filled.
func DiskState(tx *world.Tx, d *world.Disk) string {
	switch {
	case d.Gone:
		return "gone"
	case d.Failing:
		return "failing"
	case slices.ContainsFunc(poolsOn(tx, d), func(p *world.Pool) bool { return p.Ballast > 0 }):
		return "full"
	}
	return "ok"
}

// LoseDisk takes a disk out of the sled, by its name or serial number. A pool
// that cannot do without it is suspended. False if there is no such disk.
func LoseDisk(tx *world.Tx, name string) bool {
	return change(tx, name, func(d *world.Disk) { d.Gone = true })
}

// InsertDisk puts a disk back as it was when it was taken out. A pool that is
// suspended stays so until zpool clear. False if there is no such disk.
func InsertDisk(tx *world.Tx, name string) bool {
	return change(tx, name, func(d *world.Disk) { d.Gone = false })
}

// FailDisk makes all input and output of a disk end with EIO.
func FailDisk(tx *world.Tx, name string) bool {
	return change(tx, name, func(d *world.Disk) { d.Failing = true })
}

// HealDisk ends what FailDisk and FillDisk did. A pool that is suspended stays so
// until zpool clear.
func HealDisk(tx *world.Tx, name string) bool {
	return change(tx, name, func(d *world.Disk) {
		d.Failing = false
		for _, p := range poolsOn(tx, d) {
			p.Ballast = 0
		}
	})
}

func change(tx *world.Tx, name string, do func(*world.Disk)) bool {
	d := FindDisk(tx, name)
	if d != nil {
		do(d)
		notice(tx)
	}
	return d != nil
}

// poolsOn are the pools that have a part of the disk.
func poolsOn(tx *world.Tx, d *world.Disk) []*world.Pool {
	var found []*world.Pool
	for _, p := range tx.State.Pools {
		if !p.Orphaned && slices.ContainsFunc(p.Vdevs, func(v string) bool { return DiskOf(tx, v) == d }) {
			found = append(found, p)
		}
	}
	return found
}

// FillDisk leaves so many bytes free in the pools on a disk.
func FillDisk(tx *world.Tx, name string, free uint64) error {
	d := FindDisk(tx, name)
	if d == nil {
		return fmt.Errorf("there is no disk %s", name)
	}
	found := false
	for _, p := range poolsOn(tx, d) {
		if !p.Imported || Lost(p) {
			continue
		}
		found, p.Ballast = true, 1 // so that files are counted
		left := NewSurvey(tx).Bytes(tx.State.Datasets[p.Name], "available")
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
func ReplaceDisk(tx *world.Tx, name string) error {
	d := FindDisk(tx, name)
	if d == nil {
		return fmt.Errorf("there is no disk %s", name)
	}
	for _, p := range poolsOn(tx, d) {
		switch {
		case p.Imported && !Lost(p):
			return fmt.Errorf("disk %s is in use by pool %s: remove it first", d.Name, p.Name)
		case p.Imported:
			p.Orphaned = true
		}
	}
	err := errors.Join(dropImage(tx, d), eraseTrees(tx, d))
	eraseDisk(tx, d)
	if d.Kind == "m2" {
		d.Layout = LayoutM2 // it comes from the factory, as the first one did
	}
	d.Serial, d.Gone, d.Failing = SerialNumber(tx), false, false
	notice(tx)
	return err
}

// eraseTrees removes the contents of the file systems on a disk.
func eraseTrees(tx *world.Tx, d *world.Disk) (err error) {
	for _, p := range poolsOn(tx, d) {
		err = errors.Join(err, eraseContents(tx, p))
	}
	return err
}

// eraseContents removes those of a pool that is not imported.
func eraseContents(tx *world.Tx, p *world.Pool) (err error) {
	for _, d := range parkedOf(tx, p) {
		err = errors.Join(err, world.RemoveTree(tx.Files, treeOf(id(d))))
	}
	return err
}

// parkedOf are the datasets of a pool that is not imported.
func parkedOf(tx *world.Tx, p *world.Pool) []*world.Dataset {
	var found []*world.Dataset
	for name, d := range tx.State.Datasets {
		if strings.HasPrefix(name, park(p)) {
			found = append(found, d)
		}
	}
	slices.SortFunc(found, CompareDatasets)
	return found
}

func SerialNumber(tx *world.Tx) string { return fmt.Sprintf("A%07X", uint32(tx.Draw("serial"))>>4) }

// An image is what was on a disk at an earlier time: with it a disk returns
// stale, as one does that was restored from a copy, or that lost what it had
// promised to keep.

// imageOf is where the contents of a disk's image lie.
func imageOf(d *world.Disk) string { return Aside + "/image-" + d.Name }

func dropImage(tx *world.Tx, d *world.Disk) error {
	d.Image = nil
	return world.RemoveTree(tx.Files, imageOf(d))
}

// TakeImage remembers what is on a disk now, instead of an earlier image, for
// RestoreImage.
func TakeImage(tx *world.Tx, name string) error {
	d := FindDisk(tx, name)
	if d == nil || d.Gone {
		return fmt.Errorf("there is no disk %s", name)
	}
	err := dropImage(tx, d)
	d.Image = &world.Image{Layout: d.Layout, Scraps: slices.Clone(d.Scraps), Serial: d.Serial}
	for _, p := range poolsOn(tx, d) { // one at most
		err = errors.Join(err, copyPool(tx, d.Image, p, imageOf(d)))
	}
	return err
}

// copyPool puts a copy of a pool into an image, with its datasets as those of a
// pool that is not imported.
func copyPool(tx *world.Tx, image *world.Image, p *world.Pool, dir string) (err error) {
	pool := clonePool(p)
	pool.Imported, pool.Unloaded, pool.Ballast = false, false, 0
	image.Pool = pool
	prefix, sources := p.Name, poolDatasets(tx, p)
	if !p.Imported || p.Unloaded {
		prefix, sources = park(p)+p.Name, parkedOf(tx, p)
	}
	for _, d := range sources {
		copied := cloneDataset(d)
		setName(copied, prefix, park(p)+p.Name)
		copied.Mounted, copied.KeyReady, copied.Tree = "", false, ""
		if !empty(d) {
			copied.Tree = treeOf(id(d))
			err = errors.Join(err, copyTo(tx, d, path.Join(dir, id(d))))
		}
		image.Datasets = append(image.Datasets, copied)
	}
	return err
}

// RestoreImage puts a disk back with what was on it when its image was taken. It
// is an error if a pool on it is imported: what a running system has open does
// not become older.
func RestoreImage(tx *world.Tx, name string) error {
	d := FindDisk(tx, name)
	switch {
	case d == nil:
		return fmt.Errorf("there is no disk %s", name)
	case d.Image == nil:
		return fmt.Errorf("there is no image of disk %s", name)
	}
	for _, p := range poolsOn(tx, d) {
		if p.Imported {
			return fmt.Errorf("pool %s on disk %s is imported: export it, or reboot the sled without the disk", p.Name, d.Name)
		}
	}
	err := eraseTrees(tx, d)
	eraseDisk(tx, d)
	d.Layout, d.Scraps, d.Serial, d.Gone = d.Image.Layout, slices.Clone(d.Image.Scraps), d.Image.Serial, false
	if d.Image.Pool != nil {
		err = errors.Join(err, putPool(tx, d))
	}
	notice(tx)
	return err
}

// putPool puts the pool of an image on its disk.
func putPool(tx *world.Tx, d *world.Disk) (err error) {
	p := clonePool(d.Image.Pool)
	for _, o := range d.Image.Datasets {
		copied := cloneDataset(o)
		tx.TouchDataset(copied.Name)
		tx.State.Datasets[copied.Name] = copied
		if o.Tree == "" {
			continue
		}
		err = errors.Join(err, world.RemoveTree(tx.Files, o.Tree), copyWhole(tx.Files, path.Join(imageOf(d), id(o)), o.Tree, nil))
	}
	tx.State.Pools = append(tx.State.Pools, p)
	d.Pool = p.Name
	return err
}
