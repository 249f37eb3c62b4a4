package zoneadm

import (
	"path"
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// This file uninstalls a zone (uninstall_func).

func (z *zoneadm) uninstall(args []string) cli.Reply {
	if slices.Contains(args, "-?") {
		z.printSubUsage("uninstall")
		return z.reply(0)
	}
	if !z.sane(zoneCheck{command: "uninstall", exclusive: true}) || !z.brandVerify("uninstall") {
		return z.reply(1)
	}
	if !slices.ContainsFunc(args, func(a string) bool { return len(a) > 1 && a[0] == '-' && slices.Contains([]byte(a[1:]), 'F') }) {
		return z.refuse("Input not from terminal and -F not specified: uninstall not done.")
	}
	return z.locked(z.reply(0), func(z *zoneadm) cli.Reply {
		root := path.Join(z.zone.Config.Zonepath, "root")
		if mounts := z.mountsBelow(root); len(mounts) > 0 {
			z.say("These file systems are mounted on subdirectories of %s.\n", root)
			z.listMounts(mounts)
			return z.reply(1)
		}
		if !z.setState(world.ZoneIncomplete) {
			return z.reply(1)
		}
		return z.hooked(z.tx.Latency(stepUninstall), nothing, uninstallHook(z.brand), args, z.uninstallEnd)
	})
}

// stepUninstall: nobody measured it.
const stepUninstall = "uninstall"

// uninstallHook is the brand's hook; zoneadm's own way is done at the end.
func uninstallHook(b *brand) func(*hook, []string) int {
	if b.uninstall == nil {
		return nothing
	}
	return b.uninstall
}

// uninstallEnd leaves the zone configured, or incomplete if its hook failed.
func (*zoneadm) uninstallEnd(z *zoneadm, code int) cli.Reply {
	switch {
	case code == hookUsage:
		z.printSubUsage("uninstall")
		return z.reply(1)
	case code != hookOK:
		return z.reply(1)
	case z.brand.uninstall == nil && !z.cleanZonepath():
		z.errf("zoneadm: %s: cleaning up zonepath failed: Unknown error", z.name)
		return z.reply(1)
	}
	network.DropStack(z.tx, z.name)
	if !z.setState(world.ZoneConfigured) {
		return z.reply(25) // Z_UPDATING_INDEX
	}
	return z.reply(0)
}
