package zoneadm

import (
	"fmt"
	"path"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file has the brands whose zones have boot environments of their own:
// ipkg, lipkg, pkgsrc and sparse (omniosorg/pkg5 src/brand/ipkg and sparse). The
// zonepath is a file system DS; DS/ROOT is legacy and zoned; DS/ROOT/zbe is the
// root, mounted on ZONEPATH/root by the hooks and never by zfs mount. The one
// whose parent is the boot environment that runs, and that is active, counts.

const (
	propActive = "org.opensolaris.libbe:active"
	propParent = "org.opensolaris.libbe:parentbe"
)

func bootEnvironmentHooks() hooks {
	return hooks{
		install: beginTree, installed: finishTree,
		clone: beginClone, cloned: finishClone,
		uninstall: uninstallEnvironments,
		prestate:  prestateEnvironment, poststate: poststateEnvironment,
		sysboot: sysbootEnvironment,
	}
}

// The texts of common.ksh.
const (
	textNoDataset = "the zonepath must be a ZFS dataset.\nThe parent directory of the zonepath must be a ZFS dataset so that the\n" +
		"zonepath ZFS dataset can be created properly."
	textNoActive   = "no active dataset."
	textMultiple   = "multiple active datasets."
	textZFSCreate  = "Unable to create the zone's ZFS dataset."
	textZFSUnmount = "Unable to unmount the zone's root ZFS dataset (%s).\nIs there a global zone process inside the zone root?\n" +
		"The current zone boot environment will remain mounted.\n"
	textZFSMount    = "Unable to mount the zone's ZFS dataset."
	environmentsMax = 100
)

// find is find_active_ds: the zone's root, or the end of the hook.
func (h *hook) find() (name string, code int) { return h.findOf(h.path) }

// findOf is get_active_ds: the root of the zone whose zonepath this is.
func (h *hook) findOf(zonepath string) (name string, code int) {
	ds, be := h.zonepathDataset(zonepath), zones.BootEnvironment(h.tx)
	if ds == "" || be == "" {
		return "", h.fatal(textNoDataset)
	}
	var found []string
	_, out := h.quietZFS("list", "-H", "-r", "-t", "filesystem", "-o", "name,"+propParent+","+propActive, ds+"/ROOT")
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) == 3 && path.Dir(f[0]) == ds+"/ROOT" && f[1] == be && f[2] == "on" {
			found = append(found, f[0])
		}
	}
	if len(found) != 1 {
		return "", h.fatal("%s", map[bool]string{true: textNoActive, false: textMultiple}[len(found) == 0])
	}
	return found[0], hookOK
}

// createEnvironment is create_active_ds: the root's dataset, mounted.
func (h *hook) createEnvironment() (name string, code int) {
	ds, be := h.zonepathDataset(h.path), zones.BootEnvironment(h.tx)
	if ds == "" {
		return "", h.fatal(textNoDataset)
	}
	cli.Simulated(be != "" && !strings.HasPrefix(ds, "rpool/ROOT/"))
	if zfs.FindDataset(h.tx, ds+"/ROOT") == nil {
		cli.Simulated(h.zfs("create", "-o", "mountpoint=legacy", "-o", "zoned=on", ds+"/ROOT"))
	}
	for n := 0; name == "" && n < environmentsMax; n++ {
		to := ds + "/ROOT/" + environmentName(n)
		if zfs.CreateFilesystem(h.tx, to, map[string]string{propActive: "on", propParent: be, "canmount": "noauto"}) == nil {
			name = to
		}
	}
	if _, err := h.tx.Files.Stat(h.root()); err != nil {
		must(h.tx.Files.Mkdir(h.root(), 0o755))
	}
	must(zfs.MountAt(h.tx, name, h.root()))
	return name, hookOK
}

func environmentName(n int) string {
	if n == 0 {
		return "zbe"
	}
	return fmt.Sprintf("zbe-%d", n)
}

// mountOverlays is mount_overlays: one that is mounted where it belongs stays.
func (h *hook) mountOverlays(name string) int {
	for _, o := range h.brand.overlays {
		dir := path.Join(h.root(), o.dir)
		if d := zfs.FindDataset(h.tx, name+"/"+o.dataset); d != nil && d.Mounted == dir {
			continue
		}
		if h.said(mkdirAll(h.tx.Files, dir)) || h.said(zfs.MountAt(h.tx, name+"/"+o.dataset, dir)) {
			return h.fatal(textZFSMount)
		}
	}
	return hookOK
}

// unmountOverlays is umount_overlays: whatever is mounted there.
func (h *hook) unmountOverlays() {
	for _, o := range h.brand.overlays {
		if d := zfs.MountedAt(h.tx, path.Join(h.root(), o.dir)); d != nil {
			h.said(zfs.Unmount(h.tx, d.Name, false))
		}
	}
}

// mountRoot is mount_active_ds of ipkg/common.ksh: the root is mounted in the
// place of the one that is there. That one stays if something holds it.
func (h *hook) mountRoot() int {
	if d := zfs.MountedAt(h.tx, h.root()); d != nil && h.said(zfs.Unmount(h.tx, d.Name, false)) {
		h.outf(textZFSUnmount, h.root())
		return hookOK
	}
	name, code := h.find()
	if code != hookOK {
		return code
	}
	return h.mountActive(name)
}

func (h *hook) mountActive(name string) int {
	if h.said(zfs.MountAt(h.tx, name, h.root())) {
		return h.fatal(textZFSMount)
	}
	return hookOK
}

// mountSparse is what sparse/prestate does: the root is mounted, and the
// overlays are not, for zoneadmd refuses a root with mounts below.
func (h *hook) mountSparse() (name string, code int) {
	if name, code = h.find(); code != hookOK {
		return "", code
	}
	h.unmountOverlays()
	if d := zfs.MountedAt(h.tx, h.root()); d != nil && h.said(zfs.Unmount(h.tx, d.Name, false)) {
		return "", h.fatal(textZFSUnmount, h.root())
	}
	return name, h.mountActive(name)
}

// prestateEnvironment mounts the root for a zone that gets ready.
func prestateEnvironment(h *hook, command int) int {
	if command != stateCommandReady {
		return hookOK
	}
	if h.brand.overlays == nil {
		return h.mountRoot()
	}
	_, code := h.mountSparse()
	return code
}

// poststateEnvironment mounts the overlays: over the loops of a zone that got
// ready, and again when it is down, so that it can be patched. A root without
// overlays is mounted when the zone is down, for the same.
func poststateEnvironment(h *hook, command int) int {
	code := hookOK
	switch {
	case h.brand.overlays != nil:
		var name string
		if name, code = h.find(); code == hookOK {
			code = h.mountOverlays(name)
		}
	case command == stateCommandHalt:
		code = h.mountRoot()
	}
	return code
}

// sysbootEnvironment is the prestate hook at the boot of the sled, for a zone
// that is not booted with it: it is mounted, so that it can be patched.
func sysbootEnvironment(h *hook) int {
	if h.brand.overlays == nil {
		return h.mountRoot()
	}
	name, code := h.mountSparse()
	if code != hookOK {
		return code
	}
	return h.mountOverlays(name)
}

// verifySparse is sparse/verifyadm: uninstall begins with the overlays.
func verifySparse(h *hook, command string) int {
	if command == "uninstall" {
		h.unmountOverlays()
	}
	return hookOK
}
