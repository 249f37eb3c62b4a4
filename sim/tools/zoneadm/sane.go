package zoneadm

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// sane is sanity_check, what a command needs of its zone: the refusals in their
// order. It is true if there is none.
func (z *zoneadm) sane(command string) bool {
	commands := func(names ...string) bool { return slices.Contains(names, command) }
	switch {
	case z.call.Zone != world.GlobalZone:
		cli.Simulated(!commands("halt", "shutdown", "reboot")) // which have words of their own
		z.say("must be in the global zone to %s a zone.", command)
	case z.name == world.GlobalZone:
		z.say("%s operation is invalid for the global zone.", command)
	case strings.HasPrefix(z.name, "SUNW"):
		z.say("%s operation is invalid for zones starting with SUNW.", command)
	// A zone that zoneadm mount has made is one of the kernel's, under its own name: only
	// that of an alternate root has another (vplat_create in usr/src/cmd/zoneadmd/vplat.c).
	case commands("reboot", "shutdown") && z.zone.Kernel == nil:
		z.say("not running")
	case commands("install", "clone", "uninstall", "mark", "sysboot") && z.zone.Kernel != nil:
		z.say("%s operation is invalid for %s zones.", command, z.zone.Kernel.State)
	default:
		return z.saneState(command)
	}
	return false
}

// saneState tests the state for the commands that it matters to.
func (z *zoneadm) saneState(command string) bool {
	state := z.zone.Current()
	says := func(bad bool, format string, args ...any) bool {
		if bad {
			z.say(format, args...)
		}
		return !bad
	}
	switch command {
	case "uninstall":
		return says(state == world.ZoneConfigured, "is already in state 'configured'.")
	case "clone", "install":
		return says(state == world.ZoneInstalled, "is already installed.") &&
			says(state == world.ZoneIncomplete, "zone is incomplete; uninstall required.")
	case "ready", "boot", "mount":
		return says(zones.ZoneRank(state) < zones.ZoneRank(world.ZoneInstalled), "must be installed before %s.", command)
	case "unmount":
		return says(state != world.ZoneMounted, "must be mounted before unmount.")
	case "sysboot":
		return says(state != world.ZoneInstalled, "sysboot operation is invalid for %s zones.", state)
	}
	return true
}
