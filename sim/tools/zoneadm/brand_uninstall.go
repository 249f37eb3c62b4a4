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

// uninstallEnvironments is the hook.
func uninstallEnvironments(h *hook, _ []string) int {
	u := &uninstaller{h}
	be := zones.BootEnvironment(u.tx)
	cli.Simulated(be != "")
	ds := u.zonepathDataset(u.path)
	if ds == "" {
		u.removeZonepath()
		return hookOK
	}
	if zfs.FindDataset(u.tx, ds+"/ROOT") == nil {
		if len(zfs.Descendants(u.tx, ds)) == 0 {
			u.destroy(ds)
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
		u.refusePromotion(ds, roots[0])
	}
	for _, root := range roots {
		u.destroyRoot(root)
	}
	// Roots of other boot environments may be left, and then so is the rest.
	for _, name := range []string{ds + "/ROOT", ds} {
		if len(zfs.Descendants(u.tx, name)) == 0 {
			u.destroy(name)
		}
	}
	u.removeZonepath()
	return hookOK
}

type uninstaller struct{ *hook }

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
func (u *uninstaller) destroy(name string) {
	origin := zfs.FindDataset(u.tx, name).Origin
	cli.Simulated(u.zfs("destroy", "-r", name))
	if origin != "" {
		_ = zfs.Destroy(u.tx, origin, zfs.DestroyOptions{}) // others may have been cloned from it
	}
}

// refusePromotion stands for what sparse/uninstall does first where other roots of the
// same zone have clones of the overlays.
func (u *uninstaller) refusePromotion(ds, root string) {
	for _, o := range u.brand.overlays {
		for _, s := range zfs.Snapshots(u.tx, root+"/"+o.dataset) {
			for _, clone := range zfs.Clones(u.tx, s.Name) {
				cli.Simulated(!strings.HasPrefix(clone.Name, ds+"/ROOT/"))
			}
		}
	}
}

// destroyRoot is destroy_zone_dataset.
func (u *uninstaller) destroyRoot(root string) {
	if len(zfs.Snapshots(u.tx, root)) > 0 {
		for _, d := range append(zfs.Descendants(u.tx, root), zfs.FindDataset(u.tx, root)) {
			cli.Simulated(!u.hasClones(d.Name, root))
		}
	}
	u.destroy(root)
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
