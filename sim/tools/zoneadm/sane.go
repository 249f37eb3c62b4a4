package zoneadm

import (
	"strings"

	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// zoneCheck is what a command needs of its zone: the arguments of sanity_check.
type zoneCheck struct {
	command   string
	running   bool // the kernel must have the zone
	exclusive bool // it must not
	force     bool
}

// sane is sanity_check: the refusals in their order. It is true if there is none.
func (z *zoneadm) sane(c zoneCheck) bool {
	switch {
	case z.call.Zone != world.GlobalZone:
		z.refuseInside(c.command)
	case !z.named:
		z.say("no zone specified")
	case z.name == world.GlobalZone:
		z.say("%s operation is invalid for the global zone.", c.command)
	case strings.HasPrefix(z.name, "SUNW"):
		z.say("%s operation is invalid for zones starting with SUNW.", c.command)
	case z.zone == nil:
		z.errf("zoneadm: %s: could not get state: %s", z.name, zonecfg.NoZone)
	case c.running && !c.force:
		if z.kernel() != nil {
			return true
		}
		z.say("not running")
	case c.exclusive && z.kernel() != nil:
		z.say("%s operation is invalid for %s zones.", c.command, z.zone.Kernel.State)
	default:
		return z.saneState(c)
	}
	return false
}

// kernel is the kernel zone as zone_list(2) has it. A zone that zoneadm mount has
// made is one of them, under its own name: only that of an alternate root has
// another (vplat_create in usr/src/cmd/zoneadmd/vplat.c).
func (z *zoneadm) kernel() *world.Kernel {
	if z.zone == nil {
		return nil
	}
	return z.zone.Kernel
}

func (z *zoneadm) refuseInside(command string) {
	switch command {
	case "halt", "shutdown", "reboot":
		z.say("use %s(8) to %s this zone.", command, command)
	default:
		z.say("must be in the global zone to %s a zone.", command)
	}
}

// saneState tests the state for the commands that it matters to.
func (z *zoneadm) saneState(c zoneCheck) bool {
	state := z.zone.Current()
	below := func(least string) bool {
		if zones.ZoneRank(state) >= zones.ZoneRank(least) {
			return false
		}
		z.say("must be %s before %s.", least, c.command)
		return true
	}
	incomplete := func() bool {
		if state != world.ZoneIncomplete || c.force {
			return false
		}
		z.say("zone is incomplete; uninstall required.")
		return true
	}
	switch c.command {
	case "uninstall":
		if state == world.ZoneConfigured {
			z.say("is already in state 'configured'.")
			return false
		}
	case "clone", "install":
		if state == world.ZoneInstalled {
			z.say("is already installed.")
			return false
		}
		return !incomplete()
	case "ready":
		return !below(world.ZoneInstalled)
	case "boot", "mount":
		if c.force {
			return !below(world.ZoneIncomplete)
		}
		return !below(world.ZoneInstalled)
	case "verify":
		return !incomplete()
	case "unmount":
		if state != world.ZoneMounted {
			z.say("must be mounted before unmount.")
			return false
		}
	case "sysboot":
		if state != world.ZoneInstalled {
			z.say("sysboot operation is invalid for %s zones.", state)
			return false
		}
	}
	return true
}
