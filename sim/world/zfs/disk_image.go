package zfs

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
)

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
