package zoneadm

import (
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// mountAll mounts the brand's directories and the zone's file systems, those
// above before those below.
func (m *zoneadmd) mountAll(k *world.Kernel) bool {
	var all []world.Loop
	for _, r := range k.Config.All("fs") {
		readOnly := slices.ContainsFunc(r.Values("options"), func(o string) bool { return slices.Contains(strings.Split(o, ","), "ro") })
		all = append(all, world.Loop{Dir: path.Clean(r.Get("dir")), Special: path.Join("/", r.Get("special")), ReadOnly: readOnly})
	}
	slices.SortStableFunc(all, func(a, b world.Loop) int { return strings.Compare(a.Dir, b.Dir) })
	for i, dir := range m.brand.loops {
		all = slices.Insert(all, i, world.Loop{Dir: dir, Special: dir, ReadOnly: true})
	}
	for _, l := range all {
		if !m.loop(l) {
			return false
		}
		k.Loops = append(k.Loops, l)
		k.Mounts = append(k.Mounts, path.Join(m.zone.Root(), l.Dir))
	}
	return true
}

// loop makes the place where a directory or file of the global zone is mounted,
// unless it is there.
//
// Guess file-under-lofs-is-made: a file that lofs mounts over is made if it is missing in the
// zone's root.
// Check: `add fs` of a file, boot
func (m *zoneadmd) loop(l world.Loop) bool {
	at := path.Join(m.zone.Root(), l.Dir)
	info, err := m.tx.Files.Stat(l.Special)
	if err != nil {
		return m.fail("could not stat %s: %s", l.Special, cli.ErrnoText(err))
	}
	if exists(m.tx, m.tx.ZonePathOf(m.zone.Name, l.Dir)) || exists(m.tx, at) {
		return true
	}
	if err = mkdirAll(m.tx.Files, path.Dir(at)); err == nil && info.Mode.IsDir() {
		err = m.tx.Files.Mkdir(at, 0o755)
	} else if err == nil {
		err = cli.WriteFile(m.tx.Files, at, nil, 0o644)
	}
	return err == nil || m.fail("could not create directory %s: %s", at, cli.ErrnoText(err))
}

// loopOverlays shows the brand's overlays over its loops: the poststate hook
// mounts them there.
func (m *zoneadmd) loopOverlays(k *world.Kernel) {
	for _, o := range m.brand.overlays {
		k.Loops = append(k.Loops, world.Loop{Dir: "/" + o.dir, Special: path.Join(m.zone.Root(), o.dir)})
	}
}

// configureNetwork moves the zone's links into it
// (configure_exclusive_network_interfaces).
//
// Guess words-behind-failed-to-add-device: the words behind "failed to add network device:": the
// errno that zerror adds is left over from another call.
// Check: boot a zone whose VNIC is gone
func (m *zoneadmd) configureNetwork(k *world.Kernel) bool {
	for _, r := range k.Config.All("net") {
		if !m.addLink(r.Get("physical")) {
			return m.fail("failed to add network device: No such file or directory")
		}
	}
	network.StartStack(m.tx, m.zone.Name)
	return true
}

func (m *zoneadmd) addLink(name string) bool {
	if network.FindLink(m.tx, name) == nil {
		return false // dladm_name2info: zoneadmd prints nothing about it
	}
	if network.LinkPlumbed(m.tx, world.GlobalZone, name) {
		return m.fail("WARNING: skipping network interface '%s' which is used in the global zone", name)
	}
	if err := network.LendLink(m.tx, m.zone.Name, name); err != nil {
		return m.fail("WARNING: unable to add network interface '%s': %s", name, err)
	}
	return true
}
