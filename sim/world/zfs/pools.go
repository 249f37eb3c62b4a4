package zfs

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Pools: zpool_create, zpool_destroy, zpool_export and zpool_import in
// usr/src/lib/libzfs/common/libzfs_pool.c, and the check of devices before in
// usr/src/cmd/zpool/zpool_vdev.c.

// FindPool is the imported pool of this name, or nil. It may be one that could
// not be opened.
func FindPool(tx *world.Tx, name string) *world.Pool {
	for _, p := range tx.State.Pools {
		if p.Imported && p.Name == name {
			return p
		}
	}
	return nil
}

// OpenPool is FindPool, refusing what does not exist as zpool_open does.
func OpenPool(tx *world.Tx, name string) (*world.Pool, error) {
	switch p := FindPool(tx, name); {
	case p == nil:
		return nil, refuse("cannot open '%s': no such pool", name)
	case p.Unloaded:
		return nil, refuse("cannot open '%s': pool is currently unavailable", name)
	default:
		return p, nil
	}
}

// PoolOptions are those of zpool create.
type PoolOptions struct {
	Properties map[string]string // -o
	Root       map[string]string // of the root file system
}

// CreatePool makes a pool of a device, with its root file system. Mounting that
// is for the caller (MountAuto).
func CreatePool(tx *world.Tx, name, device string, o PoolOptions) error {
	vdev, err := resolveVdev(tx, device)
	if err != nil {
		return err
	}
	if err := cmp.Or(checkDevice(tx, vdev), checkPool(name)); err != nil {
		return err
	}
	c := &checker{tx: tx, action: "cannot create '" + name + "'", types: TypeFilesystem, keysToo: true}
	props, err := checkPoolSettings(c, o.Properties)
	if err != nil {
		return err
	}
	local, err := c.check(o.Root)
	size := VdevSize(tx, vdev)
	switch {
	case err != nil:
		return err
	case FindPool(tx, name) != nil:
		return c.refuse("pool already exists")
	case size < minPoolDevice:
		return c.refuse("one or more devices is less than the minimum size (64M)")
	}
	if err := openVdev(tx, c, vdev); err != nil {
		return err
	}
	p := &world.Pool{
		Name: name, GUID: max(1, tx.Draw("guid")), Vdevs: []string{vdev}, Size: size, Health: online, Imported: true, Properties: props,
	}
	relabel(tx, p.Vdevs, name)
	tx.State.Pools = append(tx.State.Pools, p)
	addDataset(tx, &world.Dataset{Name: name, Type: "filesystem", Used: OwnBytes, Local: local})
	return writeLabels(tx, p)
}

// minPoolDevice is SPA_MINDEVSIZE.
const minPoolDevice = 64 << 20

// relabel writes the labels of devices: they belong to this pool now, and what
// other pools had on them is lost. Without a pool, they say that theirs was
// destroyed.
func relabel(tx *world.Tx, vdevs []string, pool string) {
	forgetPools(tx, func(p *world.Pool) bool {
		return !p.Imported && slices.ContainsFunc(p.Vdevs, func(v string) bool { return slices.Contains(vdevs, v) })
	})
	for _, v := range vdevs {
		if d := DiskOf(tx, v); d != nil {
			d.Pool = pool
			d.Scraps = slices.DeleteFunc(d.Scraps, func(s string) bool { return s == v })
			if pool == "" {
				d.Scraps = append(d.Scraps, v)
			}
		}
	}
}

// DropPool removes what the system still had of a pool that has no disk.
func DropPool(tx *world.Tx, p *world.Pool) error {
	err := eraseContents(tx, p)
	forgetPools(tx, func(o *world.Pool) bool { return o == p })
	return err
}

// forgetPools removes what nothing is left of.
func forgetPools(tx *world.Tx, lost func(*world.Pool) bool) {
	tx.State.Pools = slices.DeleteFunc(tx.State.Pools, func(p *world.Pool) bool {
		if !lost(p) {
			return false
		}
		maps.DeleteFunc(tx.State.Datasets, func(name string, _ *world.Dataset) bool {
			lost := strings.HasPrefix(name, park(p))
			if lost {
				tx.TouchDataset(name)
			}
			return lost
		})
		return true
	})
}

func clonePool(p *world.Pool) *world.Pool {
	c := *p
	c.Vdevs, c.Properties = slices.Clone(p.Vdevs), maps.Clone(p.Properties)
	return &c
}

// park is what the names of the datasets of a pool that is not imported begin
// with.
func park(p *world.Pool) string { return strconv.FormatUint(p.GUID, 10) + ":" }

