package zoneadm

import (
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// mount makes a scratch zone: the root is mounted, and nothing of the zone
// runs. It is for installers, and has no usage.
func (z *zoneadm) mount(args []string) cli.Reply {
	options, operands := cli.Getopt(args, "f", nil)
	if len(operands) > 0 || len(options) > 0 && options[0].Bad != "" {
		return z.reply(2)
	}
	if !z.sane(zoneCheck{command: "mount", force: len(options) > 0}) || !z.verify("mount") {
		return z.reply(1)
	}
	return z.daemon("mount", daemonFailed, (*zoneadmd).mount)
}

// mount makes a scratch zone of its own name. Inside, /etc and /var are the zone's,
// /a is its root, and all else the global zone's (build_mounted_pre_var and
// build_mounted_post_var in vplat.c).
func (m *zoneadmd) mount() {
	switch m.zone.Current() {
	case world.ZoneInstalled, world.ZoneIncomplete:
		if !m.hook(m.brand.prestate, stateCommandReady) || !m.rootIsFree() {
			return
		}
		k := zones.StartKernelZone(m.tx, m.zone)
		k.State = world.ZoneMounted
		root := m.zone.Root()
		k.Loops = []world.Loop{{Dir: "/", Special: "/", ReadOnly: true}, {Dir: "/etc", Special: root + "/etc"},
			{Dir: "/var", Special: root + "/var"}, {Dir: "/a", Special: root}}
		m.hook(m.brand.poststate, stateCommandReady)
	case world.ZoneMounted:
		m.say("zone is already mounted")
	default:
		m.invalid("mount")
	}
}

func (z *zoneadm) unmount(args []string) cli.Reply {
	if len(args) > 0 {
		return z.reply(2)
	}
	if !z.sane(zoneCheck{command: "unmount"}) {
		return z.reply(1)
	}
	return z.daemon("unmount", daemonFailed, (*zoneadmd).unmount)
}

func (m *zoneadmd) unmount() {
	if m.zone.Current() != world.ZoneMounted {
		m.invalid("unmount")
		return
	}
	m.hook(m.brand.prestate, stateCommandHalt)
	m.dismantle()
	m.hook(m.brand.poststate, stateCommandHalt)
}
