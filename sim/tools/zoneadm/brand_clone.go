package zoneadm

import (
	"path"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file clones a zone as omniosorg/pkg5 src/brand/sparse/clone and ipkg/clone
// do: a snapshot @ZONE_snap of the source's root, @ZONE_snap1 and so on up to
// _snap99 if the name is taken, and a ZFS clone of it. For sparse the snapshot
// is recursive, and the overlays are cloned too. Uninstalling the clone later
// removes the snapshot of the root only: those of the overlays stay, so the
// 101st clone of one name fails.

// beginClone makes the datasets of the clone. Options, such as -s for a snapshot that
// is there, are not simulated.
func beginClone(h *hook, args []string) int {
	active, code := h.findOf(h.tx.FindZone(args[0]).Path())
	if code != hookOK {
		return code
	}
	parent := h.zonepathDataset(path.Dir(h.path))
	cli.Simulated(parent != "" && !strings.HasPrefix(parent, "rpool/ROOT/"))
	// Both may be there, from another boot environment or made by hand: then
	// zfs complains, and the hook goes on.
	ds := parent + "/" + path.Base(h.path)
	h.zfs("create", ds)
	h.zfs("create", "-o", "mountpoint=legacy", "-o", "zoned=on", ds+"/ROOT")
	snapshot := h.snapshotSource(active)
	if snapshot == "" {
		return h.fatal(textZFSCreate)
	}
	return h.cloneDatasets(active, snapshot, ds)
}

// snapshotSource takes the snapshot; empty if no name was free.
//
// Guess clone-without-root-stays: sparse: a clone that fails before its root exists, as the 101st
// of one name does, leaves a zone that `uninstall -F` refuses with "Found $fs_all_c top-level
// filesystems." (sparse/uninstall).
// Check: clone and delete one name 101 times in raw commands
func (h *hook) snapshotSource(active string) string {
	for n := range environmentsMax {
		name := h.zone + "_snap"
		if n > 0 {
			name += strconv.Itoa(n)
		}
		args := []string{"snapshot", active + "@" + name}
		if len(h.brand.overlays) > 0 {
			args = []string{"snapshot", "-r", active + "@" + name}
		}
		if h.zfs(args...) {
			return name
		}
	}
	return ""
}

// cloneDatasets clones the snapshot of the root, and for sparse those of the
// overlays.
func (h *hook) cloneDatasets(active, snapshot, ds string) int {
	name := ""
	for n := 0; name == "" && n < environmentsMax; n++ {
		if to := ds + "/ROOT/" + environmentName(n); h.zfs("clone", active+"@"+snapshot, to) {
			name = to
		}
	}
	cli.Simulated(name != "")
	for _, o := range h.brand.overlays {
		cli.Simulated(h.zfs("clone", active+"/"+o.dataset+"@"+snapshot, name+"/"+o.dataset))
	}
	for _, setting := range []string{propActive + "=on", propParent + "=" + zones.BootEnvironment(h.tx), "canmount=noauto"} {
		cli.Simulated(h.zfs("set", setting, name))
	}
	for _, o := range h.brand.overlays {
		cli.Simulated(h.zfs("set", "canmount=noauto", name+"/"+o.dataset))
	}
	if _, err := h.tx.Files.Stat(h.root()); err != nil {
		_ = mkdirAll(h.tx.Files, h.root()) // the mount that follows says what is wrong
		_ = h.tx.Files.Chmod(h.path, 0o700)
	}
	return hookOK
}

// finishClone mounts the zone, which makes it a kernel zone until the traces of the
// source have been taken out of it (unconfigure_zone of ipkg/common.ksh).
//
// Guess failed-mount-of-a-clone-is-254: sparse and ipkg: 254 is clone's exit code when its mount
// fails.
// Check: `zoneadm -z ZONE clone` with a file system in the way
func finishClone(h *hook, args []string) int {
	z := h.tx.FindZone(h.zone)
	m := startDaemon(h.tx, z, "mount")
	m.mount()
	z.Daemon = nil
	for _, line := range m.d.Lines {
		h.errf("zone '%s': %s", h.zone, line)
	}
	if m.d.Failed {
		h.errf("zoneadm: zone '%s': %s", h.zone, daemonFailed)
		h.outf("ERROR: Zone mount failed")
		return hookNotComplete
	}
	takes := h.tx.Latency(world.StepUnconfigure) + h.tx.Slower(world.FaultSlowClone, "zoneadm", "-z", h.zone, "clone", args[0])
	if takes == 0 {
		unconfigure(h.tx, z, mountedID(z))
		return hookOK
	}
	h.tx.Schedule(takes, eventUnconfigure, h.zone, mountedID(z))
	return hookOK
}

// eventUnconfigure is the end of a clone hook's work in the zone. The Name of the event
// is the id of the kernel zone.
const eventUnconfigure = "zone-unconfigure"

func mountedID(z *world.Zone) string { return strconv.Itoa(z.Kernel.ID) }

// unconfigure is that work, and unmounts the zone. Somebody else may have done the
// latter meanwhile: then the files are not where the work is done.
func unconfigure(tx *world.Tx, z *world.Zone, id string) {
	if z.Current() != world.ZoneMounted || mountedID(z) != id {
		return
	}
	m := startDaemon(tx, z, "unmount")
	(&hook{tx: tx, brand: m.brand, zone: z.Name, path: z.Path()}).unconfigure()
	m.unmount()
	z.SettleDaemon()
}
