package zoneadm

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file verifies a zone (verify_details, validate_zonepath, verify_handle),
// as install, clone, boot and others do. Of what may be wrong, zones that lack what
// they have been given get the real words; the rest is refused.

// verify checks whether the zone can be instantiated.
func (z *zoneadm) verify(command string) bool {
	c := z.zone.Config
	ok := z.verifyZonepath(c.Zonepath, command)
	if !ok {
		z.errf("could not verify zonepath %s because of the above errors.", c.Zonepath)
	}
	z.verifyNets()
	ok = z.verifyFilesystems() && ok
	cli.Simulated(zonecfg.BadPrivilege(c.Globals["limitpriv"]) == "" && len(c.All("dataset")) == 0)
	ok = z.brandVerify(command) && ok
	if !ok {
		z.errf("zoneadm: zone %s failed to verify", z.name)
	}
	return ok
}

// verifyZonepath checks the directory and the one above it. Commands that make
// a zone make the directory too.
func (z *zoneadm) verifyZonepath(dir, command string) bool {
	info, err := z.tx.Files.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) && slices.Contains([]string{"install", "clone"}, command) {
		must(mkdirAll(z.tx.Files, dir))
		must(z.tx.Files.Chmod(dir, 0o700))
		info, err = z.tx.Files.Stat(dir)
	}
	if err != nil {
		z.errf("zoneadm: %s: %s", dir, cli.ErrnoText(err))
		return false
	}
	above, err := z.tx.Files.Stat(path.Dir(dir))
	must(err)
	// The owner may do everything, the rest of the world nothing, and not write above.
	cli.Simulated(info.Mode.IsDir() && info.Mode&0o777 == 0o700 && above.Mode&0o722 == 0o700)
	if !slices.Contains([]string{"boot", "reboot", "ready"}, command) {
		z.verifyOverlap(dir)
	}
	// A root that is there before the zone is installed looks like one, and is not
	// that of a zone that was detached.
	if root, err := z.tx.Files.Stat(dir + "/root"); err == nil && z.zone.Current() == world.ZoneConfigured {
		cli.Simulated(root.Mode.IsDir() && root.Mode.Perm() == 0o755 && !exists(z.tx, dir+"/SUNWdetached.xml"))
	}
	return true
}

// verifyOverlap refuses zonepaths one of which lies in the other, among zones
// that are installed.
func (z *zoneadm) verifyOverlap(dir string) {
	for _, other := range z.tx.State.Zones {
		there := other.Config.Zonepath
		if other == z.zone || zones.ZoneRank(other.State) < zones.ZoneRank(world.ZoneInstalled) {
			continue
		}
		if !exists(z.tx, there) {
			z.outf("WARNING: zone %s is installed, but its zonepath %s does not exist.", other.Name, there)
			continue
		}
		cli.Simulated(!world.Below(dir, there) && !world.Below(there, dir))
	}
}

// verifyNets only warns: zoneadmd decides. A shared stack is not simulated, and
// neither are VNICs that the brand makes on demand (omniosorg/pkg5
// src/brand/shared/vnic.ksh) and the addresses that zoneadmd gives to links.
func (z *zoneadm) verifyNets() {
	c := z.zone.Config
	for _, r := range c.All("net") {
		cli.Simulated(c.IPType == "exclusive" && r.Get("global-nic") == "" && r.Get("allowed-address") == "")
		name := r.Get("physical")
		switch l := network.FindLink(z.tx, name); {
		case network.LinkPlumbed(z.tx, world.GlobalZone, name):
			z.errf("WARNING: skipping network interface '%s' which is used in the global zone.", name)
		case l == nil:
			z.errf("WARNING: skipping network interface '%s': object not found", name)
		case l.Zone != "" && l.Zone != z.name:
			z.errf("WARNING: skipping network interface '%s' which is used by the non-global zone '%s'.", name, l.Zone)
		}
	}
}

// verifyFilesystems looks for what the zone mounts, of which only loopback mounts are
// simulated.
func (z *zoneadm) verifyFilesystems() bool {
	ok := true
	for _, r := range z.zone.Config.All("fs") {
		cli.Simulated(r.Get("type") == "lofs")
		if special := r.Get("special"); !exists(z.tx, path.Join("/", special)) {
			z.errf("could not verify fs %s: could not access %s: No such file or directory", r.Get("dir"), special)
			ok = false
		}
	}
	return ok
}
