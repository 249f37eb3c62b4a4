package world

import (
	"fmt"
	"path"
	"slices"

	"github.com/sledctl/sledctl/host"
)

// An image is what was on a disk at an earlier time: with it a disk returns
// stale, as one does that was restored from a copy, or that lost what it had
// promised to keep.

// imageOf is where the contents of a disk's image lie.
func imageOf(d *Disk) string { return aside + "/image-" + d.Name }

func (tx *Tx) dropImage(d *Disk) error {
	d.Image = nil
	return removeTree(tx.Files, imageOf(d))
}

// TakeImage remembers what is on a disk now, instead of an earlier image, for
// RestoreImage.
func (tx *Tx) TakeImage(name string) error {
	d := tx.FindDisk(name)
	if d == nil || d.Gone {
		return fmt.Errorf("there is no disk %s", name)
	}
	pools := tx.poolsOn(d)
	if len(pools) > 1 || len(pools) == 1 && len(pools[0].Vdevs) > 1 {
		return fmt.Errorf("disk %s has a pool that lies on others too", name)
	}
	if err := tx.dropImage(d); err != nil {
		return err
	}
	image := &Image{Layout: d.Layout, Scraps: slices.Clone(d.Scraps), Serial: d.Serial}
	if len(pools) == 1 {
		if err := tx.copyPool(image, pools[0], imageOf(d)); err != nil {
			return err
		}
	}
	d.Image = image
	return nil
}

// copyPool puts a copy of a pool into an image, with its datasets as those of a
// pool that is not imported.
func (tx *Tx) copyPool(image *Image, p *Pool, dir string) error {
	pool := clonePool(p)
	pool.Imported, pool.Unloaded, pool.Ballast = false, false, 0
	image.Pool = pool
	prefix, sources := p.Name, tx.selectDatasets(func(d *Dataset) bool { return poolName(d.Name) == p.Name })
	if !p.Imported || p.Unloaded {
		prefix, sources = p.park()+p.Name, tx.parkedOf(p)
	}
	for _, d := range sources {
		copied := cloneDataset(d)
		copied.rename(prefix, p.park()+p.Name)
		copied.Mounted, copied.KeyReady, copied.Tree = "", false, ""
		if !d.empty() {
			copied.Tree = treeOf(d.id())
			if err := tx.copyTo(d, path.Join(dir, d.id())); err != nil {
				return err
			}
		}
		image.Datasets = append(image.Datasets, copied)
	}
	return nil
}

// RestoreImage puts a disk back with what was on it when its image was taken. It
// is an error if a pool on it is imported: what a running system has open does
// not become older.
func (tx *Tx) RestoreImage(name string) error {
	d := tx.FindDisk(name)
	switch {
	case d == nil:
		return fmt.Errorf("there is no disk %s", name)
	case d.Image == nil:
		return fmt.Errorf("there is no image of disk %s", name)
	}
	for _, p := range tx.poolsOn(d) {
		if p.Imported {
			return fmt.Errorf("pool %s on disk %s is imported: export it, or reboot the sled without the disk", p.Name, d.Name)
		}
	}
	if err := tx.eraseTrees(d); err != nil {
		return err
	}
	tx.eraseDisk(d)
	d.Layout, d.Scraps, d.Serial, d.Gone = d.Image.Layout, slices.Clone(d.Image.Scraps), d.Image.Serial, false
	if d.Image.Pool != nil {
		if err := tx.putPool(d); err != nil {
			return err
		}
	}
	tx.notice()
	return nil
}

// putPool puts the pool of an image on its disk.
func (tx *Tx) putPool(d *Disk) error {
	p := clonePool(d.Image.Pool)
	for _, o := range d.Image.Datasets {
		copied := cloneDataset(o)
		tx.State.Datasets[copied.Name] = copied
		if o.Tree == "" {
			continue
		}
		if err := removeTree(tx.Files, o.Tree); err != nil {
			return err
		}
		if err := host.MkdirAll(tx.Files, o.Tree, 0o755); err != nil {
			return err
		}
		if err := copyTree(tx.Files, path.Join(imageOf(d), o.id()), o.Tree, nil); err != nil {
			return err
		}
	}
	tx.State.Pools = append(tx.State.Pools, p)
	d.Pool = p.Name
	return nil
}