// disableDatasets unmounts all of a pool (zpool_disable_datasets).
func disableDatasets(tx *world.Tx, p *world.Pool, force bool) error {
	for _, d := range mountsBelow(tx, "/") {
		if PoolName(d.Name) != p.Name {
			continue
		}
		if err := Unmount(tx, d.Name, force); err != nil {
			return err
		}
	}
	if d := MountedAt(tx, "/"); d != nil && PoolName(d.Name) == p.Name {
		return refuse("cannot unmount '/': Device busy")
	}
	return nil
}

// poolBusy says whether a zone holds a volume or dataset of the pool.
func poolBusy(tx *world.Tx, p *world.Pool) bool {
	return slices.ContainsFunc(Descendants(tx, p.Name), func(d *world.Dataset) bool { return given(tx, d.Name) })
}

// poolDatasets are all of an imported pool.
func poolDatasets(tx *world.Tx, p *world.Pool) []*world.Dataset {
	return ofPool(tx, p.Name)
}

// DestroyPool destroys a pool with all that is in it.
func DestroyPool(tx *world.Tx, name string, force bool) error {
	p, err := OpenPool(tx, name)
	if err != nil {
		return err
	}
	if err := disableDatasets(tx, p, force); err != nil {
		return joinRefusals(err, refuse("could not destroy '%s': could not unmount datasets", name))
	}
	if poolBusy(tx, p) {
		return refuse("cannot destroy '%s': pool is busy", name)
	}
	for _, d := range poolDatasets(tx, p) {
		where, source := mountpoint(tx, d)
		if err := remove(tx, d); err != nil {
			return err
		}
		if source != SourceLocal && strings.HasPrefix(where, "/") {
			removeMountpoint(tx, where)
		}
	}
	tx.State.Pools = slices.DeleteFunc(tx.State.Pools, func(o *world.Pool) bool { return o == p })
	relabel(tx, p.Vdevs, "")
	return writeFileLabels(tx, p, destroyed)
}

// ExportPool makes a pool leave the sled, with its datasets.
func ExportPool(tx *world.Tx, name string) error {
	p := FindPool(tx, name)
	if p == nil {
		return refuse("cannot open '%s': no such pool", name)
	}
	if err := ReleasePool(tx, p, false); err != nil {
		return err
	}
	if p.Orphaned {
		return DropPool(tx, p)
	}
	p.Exported, p.Unloaded = true, false
	return writeLabels(tx, p)
}

// ReleasePool takes a pool and its datasets out of the running system. Its
// labels go on saying that it is in use.
func ReleasePool(tx *world.Tx, p *world.Pool, force bool) error {
	if err := disableDatasets(tx, p, force); err != nil {
		return err
	}
	if poolBusy(tx, p) {
		return refuse("cannot export '%s': pool is busy", p.Name)
	}
	for _, d := range poolDatasets(tx, p) {
		if err := removeDevices(tx, d); err != nil {
			return err
		}
		tx.TouchDataset(d.Name)
		delete(tx.State.Datasets, d.Name)
		d.KeyReady = false
		setName(d, p.Name, park(p)+p.Name)
		tx.TouchDataset(d.Name)
		tx.State.Datasets[d.Name] = d
	}
	p.Imported = false
	return nil
}

// setName changes the beginning of a dataset's name, and of its origin's.
func setName(d *world.Dataset, from, to string) {
	d.Name = to + d.Name[len(from):]
	if d.Origin != "" {
		d.Origin = to + d.Origin[len(from):]
	}
}

// ImportPool brings back a pool that is not imported. Mounting its file systems is
// for the caller (MountPool).
func ImportPool(tx *world.Tx, found Candidate) error {
	p := found.Pool
	if FindPool(tx, p.Name) != nil {
		return refuse("cannot import '%s': a pool already exists with that name", p.Name)
	}
	p.Vdevs = found.Found
	err := unpark(tx, p)
	p.Imported, p.Exported, p.Health = true, false, Measure(tx, p)
	relabel(tx, p.Vdevs, p.Name)
	return errors.Join(err, writeLabels(tx, p))
}

// MountPool mounts the file systems of a pool that are to be mounted, parents
// first. It tries all (zpool_enable_datasets).
func MountPool(tx *world.Tx, name string) error {
	return mountAll(tx, func(d *world.Dataset) bool { return PoolName(d.Name) == name })
}

// RootPool is the pool that the sled was booted from.
const RootPool = "rpool"
