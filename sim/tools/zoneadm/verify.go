package zoneadm

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file verifies a zone (verify_details, validate_zonepath, verify_handle),
// as install, clone, boot and others do too. What is wrong is said in plain
// lines; warnings change nothing.

func (z *zoneadm) verifyCommand(args []string) cli.Reply {
	options, operands := cli.Getopt(args, "?", nil)
	if r := z.asked("verify", args, options); r != nil {
		return *r
	}
	if len(operands) > 0 {
		return z.subUsage("verify")
	}
	if !z.sane(zoneCheck{command: "verify"}) || !z.verify("verify") {
		return z.reply(1)
	}
	return z.reply(0)
}

// verify checks whether the zone can be instantiated.
func (z *zoneadm) verify(command string) bool {
	ok := true
	zonepath := z.zone.Config.Zonepath
	if !z.verifyZonepath(zonepath, command) {
		z.errf("could not verify zonepath %s because of the above errors.", zonepath)
		ok = false
	}
	ok = z.verifyNets() && ok
	ok = z.verifyFilesystems() && ok
	if bad := zonecfg.BadPrivilege(z.zone.Config.Globals["limitpriv"]); bad != "" && command != "mount" {
		z.errf("privilege \"%s\" is not permitted within the zone's privilege set", bad)
		ok = false
	}
	ok = z.brandVerify(command) && ok
	ok = z.verifyDatasets() && ok
	if !ok {
		z.errf("zoneadm: zone %s failed to verify", z.name)
	}
	return ok
}

// verifyZonepath checks the directory and the one above it. Commands that make
// a zone make the directory too.
func (z *zoneadm) verifyZonepath(dir, command string) bool {
	if !strings.HasPrefix(dir, "/") {
		z.errf("%s is not an absolute path.", dir)
		return false
	}
	info, err := z.tx.Files.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if command == "verify" {
			z.errf("WARNING: %[1]s does not exist, so it could not be verified.\nWhen 'zoneadm install' is run, 'install' will try to create\n"+
				"%[1]s, and 'verify' will be tried again,\nbut the 'verify' may fail if:\n"+
				"the parent directory of %[1]s is group- or other-writable\nor\n%[1]s overlaps with any other installed zones.", dir)
			return true
		}
		if !slices.Contains([]string{"install", "clone"}, command) {
			z.errf("zoneadm: %s: No such file or directory", dir)
			return false
		}
		if err = mkdirAll(z.tx.Files, dir); err == nil {
			err = z.tx.Files.Chmod(dir, 0o700)
		}
		if err == nil {
			info, err = z.tx.Files.Stat(dir)
		}
	}
	switch {
	case err != nil:
		z.errf("zoneadm: %s: %s", dir, cli.ErrnoText(err))
		return false
	case info.Mode&fs.ModeSymlink != 0:
		z.errf("zoneadm: %s: Resolved path mismatch", dir)
		return false
	case !info.Mode.IsDir():
		z.errf("%s is not a directory.", dir)
		return false
	}
	if command != "boot" && command != "reboot" && command != "ready" && !z.verifyOverlap(dir) {
		return false
	}
	ok := z.verifyMode(dir, info.Mode, 0o077)
	if above, err := z.tx.Files.Stat(path.Dir(dir)); err == nil {
		ok = z.verifyMode(path.Dir(dir), above.Mode, 0o022) && ok
	}
	return z.verifyRoot(dir, command) && ok
}

// verifyMode asks that the owner may do everything, and that none of the bits
// of forbidden is set.
func (z *zoneadm) verifyMode(name string, mode, forbidden fs.FileMode) bool {
	ok := true
	for i, what := range []string{"owner readable", "owner writable", "owner executable", "group readable", "group writable",
		"group executable", "world readable", "world writable", "world executable"} {
		bit := fs.FileMode(0o400) >> i
		switch {
		case i < 3 && mode&bit == 0:
			z.errf("%s must be %s.", name, what)
			ok = false
		case i >= 3 && forbidden&bit != 0 && mode&bit != 0:
			z.errf("%s must not be %s.", name, what)
			ok = false
		}
	}
	return ok
}

// verifyOverlap refuses zonepaths one of which lies in the other, among zones
// that are installed.
func (z *zoneadm) verifyOverlap(dir string) bool {
	for _, other := range z.tx.State.Zones {
		there := other.Config.Zonepath
		if other == z.zone || zones.ZoneRank(other.State) < zones.ZoneRank(world.ZoneInstalled) {
			continue
		}
		if !exists(z.tx, there) {
			z.outf("WARNING: zone %s is installed, but its zonepath %s does not exist.", other.Name, there)
			continue
		}
		if world.Below(dir, there) || world.Below(there, dir) {
			z.errf("%s zonepath (%s) and %s zonepath (%s) overlap.", z.name, dir, other.Name, there)
			return false
		}
	}
	return true
}

