package zoneadm

import (
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file has mark, sysboot, mount and unmount.

// mark sets the state of the index.
func (z *zoneadm) mark(args []string) cli.Reply {
	options, operands := plain(args, "F")
	states := []string{world.ZoneIncomplete}
	if len(options) > 0 {
		states = append(states, world.ZoneConfigured, world.ZoneInstalled)
	}
	cli.Simulated(len(operands) == 1 && slices.Contains(states, operands[0]))
	if !z.sane("mark") || !z.brandVerify("mark") {
		return z.reply(1)
	}
	return z.locked(func(z *zoneadm) cli.Reply {
		z.setState(operands[0])
		return z.reply(0)
	})
}

// sysboot is what svc:/system/zones calls for zones that it does not boot.
//
// Guess failed-sysboot-exits-40: the exit code of a sysboot whose hook fails (40) is that of
// libzonecfg's list.
// Check: `zoneadm -z ZONE sysboot` of a zone whose root is busy
func (z *zoneadm) sysboot(args []string) cli.Reply {
	cli.Simulated(len(args) == 0)
	if !z.sane("sysboot") {
		return z.reply(1)
	}
	h := z.hook()
	if z.brand.sysboot != nil && z.took(h, z.brand.sysboot(h)) != hookOK {
		return z.reply(40) // Z_BRAND_ERROR
	}
	return z.reply(0)
}

// mount makes a scratch zone: the root is mounted, and nothing of the zone
// runs. It is for installers, and has no usage.
func (z *zoneadm) mount(args []string) cli.Reply {
	cli.Simulated(len(args) == 0)
	if !z.sane("mount") || !z.verify("mount") {
		return z.reply(1)
	}
	return z.daemon("mount", daemonFailed, (*zoneadmd).mount)
}

// mount makes a scratch zone of its own name. Inside, /etc and /var are the zone's,
// /a is its root, and all else the global zone's (build_mounted_pre_var and
// build_mounted_post_var in vplat.c).
//
// Guess inside-of-a-mounted-zone: inside a mounted zone, /etc and /var are the zone's, /a its root,
// and the rest the global zone's.
// Check: `zlogin -S ZONE ls / /a` in a zone that `zoneadm mount` has mounted
func (m *zoneadmd) mount() {
	if state := m.zone.Current(); state != world.ZoneInstalled && state != world.ZoneIncomplete {
		cli.Simulated(state != world.ZoneMounted)
		m.invalid("mount")
		return
	}
	k := m.begin()
	if k == nil {
		return
	}
	k.State = world.ZoneMounted
	root := m.zone.Root()
	k.Loops = []world.Loop{{Dir: "/", Special: "/", ReadOnly: true}, {Dir: "/etc", Special: root + "/etc"},
		{Dir: "/var", Special: root + "/var"}, {Dir: "/a", Special: root}}
	m.hook(m.brand.poststate, stateCommandReady)
}

func (z *zoneadm) unmount(args []string) cli.Reply {
	cli.Simulated(len(args) == 0)
	if !z.sane("unmount") {
		return z.reply(1)
	}
	return z.daemon("unmount", daemonFailed, (*zoneadmd).unmount)
}

// unmount is giveUp of a scratch zone.
func (m *zoneadmd) unmount() {
	if m.zone.Current() != world.ZoneMounted {
		m.invalid("unmount")
		return
	}
	m.giveUp()
}
