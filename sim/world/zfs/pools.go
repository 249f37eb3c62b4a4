package zfs

import (
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
	Force      bool              // -f: also devices of a pool that is not imported
	Properties map[string]string // -o
	Root       map[string]string // -O: of the root file system
}

// CreatePool makes a pool of devices, with its root file system. Mounting that
// is for the caller (MountAuto).
func CreatePool(tx *world.Tx, name string, vdevs []string, o PoolOptions) error {
	vdevs, err := resolveVdevs(tx, vdevs)
	if err != nil {
		return err
	}
	size, err := checkVdevs(tx, vdevs, o.Force)
	if err != nil {
		return err
	}
	c := &checker{tx: tx, action: "cannot create '" + name + "'", types: TypeFilesystem, keysToo: true}
	if why := CheckPoolName(name); why != "" {
		return c.refuse("%s\npool name may have been omitted", why)
	}
	props, err := checkPoolSettings(c, o.Properties)
	switch {
	case err != nil:
		return err
	case props["readonly"] != "":
		return c.refuse("property 'readonly' can only be set at import time")
	}
	local, err := c.check(o.Root)
	switch {
	case err != nil:
		return err
	case FindPool(tx, name) != nil:
		return c.refuse("pool already exists")
	case size < minPoolDevice:
		return c.refuse("one or more devices is less than the minimum size (64M)")
	}
	if err := openVdevs(tx, c, vdevs); err != nil {
		return err
	}
	p := &world.Pool{
		Name: name, GUID: max(1, tx.Draw("guid")), Vdevs: vdevs, Size: size, Health: "ONLINE", Imported: true, Properties: props,
	}
	relabel(tx, p.Vdevs, name)
	tx.State.Pools = append(tx.State.Pools, p)
	if err := writeLabels(tx, p); err != nil {
		return err
	}
	addDataset(tx, &world.Dataset{Name: name, Type: "filesystem", Used: OwnBytes, Local: local})
	return nil
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
	if err := eraseContents(tx, p); err != nil {
		return err
	}
	forgetPools(tx, func(o *world.Pool) bool { return o == p })
	return nil
}

// forgetPools removes what nothing is left of.
func forgetPools(tx *world.Tx, lost func(*world.Pool) bool) {
	tx.State.Pools = slices.DeleteFunc(tx.State.Pools, func(p *world.Pool) bool {
		if !lost(p) {
			return false
		}
		maps.DeleteFunc(tx.State.Datasets, func(name string, _ *world.Dataset) bool { return strings.HasPrefix(name, park(p)) })
		return true
	})
}

// checkVdevs looks at the devices of a new pool and adds up their size.
func checkVdevs(tx *world.Tx, vdevs []string, force bool) (uint64, error) {
	var total uint64
	for _, device := range vdevs {
		if err := checkDevice(tx, device, force); err != nil {
			return 0, err
		}
		total += VdevSize(tx, device)
	}
	return total, nil
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
		if PoolName(d.Name) == p.Name {
			if err := Unmount(tx, d.Name, force); err != nil {
				return err
			}
		}
	}
	if d := MountedAt(tx, "/"); d != nil && PoolName(d.Name) == p.Name {
		return refuse("cannot unmount '/': Device busy")
	}
	return nil
}

// poolBusy says whether a zone holds a volume or dataset of the pool.
func poolBusy(tx *world.Tx, p *world.Pool) bool {
	for _, d := range append(Descendants(tx, p.Name), FindDataset(tx, p.Name)) {
		if d != nil && (volumeBusy(tx, d.Name) || lent(tx, d.Name)) {
			return true
		}
	}
	return false
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
	for _, d := range SelectDatasets(tx, func(d *world.Dataset) bool { return PoolName(d.Name) == name }) {
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
func ExportPool(tx *world.Tx, name string, force bool) error {
	p := FindPool(tx, name)
	if p == nil {
		return refuse("cannot open '%s': no such pool", name)
	}
	if err := ReleasePool(tx, p, force); err != nil {
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
	for _, d := range SelectDatasets(tx, func(d *world.Dataset) bool { return PoolName(d.Name) == p.Name }) {
		if err := removeDevices(tx, d); err != nil {
			return err
		}
		delete(tx.State.Datasets, d.Name)
		d.KeyReady = false
		setName(d, p.Name, park(p)+p.Name)
		tx.State.Datasets[d.Name] = d
	}
	p.Imported = false
	delete(p.Properties, "altroot")
	delete(p.Properties, "readonly")
	return nil
}

// setName changes the beginning of a dataset's name, and of its origin's.
func setName(d *world.Dataset, from, to string) {
	d.Name = to + d.Name[len(from):]
	if d.Origin != "" {
		d.Origin = to + d.Origin[len(from):]
	}
}

// ImportPool brings back a pool that is not imported, under a name.
// Mounting its file systems is for the caller (MountPool).
func ImportPool(tx *world.Tx, found Candidate, name string, props map[string]string) error {
	p := found.Pool
	c := &checker{tx: tx, action: "cannot import '" + p.Name + "'"}
	checked, err := checkPoolSettings(c, props)
	switch {
	case err != nil:
		return err
	case FindPool(tx, name) != nil:
		return c.refuse("a pool already exists with that name")
	}
	if why := CheckPoolName(name); why != "" {
		return c.refuse("%s", why)
	}
	p.Vdevs = found.Found
	if err := unpark(tx, p, name); err != nil {
		return err
	}
	p.Name, p.Imported, p.Exported, p.Health = name, true, false, Measure(tx, p)
	setPoolProperties(p, checked)
	relabel(tx, p.Vdevs, name)
	return writeLabels(tx, p)
}

// MountPool mounts the file systems of a pool that are to be mounted, parents
// first. It tries all (zpool_enable_datasets).
func MountPool(tx *world.Tx, name string) error {
	var failed error
	for _, d := range SelectDatasets(tx, func(d *world.Dataset) bool { return PoolName(d.Name) == name && d.Mounted == "" }) {
		if Kind(d) == TypeFilesystem {
			failed = joinRefusals(failed, MountWith(tx, d.Name, MountOptions{Quiet: true}))
		}
	}
	return failed
}

// RootPool is the pool that the sled was booted from.
const RootPool = "rpool"
