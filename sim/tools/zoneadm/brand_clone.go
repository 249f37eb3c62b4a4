package zoneadm

import (
	"path"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file clones a zone as omniosorg/pkg5 src/brand/sparse/clone and ipkg/clone
// do: a snapshot @ZONE_snap of the source's root, @ZONE_snap1 and so on up to
// _snap99 if the name is taken, and a ZFS clone of it. For sparse the snapshot
// is recursive, and the overlays are cloned too. Uninstalling the clone later
// removes the snapshot of the root only: those of the overlays stay, so the
// 101st clone of one name fails.

// cloneArguments are the options of the hook.
type cloneArguments struct {
	dataset, snapshot string
	mountOnly         bool // -X: system-unconfigure is not run
	source            string
}

func parseClone(h *hook, args []string) (c cloneArguments, ok bool) {
	options, operands := cli.Getopt(args, "R:s:Xz:", nil)
	for _, o := range options {
		switch {
		case o.Bad != "" || o.Letter == 'R' || o.Letter == 'z':
			return c, false
		case o.Letter == 'X':
			c.mountOnly = true
		case strings.Contains(o.Value, "@"):
			c.dataset, c.snapshot, _ = strings.Cut(o.Value, "@")
		case strings.Contains(o.Value, "/"):
			c.dataset = o.Value
		default:
			c.snapshot = o.Value
		}
	}
	if len(operands) != 1 {
		return c, false
	}
	c.source = operands[0]
	return c, true
}

// beginClone makes the datasets of the clone.
func beginClone(h *hook, args []string) int {
	c, ok := parseClone(h, args)
	if !ok {
		return h.misused("clone {sourcezone}")
	}
	active, code := h.cloneSource(c)
	if code != hookOK {
		return code
	}
	parent := h.zonepathDataset(path.Dir(h.path))
	switch {
	case parent == "":
		return h.fatal(textNoDataset)
	case strings.HasPrefix(parent, "rpool/ROOT/"):
		return h.fatal(textInRoot)
	}
	// Both may be there, from another boot environment or made by hand: then
	// zfs complains, and the hook goes on.
	ds := parent + "/" + path.Base(h.path)
	h.zfs("create", ds)
	h.zfs("create", "-o", "mountpoint=legacy", "-o", "zoned=on", ds+"/ROOT")
	snapshot := c.snapshot
	if snapshot == "" {
		if snapshot = h.snapshotSource(active); snapshot == "" {
			return h.fatal(textZFSCreate)
		}
	}
	return h.cloneDatasets(active, snapshot, ds)
}

// cloneSource finds the root that is cloned.
func (h *hook) cloneSource(c cloneArguments) (name string, code int) {
	if zones.BootEnvironment(h.tx) == "" {
		return "", h.fatal(textNoEnvironment)
	}
	name = c.dataset
	if name == "" {
		source := h.tx.FindZone(c.source)
		if source == nil {
			h.errf("zoneadm: %s: %s", c.source, zonecfg.NoZone)
			return "", h.fatal(textNoSource)
		}
		ds := h.zonepathDataset(source.Path())
		if ds == "" {
			return "", h.fatal(textNoDataset)
		}
		var why string
		if name, why = h.activeDataset(ds); why != "" {
			return "", h.fatal("%s", why)
		}
	} else if path.Base(path.Dir(name)) != "ROOT" || path.Base(path.Dir(path.Dir(name))) != c.source {
		return "", h.fatal(textBadSource)
	} else if ok, _ := h.quietZFS("list", "-H", "-o", propParent+","+propActive, name); !ok {
		return "", h.fatal(textBadSource)
	}
	if c.snapshot != "" {
		if ok, _ := h.quietZFS("list", "-H", name+"@"+c.snapshot); !ok {
			return "", h.fatal(textBadSource)
		}
	}
	return name, hookOK
}

// snapshotSource takes the snapshot; empty if no name was free.
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
	for n := range environmentsMax {
		if h.zfs("clone", active+"@"+snapshot, ds+"/ROOT/"+environmentName(n)) {
			name = ds + "/ROOT/" + environmentName(n)
			break
		}
	}
	if name == "" {
		return h.fatal(textZFSCreate)
	}
	for _, o := range h.brand.overlays {
		if !h.zfs("clone", active+"/"+o.dataset+"@"+snapshot, name+"/"+o.dataset) {
			return h.incomplete("Unable to clone zone's %s ZFS dataset.", o.dataset)
		}
	}
	for _, setting := range []string{propActive + "=on", propParent + "=" + zones.BootEnvironment(h.tx), "canmount=noauto"} {
		if !h.zfs("set", setting, name) {
			return h.incomplete(textZFSCreate)
		}
	}
	for _, o := range h.brand.overlays {
		if !h.zfs("set", "canmount=noauto", name+"/"+o.dataset) {
			return h.incomplete("Failed to configure dataset %s: could not set %s.", "/"+o.dataset, "canmount=noauto")
		}
	}
	if _, err := h.tx.Files.Stat(h.root()); err != nil {
		_ = mkdirAll(h.tx.Files, h.root()) // the mount that follows says what is wrong
		_ = h.tx.Files.Chmod(h.path, 0o700)
	}
	return hookOK
}

// finishClone mounts the zone, which makes it a kernel zone until the traces of the
// source have been taken out of it (unconfigure_zone of ipkg/common.ksh). With -X
// nothing is taken out, and it stays mounted.
func finishClone(h *hook, args []string) int {
	c, _ := parseClone(h, args)
	z := h.tx.FindZone(h.zone)
	m := startDaemon(h.tx, z, "mount")
	m.mount()
	lines, failed := m.d.Lines, m.d.Failed
	z.Daemon = nil
	for _, line := range lines {
		h.errf("zone '%s': %s", h.zone, line)
	}
	if failed {
		h.errf("zoneadm: zone '%s': %s", h.zone, daemonFailed)
		h.outf("ERROR: Zone mount failed")
		return hookNotComplete
	}
	if c.mountOnly {
		return hookOK
	}
	takes := h.tx.Latency(world.StepUnconfigure) + h.tx.Slower(world.FaultSlowClone, "zoneadm", "-z", h.zone, "clone", c.source)
	if takes == 0 {
		unconfigure(h.tx, z, mountedID(z))
		return hookOK
	}
	h.tx.Schedule(takes, eventUnconfigure, h.zone, mountedID(z))
	return hookOK
}

// unconfigures says whether the clone hook works in the zone that it has made.
func (b *brand) unconfigures(args []string) (cloneArguments, bool) {
	c, ok := parseClone(&hook{}, args)
	return c, ok && b.cloned != nil && !c.mountOnly
}

// eventUnconfigure is the end of a clone hook's work in the zone. Its name tells which
// kernel zone.
const eventUnconfigure = "zone-unconfigure"

func mountedID(z *world.Zone) string { return strconv.Itoa(z.Kernel.ID) }

// unconfigure is that work, and unmounts the zone. Somebody else may have done the
// latter meanwhile: then the files are not where the work is done.
func unconfigure(tx *world.Tx, z *world.Zone, id string) {
	if z.Current() != world.ZoneMounted || mountedID(z) != id {
		return
	}
	h := &hook{tx: tx, zone: z.Name, path: z.Path()}
	h.brand, _ = brandOf(tx, brandName(z))
	h.unconfigure()
	m := startDaemon(tx, z, "unmount")
	m.unmount()
	z.SettleDaemon()
}
