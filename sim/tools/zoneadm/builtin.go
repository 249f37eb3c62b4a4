package zoneadm

import (
	"path"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// This file is what zoneadm itself does for brands that have no hook for it: removing
// a zonepath (cleanup_zonepath in usr/src/cmd/zoneadm/zoneadm.c). Cloning without a
// hook (zfs.c there) is not simulated.

// mountsBelow are the directories strictly below dir on which something is
// mounted (zonecfg_find_mounts).
func (z *zoneadm) mountsBelow(dir string) []string {
	var found []string
	for _, d := range z.tx.State.Datasets {
		if d.Mounted != dir && world.Below(dir, d.Mounted) && d.Mounted != "" {
			found = append(found, d.Mounted)
		}
	}
	slices.Sort(found)
	return found
}

// listMounts is zfm_print, each line with its own empty one.
func (z *zoneadm) listMounts(dirs []string) {
	for _, dir := range dirs {
		z.say("  %s\n", dir)
	}
}

// cleanZonepath is cleanup_zonepath: what zoneadm knows of is removed, and the
// whole if there is nothing else in it.
func (z *zoneadm) cleanZonepath() bool {
	zonepath := z.zone.Config.Zonepath
	entries, err := z.tx.Files.ReadDir(zonepath)
	if err != nil {
		return true
	}
	known := []string{"dev", "lastexited", "lu", "root", "SUNWattached.xml"}
	if z.tx.State.Mode == world.OmniOS {
		known = append(known, "etc")
	}
	for _, e := range entries {
		if slices.Contains(known, e.Name) || e.Name == ".zfs" {
			continue
		}
		for _, name := range known {
			_ = removeBelow(z.tx, path.Join(zonepath, name)) // what stays is told of
		}
		z.errf("WARNING: Unable to completely remove %s\nbecause it contains additional user data.  Only the standard directory\n"+
			"entries have been removed.", zonepath)
		return true
	}
	if d := zfs.MountedAt(z.tx, zonepath); d != nil {
		if z.destroyZonepath(d) {
			return true
		}
		for _, e := range entries {
			_ = removeBelow(z.tx, path.Join(zonepath, e.Name)) // rm -rf ZONEPATH/*
		}
		return true
	}
	return removeBelow(z.tx, zonepath) == nil
}

// destroyZonepath is destroy_zfs: snapshots go, then the file system, and the snapshot that it came from.
func (z *zoneadm) destroyZonepath(d *world.Dataset) bool {
	for _, s := range zfs.Snapshots(z.tx, d.Name) {
		if len(zfs.Clones(z.tx, s.Name)) > 0 {
			panic(world.Unsimulated{What: "promoting a clone of " + d.Name})
		}
		if zfs.Destroy(z.tx, s.Name, zfs.DestroyOptions{}) != nil {
			return false
		}
	}
	if len(zfs.Descendants(z.tx, d.Name)) > 0 {
		z.errf("zfs destroy %s failed: the dataset still has dependents", d.Name)
		return false
	}
	origin := d.Origin
	if err := zfs.Destroy(z.tx, d.Name, zfs.DestroyOptions{}); err != nil {
		z.errf("zfs destroy %s failed: %s", d.Name, err)
		return false
	}
	_ = z.tx.Files.Remove(z.zone.Config.Zonepath) // if the zone was moved once
	z.outf("The ZFS file system for this zone has been destroyed.")
	if origin != "" && len(zfs.Clones(z.tx, origin)) == 0 {
		_ = zfs.Destroy(z.tx, origin, zfs.DestroyOptions{}) // it may be held
	}
	return true
}
