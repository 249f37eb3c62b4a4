package zoneadm

import (
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// lendDatasets gives the zone its datasets: zoned is set, and stays set.
func (m *zoneadmd) lendDatasets(k *world.Kernel) bool {
	for _, r := range k.Config.All("dataset") {
		name := r.Get("name")
		if zfs.FindDataset(m.tx, name) == nil {
			return m.fail("cannot open ZFS dataset '%s'", name)
		}
		if zoned, _ := zfs.Property(m.tx, name, "zoned"); zoned == "on" {
			continue
		}
		if err := zfs.SetProperties(m.tx, name, map[string]string{"zoned": "on"}); err != nil {
			return m.fail("cannot set 'zoned' property for ZFS dataset '%s'\n", name)
		}
	}
	return true
}

// mountAll mounts the brand's directories and the zone's file systems, those
// above before those below.
func (m *zoneadmd) mountAll(k *world.Kernel) bool {
	for _, dir := range m.brand.loops {
		if !m.loop(k, world.Loop{Dir: dir, Special: dir, ReadOnly: true}) {
			return false
		}
	}
	all := k.Config.All("fs")
	slices.SortStableFunc(all, func(a, b *world.Resource) int { return strings.Compare(a.Get("dir"), b.Get("dir")) })
	for _, r := range all {
		if !m.mountOne(k, r) {
			return false
		}
	}
	return true
}

func (m *zoneadmd) mountOne(k *world.Kernel, r *world.Resource) bool {
	dir, special := path.Clean(r.Get("dir")), path.Join("/", r.Get("special"))
	at := path.Join(m.zone.Root(), dir)
	switch r.Get("type") {
	case "lofs":
		readOnly := slices.ContainsFunc(r.Values("options"), func(o string) bool {
			return slices.Contains(strings.Split(o, ","), "ro")
		})
		return m.loop(k, world.Loop{Dir: dir, Special: special, ReadOnly: readOnly})
	case "zfs":
		if err := mkdirAll(m.tx.Files, at); err != nil {
			return m.fail("could not create directory %s: %s", at, cli.ErrnoText(err))
		}
		if err := zfs.MountAt(m.tx, r.Get("special"), at); err != nil {
			return m.fail("\"/usr/lib/fs/zfs/mount %s %s\" failed with exit code 111", r.Get("special"), at)
		}
	default: // tmpfs and others: an empty directory
		if err := mkdirAll(m.tx.Files, at); err != nil {
			return m.fail("could not create directory %s: %s", at, cli.ErrnoText(err))
		}
	}
	k.Mounts = append(k.Mounts, at)
	return true
}

// loop mounts a directory or file of the global zone in the zone. Where the
// mount point is missing it is made.
func (m *zoneadmd) loop(k *world.Kernel, l world.Loop) bool {
	at := path.Join(m.zone.Root(), l.Dir)
	info, err := m.tx.Files.Stat(l.Special)
	if err != nil {
		return m.fail("could not stat %s: %s", l.Special, cli.ErrnoText(err))
	}
	if !exists(m.tx, m.tx.ZonePathOf(m.zone.Name, l.Dir)) && !exists(m.tx, at) {
		if err = mkdirAll(m.tx.Files, path.Dir(at)); err == nil && info.Mode.IsDir() {
			err = m.tx.Files.Mkdir(at, 0o755)
		} else if err == nil {
			err = cli.WriteFile(m.tx.Files, at, nil, 0o644)
		}
		if err != nil {
			return m.fail("could not create directory %s: %s", at, cli.ErrnoText(err))
		}
	}
	k.Loops = append(k.Loops, l)
	k.Mounts = append(k.Mounts, at)
	return true
}

// loopOverlays shows the brand's overlays over its loops: the poststate hook
// mounts them there.
func (m *zoneadmd) loopOverlays(k *world.Kernel) {
	for _, o := range m.brand.overlays {
		k.Loops = append(k.Loops, world.Loop{Dir: "/" + o.dir, Special: path.Join(m.zone.Root(), o.dir)})
	}
}

// configureNetwork moves the zone's links into it
// (configure_exclusive_network_interfaces). A zone with a shared stack uses
// what is plumbed in the global zone.
func (m *zoneadmd) configureNetwork(k *world.Kernel) bool {
	if k.Config.IPType != "exclusive" {
		return true
	}
	for _, r := range k.Config.All("net") {
		if !m.addLink(r) {
			// Guess: the errno that zerror adds here is left over from another call.
			return m.fail("failed to add network device: No such file or directory")
		}
	}
	network.StartStack(m.tx, m.zone.Name)
	return true
}

func (m *zoneadmd) addLink(r *world.Resource) bool {
	name := r.Get("physical")
	if network.LinkPlumbed(m.tx, world.GlobalZone, name) {
		return m.fail("WARNING: skipping network interface '%s' which is used in the global zone", name)
	}
	if network.FindLink(m.tx, name) == nil {
		return false // dladm_name2info: nothing is said of its own
	}
	if err := network.LendLink(m.tx, m.zone.Name, name); err != nil {
		return m.fail("WARNING: unable to add network interface '%s': %s", name, err)
	}
	address := r.Get("allowed-address")
	if address == "" {
		return true
	}
	host, _, _ := strings.Cut(address, "/")
	network.Protect(network.LinkIn(m.tx, m.zone.Name, name), host)
	return true
}
