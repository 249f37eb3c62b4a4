package zoneadm

import (
	"fmt"
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
// elsewhere, the last clone of its youngest snapshot is promoted first.

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
	if seen['h'] || seen['H'] {
		h.outf("Usage: uninstall: [-hFn]")
		return hookUsage
	}
	u.dry, u.verbose = seen['n'], seen['v']
	code := u.run()
	if u.dry && code == hookOK {
		return hookFatal
	}
	return code
}

type uninstaller struct {
	*hook
	dry     bool // -n: only show what would be done
	verbose bool
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
	if u.verbose && !u.dry {
		u.outf("destroying '%s'.", name)
	}
	if u.dry {
		u.outf("/sbin/zfs destroy -r %s", name)
		return true
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

func (u *uninstaller) promote(name string) bool {
	if u.dry {
		u.outf("/sbin/zfs promote %s", name)
		return true
	}
	u.outf("promoting '%s'.", name)
	if !u.zfs("promote", name) {
		u.errf("Error: promoting ZFS dataset '%s'.", name)
		return false
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
		for _, clone := range zfs.Clones(u.tx, youngest.Name) {
			if strings.HasPrefix(clone.Name, ds+"/ROOT/") {
				if !u.promote(clone.Name) {
					return false
				}
				break
			}
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
	if stray := u.strayClones(root); len(stray) > 0 {
		u.errf("Error: cloned zone datasets found outsize of zone.\n%s", tabbed(stray))
		u.errf("Error: please delete clone(s) and retry uninstall.")
		return false
	}
	var idle, cloned []*world.Dataset
	for _, s := range snapshots {
		if len(u.clonesElsewhere(s.Name, root)) > 0 {
			cloned = append(cloned, s)
		} else {
			idle = append(idle, s)
		}
	}
	if len(cloned) == 0 {
		return u.destroy(root)
	}
	candidates := u.clonesElsewhere(cloned[len(cloned)-1].Name, root)
	heir := candidates[len(candidates)-1]
	names, ok := u.newNames(root, cloned, heir)
	if !ok {
		return false
	}
	for _, s := range idle {
		if !u.destroy(s.Name) {
			return false
		}
	}
	return u.renameSnapshots(root, cloned, names) && u.promote(heir) && u.destroy(root)
}

func tabbed(names []string) string { return "\t" + strings.Join(names, "\n\t") }

// clonesElsewhere are the file systems that were cloned from a snapshot and do
// not lie below the root that goes, oldest first.
func (u *uninstaller) clonesElsewhere(snapshot, root string) []string {
	clones := slices.DeleteFunc(zfs.Clones(u.tx, snapshot), func(d *world.Dataset) bool { return strings.HasPrefix(d.Name, root+"/") })
	slices.SortFunc(clones, func(a, b *world.Dataset) int { return int(int64(a.Created) - int64(b.Created)) })
	var names []string
	for _, d := range clones {
		names = append(names, d.Name)
	}
	return names
}

// strayClones are clones of what lies below the root, made outside of it.
func (u *uninstaller) strayClones(root string) []string {
	var stray []string
	for _, below := range zfs.Descendants(u.tx, root) {
		for _, s := range zfs.Snapshots(u.tx, below.Name) {
			stray = append(stray, u.clonesElsewhere(s.Name, root)...)
		}
	}
	return stray
}

// ofEnvironment and ofClone recognise the names that the brand gives to
// snapshots.
func ofEnvironment(name string) bool {
	digits, ok := strings.CutPrefix(name, "zbe-")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

func ofClone(name string) bool {
	return strings.HasSuffix(strings.TrimRight(name, "0123456789"), "_snap")
}

// newNames gives the snapshots that move to the heir names that it does not
// have yet. Only names of the brand's own are changed: for another one the
// administrator is asked to remove it.
func (u *uninstaller) newNames(root string, moving []*world.Dataset, heir string) (map[string]string, bool) {
	taken := map[string]bool{}
	for _, s := range zfs.Snapshots(u.tx, heir) {
		_, name, _ := strings.Cut(s.Name, "@")
		taken[name] = true
	}
	names := map[string]string{}
	for _, s := range moving {
		_, name, _ := strings.Cut(s.Name, "@")
		was := name
		for n := 1; taken[name]; n++ {
			switch {
			case ofEnvironment(name):
				name = fmt.Sprintf("zbe-%d", n)
			case ofClone(name):
				name = strings.TrimRight(name, "0123456789") + fmt.Sprint(n)
			default:
				u.errf("Error: user snapshot(s) detected.\n\t%s@%s\nError: please delete snapshot(s) and retry uninstall.", root, name)
				return nil, false
			}
		}
		taken[name] = true
		if name != was {
			names[s.Name] = root + "@" + name
		}
	}
	return names, true
}

// renameSnapshots gives them their new names. Clones that a zone has mounted
// keep their snapshots from it.
func (u *uninstaller) renameSnapshots(root string, moving []*world.Dataset, names map[string]string) bool {
	var inUse []string
	for _, s := range moving {
		for _, clone := range u.clonesElsewhere(s.Name, root) {
			if d := zfs.FindDataset(u.tx, clone); names[s.Name] != "" && d.Mounted != "" {
				inUse = append(inUse, clone)
			}
		}
	}
	if len(inUse) > 0 {
		u.errf("Error: cloned zone dataset(s) in use.\n%s", tabbed(inUse))
		u.errf("Error: please stop using clone(s) and retry uninstall.")
		return false
	}
	for _, s := range moving {
		to := names[s.Name]
		if to == "" {
			continue
		}
		u.outf("renaming '%s' to '%s'.", s.Name, to)
		if !u.zfs("rename", s.Name, to) {
			u.errf("Error: renaming ZFS dataset '%s' to '%s'.", s.Name, to)
			return false
		}
	}
	return true
}

// removeZonepath is rm_zonepath: what the brand knows, and the directory if
// nothing else is in it.
func (u *uninstaller) removeZonepath() {
	for _, name := range []string{"SUNWattached.xml", "lu", "dev", "root"} {
		if u.dry {
			u.outf("/bin/rm -rf %s", path.Join(u.path, name))
			continue
		}
		u.removeAll(path.Join(u.path, name))
	}
	if !u.dry {
		_ = u.tx.Files.Remove(u.path)
	}
}
