package boot

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// Reboot is a power cycle of the sled, to the point where the global zone is
// up. What it leaves depends on where the system's root lies:
//
//   - on a pool (omnios) all that was made persistently is back: zones as
//     installed or configured, links and addresses that were not made with -t,
//     routes added with -p (zones(7), dladm(8), ipadm(8), route(8));
//   - on a RAM disk (helios, unless it was installed) the root is that of the image again: no zone is
//     configured, no link and no address is left, and pools are not imported
//     (omicron issue 2888, oxidecomputer/helios-omicron-brand);
//   - smartos boots from a RAM disk too, imports its pools, and mounts /var, /opt and /etc/zones
//     from the pool zones (smartos-live, overlay/generic/lib/svc/method/fs-joyent): zones are
//     as installed or configured, links and addresses as on helios.
//
// Everywhere processes, SMF's memory, temporary file systems and the keys of
// encrypted datasets are lost. Zones with autoboot=true are not booted here:
// that is a service's work, see sim.Sled.Reboot.
//
// Guess smartos-address-from-usbkey: the first link of a SmartOS has the address again that it had
// when the sled was new, as /usbkey/config says.
// Check: `ipadm show-addr` before and after a reboot
func Reboot(tx *world.Tx) error {
	tx.State.Processes, tx.State.Due, tx.State.Reservoir = nil, nil, 0
	for zone := range tx.State.Services {
		smf.HaltServices(tx, zone)
	}
	zones.ForgetKernelZones(tx)
	network.RebootNetwork(tx)
	var err error
	switch {
	case tx.State.Mode == world.SmartOS:
		err = errors.Join(dropRootPool(tx), leaveLost(tx), zfs.RebootDatasets(tx))
		if err == nil {
			err = errors.Join(discardRoot(tx), mountSmartOS(tx), wipe(tx, "/var/run"))
		}
	case tx.Forgets():
		err = errors.Join(zones.DropZones(tx), leavePools(tx), dropRootPool(tx), discardRoot(tx))
	default:
		err = errors.Join(leaveLost(tx), zfs.RebootDatasets(tx), wipe(tx, "/var/run", "/tmp", "/etc/svc/volatile"))
		if err == nil && tx.State.Mode == world.Helios {
			err = layBaseline(tx.Files) // svc:/system/omicron/baseline makes it at each boot
		}
	}
	if err != nil {
		return err
	}
	tx.State.Boots++
	tx.State.Booted = tx.Now
	smf.BootServices(tx, world.GlobalZone)
	return nil
}

// leaveLost treats pools whose disks are missing when the system
// boots: it knows of them from /etc/zfs/zpool.cache, and cannot open them
// (spa_load in usr/src/uts/common/fs/zfs/spa.c). None of their datasets is there.
func leaveLost(tx *world.Tx) error {
	for _, p := range slices.Clone(tx.State.Pools) {
		if !p.Imported {
			continue
		}
		if p.Health = zfs.Measure(tx, p); p.Unloaded || zfs.Openable(tx, p) {
			continue
		}
		if err := zfs.ReleasePool(tx, p, true); err != nil {
			return err
		}
		p.Imported, p.Unloaded = p.Properties["cachefile"] != "none", true
	}
	return openLost(tx)
}

// openLost opens those from before the boot whose disks are back.
func openLost(tx *world.Tx) error {
	for _, p := range tx.State.Pools {
		if p.Imported && p.Unloaded && zfs.Openable(tx, p) {
			if err := zfs.ClearPool(tx, p.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// wipe empties file systems that live in memory.
func wipe(tx *world.Tx, dirs ...string) error {
	for _, dir := range dirs {
		entries, err := tx.Files.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := world.RemoveTree(tx.Files, path.Join(dir, e.Name)); err != nil {
				return err
			}
		}
	}
	// Made again early in the boot (usr/src/cmd/svc/milestone/fs-minimal).
	return host.MkdirAll(tx.Files, "/var/run/zones", 0o755)
}

// imageFile is a file of the system's image.
type imageFile struct {
	data []byte
	mode fs.FileMode
}

// imageFiles are the files of State.Image that are there.
func imageFiles(tx *world.Tx) (map[string]imageFile, error) {
	all := map[string]imageFile{}
	for _, name := range tx.State.Image {
		data, err := host.ReadFile(tx.Files, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		info, err := tx.Files.Stat(name)
		if err != nil {
			return nil, err
		}
		all[name] = imageFile{data, info.Mode.Perm()}
	}
	return all, nil
}

// discardRoot is a root on a RAM disk at the next boot: what the image has.
func discardRoot(tx *world.Tx) error {
	image, err := imageFiles(tx)
	if err != nil {
		return err
	}
	if err := empty(tx, "/"); err != nil {
		return err
	}
	if err := LayRoot(tx.Files, Options{Mode: tx.State.Mode}); err != nil {
		return err
	}
	for name, f := range image {
		if err := world.Put(tx.Files, name, f.data, f.mode); err != nil {
			return err
		}
	}
	freshRoot(tx)
	if err := layMountpoints(tx.Files, tx.State); err != nil {
		return err
	}
	tx.State.Links = slices.DeleteFunc(tx.State.Links, func(l *world.Link) bool { return l.Class != "phys" })
	for _, l := range tx.State.Links {
		tx.TouchLink(l)
		l.Properties = map[string]string{"mtu": "1500"}
	}
	freshStack(tx)
	return nil
}

// empty removes what is in a directory of the root itself: not what is on the pools.
func empty(tx *world.Tx, dir string) error {
	entries, err := tx.Files.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case name == zfs.Aside || zfs.MountedAt(tx, name) != nil:
		case len(tx.MountsBelow(name)) > 0:
			err = empty(tx, name)
		default:
			err = world.RemoveTree(tx.Files, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leavePools leaves all pools but the root's as they are when the power goes: to be
// imported.
func leavePools(tx *world.Tx) error {
	for _, p := range slices.Clone(tx.State.Pools) {
		if !p.Imported || p.Name == zfs.RootPool {
			continue
		}
		if err := zfs.ReleasePool(tx, p, true); err != nil {
			return err
		}
		if p.Orphaned {
			if err := zfs.DropPool(tx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropRootPool is the pool of a root on a RAM disk when the power goes.
func dropRootPool(tx *world.Tx) error {
	for _, d := range zfs.Descendants(tx, zfs.RootPool) {
		if d.Mounted == "/" {
			tx.TouchDataset(d.Name)
			d.Mounted = "" // Nothing covers it: it is removed with the rest.
		}
	}
	return zfs.DestroyPool(tx, zfs.RootPool, true)
}

// mountSmartOS mounts what fs-joyent does.
func mountSmartOS(tx *world.Tx) error {
	for _, dir := range slices.Sorted(maps.Keys(smartOSMounts())) {
		if err := host.MkdirAll(tx.Files, dir, 0o755); err != nil {
			return err
		}
		if err := zfs.MountAt(tx, smartOSMounts()[dir], dir); err != nil {
			return err
		}
	}
	return nil
}
