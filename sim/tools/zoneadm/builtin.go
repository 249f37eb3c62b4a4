package zoneadm

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// This file is what zoneadm itself does for brands that have no hook for it:
// cloning by a snapshot @SUNWzoneN of the zonepath's file system, or by a copy,
// and removing a zonepath (usr/src/cmd/zoneadm/zfs.c, cleanup_zonepath in
// zoneadm.c).

func (z *zoneadm) cloneBuiltIn(o cloneOptions) cli.Reply {
	if o.method != "" && o.method != "copy" {
		z.printSubUsage("clone")
		return z.reply(1)
	}
	source := z.tx.FindZone(o.source).Config.Zonepath
	ok := false
	switch {
	case o.snapshot != "":
		ok = z.cloneSnapshot(o.snapshot)
	default:
		ok = o.method == "" && z.cloneZFS(source) || z.cloneCopy(source)
	}
	end := func(tx *world.Tx) cli.Reply {
		next := z.at(tx)
		if ok && next.zone != nil && next.setState(world.ZoneInstalled) {
			return next.reply(0)
		}
		return next.reply(1)
	}
	so := z.reply(1)
	so.Next = &cli.Next{After: z.tx.Latency(world.StepClone), Do: end}
	return so
}

// cloneSnapshot is -s: a snapshot that cannot be used leaves the zone
// configured.
func (z *zoneadm) cloneSnapshot(snapshot string) bool {
	owner, _, _ := strings.Cut(snapshot, "@")
	if zfs.FindDataset(z.tx, owner) == nil || !strings.Contains(snapshot, "@") {
		z.errf("unable to find path for %s.", snapshot)
		return false
	}
	if zfs.FindDataset(z.tx, snapshot) == nil {
		z.setState(world.ZoneConfigured)
		return false
	}
	name := z.zonepathName(z.zone.Config.Zonepath)
	return name != "" && z.cloneTo(snapshot, name)
}

// cloneZFS clones the file system of the source's zonepath; false if it has
// none of its own, or that of the target is taken.
func (z *zoneadm) cloneZFS(source string) bool {
	d := zfs.MountedAt(z.tx, source)
	if d == nil {
		return false
	}
	target := z.zone.Config.Zonepath
	if zfs.MountedAt(z.tx, target) != nil {
		z.errf("A file system is already mounted on %s,\npreventing use of a ZFS clone.", target)
		return false
	}
	name := z.zonepathName(target)
	if name == "" {
		return false
	}
	snapshot := d.Name + "@SUNWzone" + strconv.Itoa(z.highest(d.Name)+1)
	if zfs.SnapshotAll(z.tx, []string{snapshot}, nil) != nil {
		return false
	}
	if !z.cloneTo(snapshot, name) {
		_ = zfs.Destroy(z.tx, snapshot, zfs.DestroyOptions{}) // a copy is made instead
		return false
	}
	z.outf("Instead of copying, a ZFS clone has been created for this zone.")
	return true
}

// highest is the number of the last snapshot @SUNWzoneN, 0 if there is none.
func (z *zoneadm) highest(name string) int {
	most := 0
	for _, s := range zfs.Snapshots(z.tx, name) {
		if digits, ok := strings.CutPrefix(s.Name, name+"@SUNWzone"); ok {
			n, _ := strconv.Atoi(digits) // atoi: 0 for what is no number
			most = max(most, n)
		}
	}
	return most
}

func (z *zoneadm) cloneTo(snapshot, name string) bool {
	z.outf("Cloning snapshot %s", snapshot)
	if err := zfs.Clone(z.tx, snapshot, name, map[string]string{"sharenfs": "off"}); err != nil {
		z.errf("%s", err)
		return false
	}
	if err := zfs.MountAuto(z.tx, name); err != nil {
		z.errf("%s\ncould not mount ZFS clone %s", err, name)
		return false
	}
	for _, name := range []string{"SUNWattached.xml", "SUNWdetached.xml"} {
		_ = z.tx.Files.Remove(z.zone.Config.Zonepath + "/" + name) // zonecfg_rm_detached
	}
	return true
}

// cloneCopy copies the zonepath.
func (z *zoneadm) cloneCopy(source string) bool {
	target := z.zone.Config.Zonepath
	if mounts := z.mountsBelow(source); len(mounts) > 0 {
		z.say("These file systems are mounted on subdirectories of %s.\n", source)
		z.listMounts(mounts)
		return false
	}
	z.createZonepath()
	z.outf("Copying %s...", source)
	if err := copyAll(z.tx.Files, source, target, nil); err != nil {
		z.say("'copy' failed with exit code 1.")
		z.errf("\nThe copy failed.\nMore information can be found in /var/log/zoneAAAa00001")
		return false
	}
	return true
}

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

// destroyZonepath is destroy_zfs: the youngest clone is promoted, snapshots go,
// then the file system, and the snapshot that it came from.
func (z *zoneadm) destroyZonepath(d *world.Dataset) bool {
	if !z.promoteClone(d) {
		return false
	}
	for _, s := range zfs.Snapshots(z.tx, d.Name) {
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

// promoteClone is for what has clones: a file system that they hang on stays.
func (z *zoneadm) promoteClone(d *world.Dataset) bool {
	for _, s := range zfs.Snapshots(z.tx, d.Name) {
		if len(zfs.Clones(z.tx, s.Name)) > 0 {
			z.errf("not simulated: promoting a clone of %s", d.Name)
			return false
		}
	}
	return true
}
