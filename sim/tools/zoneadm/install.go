package zoneadm

import (
	"path"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// This file installs a zone (install_func): the zone is incomplete from the
// moment that it has its lock until its brand's hook has ended well.

func (z *zoneadm) install(args []string) cli.Reply {
	switch {
	case !z.named:
		return z.subUsage("install")
	case z.brand == nil && z.call.Zone == world.GlobalZone:
		return z.refuse("missing or invalid brand")
	}
	dataset, pass, help := true, []string(nil), false
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-?":
			help = true
		case args[i] == "-x" && i+1 < len(args) && args[i+1] == "nodataset":
			dataset = false
			i++
		default:
			pass = append(pass, args[i])
		}
	}
	if help {
		z.printSubUsage("install")
		return z.reply(0)
	}
	if !z.sane(zoneCheck{command: "install", exclusive: true}) || !z.verify("install") {
		return z.reply(1)
	}
	return z.locked(z.reply(0), func(z *zoneadm) cli.Reply {
		if !z.setState(world.ZoneIncomplete) {
			return z.reply(1)
		}
		if dataset {
			z.createZonepath()
		}
		return z.hooked(z.tx.Latency(world.StepInstall), z.brand.install, z.brand.installed, pass, z.installEnd)
	})
}

// hooked runs a hook: its beginning, the time that it takes, and its end. Then
// the command goes on with the hook's exit code.
func (z *zoneadm) hooked(takes time.Duration, begin, end func(*hook, []string) int, args []string, then func(z *zoneadm, code int) cli.Reply) cli.Reply {
	h := z.hook()
	if code := z.took(h, begin(h, args)); code != hookOK {
		return then(z, code)
	}
	do := func(tx *world.Tx) cli.Reply {
		next := z.at(tx)
		if next.zone == nil {
			return next.reply(1)
		}
		if code, hit := next.hookFault(); hit {
			return then(next, code)
		}
		h := next.hook()
		return then(next, next.took(h, end(h, args)))
	}
	so := z.reply(0)
	so.Next = &cli.Next{After: takes, Do: do}
	return so
}

// installEnd is the end of install. A hook that says that another attempt may
// be made leaves the zone configured, any other failure leaves it incomplete.
func (*zoneadm) installEnd(z *zoneadm, code int) cli.Reply {
	switch code {
	case hookOK:
		if z.setState(world.ZoneInstalled) {
			return z.reply(0)
		}
	case hookUsage:
		z.printSubUsage("install")
	case hookNotComplete:
		z.cleanZonepath()
		z.setState(world.ZoneConfigured)
	}
	return z.reply(1)
}

// createZonepath makes the zonepath a file system of its own, if the directory
// above is one (create_zfs_zonepath in usr/src/cmd/zoneadm/zfs.c). If that does
// not work the directory does too.
func (z *zoneadm) createZonepath() {
	name := z.zonepathName(z.zone.Config.Zonepath)
	if name == "" || zfs.FindDataset(z.tx, name) != nil {
		return
	}
	if err := zfs.CreateFilesystem(z.tx, name, map[string]string{"sharenfs": "off", "sharesmb": "off"}); err != nil {
		z.errf("cannot create ZFS dataset %s: %s", name, err)
		return
	}
	if err := zfs.MountAuto(z.tx, name); err != nil {
		z.errf("cannot mount ZFS dataset %s: %s", name, err)
		_ = zfs.Destroy(z.tx, name, zfs.DestroyOptions{}) // as zoneadm: nobody looks
		return
	}
	_ = z.tx.Files.Chmod(z.zone.Config.Zonepath, 0o700) // it has just been mounted
	z.outf("A ZFS file system has been created for this zone.")
}

// zonepathName is the name that a file system at this path has by itself
// (path2name); empty if the directory above is none.
func (z *zoneadm) zonepathName(zonepath string) string {
	above := zfs.MountedAt(z.tx, path.Dir(zonepath))
	if above == nil {
		return ""
	}
	return above.Name + "/" + path.Base(zonepath)
}
