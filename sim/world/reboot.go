package world

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/sledctl/sledctl/host"
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
//   - smartos boots from a RAM disk too, but keeps /etc/zones on its pool.
//     Guess: for what is simulated here it is like omnios.
//
// Everywhere processes, SMF's memory, temporary file systems and the keys of
// encrypted datasets are lost. Zones with autoboot=true are not booted here:
// that is a service's work, see sim.Sled.Reboot.
func (tx *Tx) Reboot() error {
	tx.State.Processes, tx.State.Due, tx.State.Reservoir = nil, nil, 0
	for zone := range tx.State.Services {
		tx.HaltServices(zone)
	}
	tx.ForgetKernelZones()
	tx.RebootNetwork()
	var err error
	switch {
	case tx.Forgets():
		err = tx.discardRoot()
	default:
		err = errors.Join(tx.leaveLost(), tx.RebootDatasets(), tx.wipe("/var/run", "/tmp", "/etc/svc/volatile"))
		if err == nil && tx.State.Mode == Helios {
			err = layBaseline(tx.Files) // svc:/system/omicron/baseline makes it at each boot
		}
	}
	if err != nil {
		return err
	}
	tx.State.Boots++
	tx.State.Booted = tx.Now
	tx.BootServices(GlobalZone)
	return nil
}

// leaveLost is what becomes of pools whose disks are away when the system
// boots: it knows of them from /etc/zfs/zpool.cache, and cannot open them
// (spa_load in usr/src/uts/common/fs/zfs/spa.c). None of their datasets is there.
func (tx *Tx) leaveLost() error {
	for _, p := range slices.Clone(tx.State.Pools) {
		if !p.Imported {
			continue
		}
		if p.Health = tx.measure(p); p.Unloaded || tx.openable(p) {
			continue
		}
		if err := tx.releasePool(p, true); err != nil {
			return err
		}
		p.Imported, p.Unloaded = p.Properties["cachefile"] != "none", true
	}
	return tx.openLost()
}

// openLost opens those from before the boot whose disks are back.
func (tx *Tx) openLost() error {
	for _, p := range tx.State.Pools {
		if p.Imported && p.Unloaded && tx.openable(p) {
			if err := tx.ClearPool(p.Name, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// wipe empties file systems that live in memory.
func (tx *Tx) wipe(dirs ...string) error {
	for _, dir := range dirs {
		entries, err := tx.Files.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := removeTree(tx.Files, path.Join(dir, e.Name)); err != nil {
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
func (tx *Tx) imageFiles() (map[string]imageFile, error) {
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
func (tx *Tx) discardRoot() error {
	image, err := tx.imageFiles()
	if err != nil {
		return err
	}
	if err := tx.DropZones(); err != nil {
		return err
	}
	for _, p := range slices.Clone(tx.State.Pools) {
		if !p.Imported {
			continue
		}
		if err := tx.leavePool(p); err != nil {
			return err
		}
	}
	entries, err := tx.Files.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if "/"+e.Name == aside {
			continue // What is on the pools.
		}
		if err := removeTree(tx.Files, "/"+e.Name); err != nil {
			return err
		}
	}
	if err := LayRoot(tx.Files, Options{Mode: tx.State.Mode}); err != nil {
		return err
	}
	for name, f := range image {
		if err := put(tx.Files, name, f.data, f.mode); err != nil {
			return err
		}
	}
	tx.freshRoot()
	if err := layMountpoints(tx.Files, tx.State); err != nil {
		return err
	}
	tx.State.Links = slices.DeleteFunc(tx.State.Links, func(l *Link) bool { return l.Class != "phys" })
	for _, l := range tx.State.Links {
		l.Properties = map[string]string{"mtu": "1500"}
	}
	tx.freshStack()
	return nil
}

// leavePool is a pool when the power goes: that of the root is gone, others
// are there to be imported.
func (tx *Tx) leavePool(p *Pool) error {
	if p.Name != rootPool {
		if err := tx.releasePool(p, true); err != nil || !p.Orphaned {
			return err
		}
		return tx.bury(p)
	}
	for _, d := range tx.Descendants(rootPool) {
		if d.Mounted == "/" {
			d.Mounted = "" // Nothing covers it: it is removed with the rest.
		}
	}
	return tx.DestroyPool(rootPool, true)
}
