package zoneadm

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// This file installs and uninstalls a zone (install_func, uninstall_func): the zone
// is incomplete from the moment that it has its lock until its brand's hook has
// ended well.

func (z *zoneadm) install(args []string) cli.Reply {
	cli.Simulated(!slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }))
	if !z.sane("install") || !z.verify("install") {
		return z.reply(1)
	}
	return z.locked(func(z *zoneadm) cli.Reply {
		z.setState(world.ZoneIncomplete)
		z.createZonepath()
		return z.hooked(z.tx.Latency(world.StepInstall), z.brand.install, z.brand.installed, args, installEnd)
	})
}

// hooked runs a hook: its beginning, the time that it takes, and its end. Then the
// command continues, and gets the hook's exit code.
func (z *zoneadm) hooked(
	takes time.Duration, begin, end func(*hook, []string) int, args []string, then func(z *zoneadm, code int) cli.Reply,
) cli.Reply {
	h := z.hook()
	if code := z.took(h, begin(h, args)); code != hookOK {
		return then(z, code)
	}
	return z.next(cli.Next{After: takes}, func(z *zoneadm) cli.Reply {
		if code, hit := z.hookFault(); hit {
			return then(z, code)
		}
		h := z.hook()
		return then(z, z.took(h, end(h, args)))
	})
}

// installEnd is the end of install. A hook that says that another attempt may
// be made leaves the zone configured, any other failure leaves it incomplete.
func installEnd(z *zoneadm, code int) cli.Reply {
	switch code {
	case hookOK:
		z.setState(world.ZoneInstalled)
		return z.reply(0)
	case hookNotComplete:
		z.cleanZonepath()
		z.setState(world.ZoneConfigured)
	}
	return z.reply(1)
}

// createZonepath makes the zonepath a file system of its own, if the directory
// above is one (create_zfs_zonepath in usr/src/cmd/zoneadm/zfs.c).
func (z *zoneadm) createZonepath() {
	zonepath := z.zone.Config.Zonepath
	above := zfs.MountedAt(z.tx, path.Dir(zonepath))
	if above == nil {
		return
	}
	name := above.Name + "/" + path.Base(zonepath) // path2name
	if zfs.FindDataset(z.tx, name) != nil {
		return
	}
	must(zfs.CreateFilesystem(z.tx, name, map[string]string{"sharenfs": "off", "sharesmb": "off"}))
	must(zfs.MountAuto(z.tx, name))
	_ = z.tx.Files.Chmod(zonepath, 0o700) // it has just been mounted
	z.outf("A ZFS file system has been created for this zone.")
}

func (z *zoneadm) uninstall(args []string) cli.Reply {
	cli.Simulated(slices.Equal(args, []string{"-F"}))
	if !z.sane("uninstall") || !z.brandVerify("uninstall") {
		return z.reply(1)
	}
	return z.locked(func(z *zoneadm) cli.Reply {
		root := path.Join(z.zone.Config.Zonepath, "root")
		if mounts := mountsBelow(z.tx, root); len(mounts) > 0 {
			z.say("These file systems are mounted on subdirectories of %s.\n", root)
			for _, dir := range mounts { // zfm_print, each line with its own empty one
				z.say("  %s\n", dir)
			}
			return z.reply(1)
		}
		z.setState(world.ZoneIncomplete)
		return z.hooked(z.tx.Latency(stepUninstall), nothing, z.brand.uninstall, args, uninstallEnd)
	})
}

// stepUninstall is uninstalling, which nobody measured.
//
// Guess no-time-for-uninstall: uninstalling takes no time.
// Check: `ptime zoneadm -z ZONE uninstall -F`
const stepUninstall = "uninstall"

// uninstallEnd leaves the zone configured, or incomplete if its hook failed.
func uninstallEnd(z *zoneadm, code int) cli.Reply {
	if code != hookOK {
		return z.reply(1)
	}
	if z.brand.builtIn {
		z.cleanZonepath()
	}
	network.DropStack(z.tx, z.name)
	z.setState(world.ZoneConfigured)
	return z.reply(0)
}

// mountsBelow are the directories strictly below dir on which something is
// mounted (zonecfg_find_mounts).
func mountsBelow(tx *world.Tx, dir string) []string {
	var found []string
	for _, d := range tx.State.Datasets {
		if d.Mounted != dir && world.Below(dir, d.Mounted) && d.Mounted != "" {
			found = append(found, d.Mounted)
		}
	}
	slices.Sort(found)
	return found
}

// cleanZonepath is cleanup_zonepath of usr/src/cmd/zoneadm/zoneadm.c, for brands that
// have no hook for it: what zoneadm knows of is removed, and the whole if there is
// nothing else in it.
func (z *zoneadm) cleanZonepath() {
	zonepath := z.zone.Config.Zonepath
	known := []string{"dev", "lastexited", "lu", "root", "SUNWattached.xml"}
	if z.tx.State.Mode == world.OmniOS {
		known = append(known, "etc")
	}
	entries, err := z.tx.Files.ReadDir(zonepath)
	must(err)
	extra := false
	for _, e := range entries {
		if extra = extra || !slices.Contains(known, e.Name); slices.Contains(known, e.Name) {
			_ = removeBelow(z.tx, path.Join(zonepath, e.Name)) // the caller lists what could not be removed
		}
	}
	if d := zfs.MountedAt(z.tx, zonepath); d == nil {
		_ = z.tx.Files.Remove(zonepath)
	} else if len(zfs.Descendants(z.tx, d.Name)) > 0 {
		z.errf("zfs destroy %s failed: the dataset still has dependents", d.Name)
	} else if !extra {
		must(zfs.Destroy(z.tx, d.Name, zfs.DestroyOptions{}))
		z.outf("The ZFS file system for this zone has been destroyed.")
	}
	if extra {
		z.errf("WARNING: Unable to completely remove %s\nbecause it contains additional user data.  Only the standard directory\n"+
			"entries have been removed.", zonepath)
	}
}