// verifyRoot looks at the root of a zone that is not installed: it may be
// there if it looks like one, and no zone was detached.
func (z *zoneadm) verifyRoot(dir, command string) bool {
	root, err := z.tx.Files.Stat(dir + "/root")
	if err != nil || z.zone.Current() != world.ZoneConfigured {
		return true
	}
	switch {
	case exists(z.tx, dir+"/SUNWdetached.xml"):
		z.errf("Cannot %s detached zone.\nUse attach or remove %s directory.", command, dir)
	case !root.Mode.IsDir():
		z.errf("%s/root is not a directory.", dir)
	case root.Mode.Perm() != 0o755:
		z.errf("%s/root mode is not 0755.", dir)
	default:
		return true
	}
	return false
}

// verifyNets only warns: zoneadmd decides.
func (z *zoneadm) verifyNets() bool {
	ok := true
	for _, r := range z.zone.Config.All("net") {
		name := r.Get("physical")
		if z.zone.Config.IPType == "shared" {
			ok = z.verifyShared(r) && ok
			continue
		}
		l := network.FindLink(z.tx, name)
		switch {
		case network.LinkPlumbed(z.tx, world.GlobalZone, name):
			z.errf("WARNING: skipping network interface '%s' which is used in the global zone.", name)
		case l == nil && r.Get("global-nic") == "":
			z.errf("WARNING: skipping network interface '%s': object not found", name)
		case l != nil && l.Zone != "" && l.Zone != z.name:
			z.errf("WARNING: skipping network interface '%s' which is used by the non-global zone '%s'.", name, l.Zone)
		}
	}
	return ok
}

func (z *zoneadm) verifyShared(r *world.Resource) bool {
	if name := r.Get("physical"); !network.LinkPlumbed(z.tx, world.GlobalZone, name) {
		z.errf("WARNING: skipping network interface '%s' which may not be present/plumbed in the global zone.", name)
	}
	if r.Get("address") == "" {
		z.errf("could not verify net address= physical=%s\n\tNeither an IPv4 nor an IPv6 address nor a host name", r.Get("physical"))
		return false
	}
	return true
}

func (z *zoneadm) verifyFilesystems() bool {
	ok := true
	for _, r := range z.zone.Config.All("fs") {
		if why := z.badFilesystem(r); why != "" {
			z.errf("%s", why)
			ok = false
		}
	}
	return ok
}

// badFilesystem says what is wrong with a fs resource.
func (z *zoneadm) badFilesystem(r *world.Resource) string {
	dir, special, kind := r.Get("dir"), r.Get("special"), r.Get("type")
	switch kind {
	case "proc", "mntfs", "autofs", "cachefs", "nfs", "nfs3", "nfs4": // zonecfg_valid_fs_type
		return fmt.Sprintf("cannot verify fs %s: type %s is not allowed.", dir, kind)
	case "lofs", "tmpfs", "ufs", "hsfs", "pcfs", "fd", "hyprlofs":
	case "zfs":
		return z.badZFS(dir, special)
	default:
		return fmt.Sprintf("could not verify fs %s: could not access /usr/lib/fs/%s/mount: No such file or directory", dir, kind)
	}
	if kind == "ufs" || kind == "pcfs" {
		if raw := r.Get("raw"); raw == "" {
			return fmt.Sprintf("could not verify fs %s: must specify 'raw' device for %s file systems", dir, kind)
		}
	}
	if kind != "tmpfs" && !exists(z.tx, path.Join("/", special)) {
		return fmt.Sprintf("could not verify fs %s: could not access %s: No such file or directory", dir, special)
	}
	return ""
}

// badZFS is verify_fs_zfs.
func (z *zoneadm) badZFS(dir, name string) string {
	d := zfs.FindDataset(z.tx, name)
	switch {
	case d == nil:
		return fmt.Sprintf("could not verify fs %s: could not access zfs dataset '%s'", dir, name)
	case zfs.Kind(d) != zfs.TypeFilesystem:
		return fmt.Sprintf("cannot verify fs %s: '%s' is not a file system", dir, name)
	}
	if where, _ := zfs.Property(z.tx, name, "mountpoint"); where != "legacy" {
		return fmt.Sprintf("could not verify fs %s: zfs '%s' mountpoint is not \"legacy\"", dir, name)
	}
	return ""
}

// verifyDatasets checks the datasets that are given to the zone.
func (z *zoneadm) verifyDatasets() bool {
	ok := true
	for _, r := range z.zone.Config.All("dataset") {
		name := r.Get("name")
		d := zfs.FindDataset(z.tx, name)
		why := ""
		if d == nil {
			why = "could not verify zfs dataset " + name + ": no such pool or dataset"
		} else if _, source := zfs.Property(z.tx, name, "mountpoint"); strings.HasPrefix(source, "inherited") {
			why = "could not verify zfs dataset " + name + ": mountpoint cannot be inherited"
		} else if zfs.Kind(d) == zfs.TypeVolume {
			why = "cannot verify zfs dataset " + name + ": volumes cannot be specified as a zone dataset resource"
		}
		if why != "" {
			z.errf("%s", why)
			ok = false
		}
	}
	return ok
}
