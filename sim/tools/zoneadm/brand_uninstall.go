package zoneadm

import (
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file uninstalls a zone with boot environments: omniosorg/pkg5
// src/brand/sparse/uninstall and ipkg/uninstall, which share
// usr/src/lib/brand/shared/zone/uninstall.ksh of the gate. It destroys the
// roots that belong to the running boot environment. If clones of one live
// elsewhere, the last clone of its youngest snapshot is promoted first, which is
// not simulated.

// uninstallEnvironments is the hook. Its end is not told by its options: it is
// asked before.
func uninstallEnvironments(h *hook, args []string) int {
	options, operands := cli.Getopt(args, "FhHnv", nil)
	u := &uninstaller{hook: h}
	seen := map[byte]bool{}
	for _, o := range options {
		if o.Bad != "" || seen[o.Letter] {
			return u.misused()
		}
		seen[o.Letter] = true
	}
	if len(operands) > 0 {
		return u.misused()
	}
	if seen['h'] || seen['H'] || seen['n'] || seen['v'] {
		panic(world.Unsimulated{})
	}
	return u.run()
}

type uninstaller struct {
	*hook
}

func (u *uninstaller) misused() int {
	u.errf("Error: invalid usage\nUsage: uninstall: [-hFn]")
	return hookUsage
}

func (u *uninstaller) run() int {
	be := zones.BootEnvironment(u.tx)
	if be == "" {
		u.outf(textNoEnvironment)
	}
	ds := u.zonepathDataset(u.path)
	if ds == "" {
		u.removeZonepath()
		return hookOK
	}
	if zfs.FindDataset(u.tx, ds+"/ROOT") == nil {
		if len(zfs.Descendants(u.tx, ds)) == 0 && !u.destroy(ds) {
			return hookFatal
		}
		u.removeZonepath()
		return hookOK
	}
	roots := u.environments(ds, be)
	if u.brand.overlays != nil {
		if len(roots) != 1 {
			// The number is not put in: the text is in single quotes there.
			u.outf("Error: Found $fs_all_c top-level filesystems.\n  %s", strings.Join(roots, " "))
			return hookFatal
		}
		if !u.promoteOverlays(ds, roots[0]) {
			return hookFatal
		}
	}
	for _, root := range roots {
		if !u.destroyRoot(root) {
			return hookFatal
		}
	}
	// Roots of other boot environments may be left, and then so is the rest.
	for _, name := range []string{ds + "/ROOT", ds} {
		if len(zfs.Descendants(u.tx, name)) == 0 && !u.destroy(name) {
			return hookFatal
		}
	}
	u.removeZonepath()
	return hookOK
}

// environments are the roots of the running boot environment.
func (u *uninstaller) environments(ds, be string) []string {
	var roots []string
	for _, d := range zfs.Children(u.tx, ds+"/ROOT") {
		if parent, _ := zfs.Property(u.tx, d.Name, propParent); be != "" && parent == be && zfs.Kind(d) == zfs.TypeFilesystem {
			roots = append(roots, d.Name)
		}
	}
	return roots
}

// destroy is zfs_destroy: with all that is below, and then the snapshot that
// it was cloned from, if nothing else came from it.
func (u *uninstaller) destroy(name string) bool {
	origin := ""
	if d := zfs.FindDataset(u.tx, name); d != nil {
		origin = d.Origin
	}
	if !u.zfs("destroy", "-r", name) {
		u.errf("Error: destroying ZFS dataset.")
		return false
	}
	if origin != "" {
		_ = zfs.Destroy(u.tx, origin, zfs.DestroyOptions{}) // others may have been cloned from it
	}
	return true
}

// promoteOverlays is what sparse/uninstall does first: other roots of the same
// zone have clones of the overlays.
func (u *uninstaller) promoteOverlays(ds, root string) bool {
	for _, o := range u.brand.overlays {
		snapshots := zfs.Snapshots(u.tx, root+"/"+o.dataset)
		if len(snapshots) == 0 {
			continue
		}
		youngest := snapshots[len(snapshots)-1]
		if slices.ContainsFunc(zfs.Clones(u.tx, youngest.Name), func(d *world.Dataset) bool { return strings.HasPrefix(d.Name, ds+"/ROOT/") }) {
			panic(world.Unsimulated{What: "uninstall of a zone with other boot environments, which are promoted"})
		}
	}
	return true
}

// destroyRoot is destroy_zone_dataset.
func (u *uninstaller) destroyRoot(root string) bool {
	snapshots := zfs.Snapshots(u.tx, root)
	if len(snapshots) == 0 {
		return u.destroy(root)
	}
	if slices.ContainsFunc(append(zfs.Descendants(u.tx, root), zfs.FindDataset(u.tx, root)), func(d *world.Dataset) bool { return u.hasClones(d.Name, root) }) {
		panic(world.Unsimulated{What: "uninstall of a zone that others were cloned from, which are promoted"})
	}
	return u.destroy(root)
}

// hasClones tells whether snapshots of a dataset have clones that do not lie
// below the root that goes.
func (u *uninstaller) hasClones(name, root string) bool {
	for _, s := range zfs.Snapshots(u.tx, name) {
		if slices.ContainsFunc(zfs.Clones(u.tx, s.Name), func(d *world.Dataset) bool { return !strings.HasPrefix(d.Name, root+"/") }) {
			return true
		}
	}
	return false
}

// removeZonepath is rm_zonepath: what the brand knows, and the directory if
// nothing else is in it.
func (u *uninstaller) removeZonepath() {
	for _, name := range []string{"SUNWattached.xml", "lu", "dev", "root"} {
		u.removeAll(path.Join(u.path, name))
	}
	_ = u.tx.Files.Remove(u.path)
}
