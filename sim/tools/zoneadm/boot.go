package zoneadm

import (
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file has the commands that zoneadmd carries out: boot, ready, halt,
// reboot and shutdown, as mount and unmount are. What it says goes to standard error,
// also when all is well: "zone is already booted" is no failure (server in
// usr/src/cmd/zoneadmd/zoneadmd.c).

// idle says whether the daemon of a zone can take up a command. While it waits
// for the zone to shut down by itself, halt is one.
func idle(zone, command string) func(*world.Tx) bool {
	return func(tx *world.Tx) bool {
		z := tx.FindZone(zone)
		return z == nil || z.Daemon == nil || !z.Daemon.Busy || z.Daemon.Command == "shutdown" && command == "halt"
	}
}

// daemon calls the zone's zoneadmd, waits until it is through, and prints what it
// said. Failed is zoneadm's own last line if it failed; it may be empty.
func (z *zoneadm) daemon(command, failed string, act func(m *zoneadmd)) cli.Reply {
	return z.locked(func(z *zoneadm) cli.Reply {
		return z.next(cli.Next{Until: idle(z.name, command)}, func(z *zoneadm) cli.Reply {
			act(startDaemon(z.tx, z.zone, command))
			return z.await(failed)
		})
	})
}

// await goes on when the daemon is through.
func (z *zoneadm) await(failed string) cli.Reply {
	if idle(z.name, "")(z.tx) {
		return z.told(failed)
	}
	so := z.reply(0)
	so.Next = &cli.Next{Until: idle(z.name, ""), Do: func(tx *world.Tx) cli.Reply {
		if tx.FindZone(z.name) == nil {
			return cli.Reply{}
		}
		return z.then(func(z *zoneadm) cli.Reply { return z.told(failed) })(tx)
	}}
	return so
}

// told prints what the daemon had to say.
func (z *zoneadm) told(failed string) cli.Reply {
	d := z.zone.Daemon
	z.zone.Daemon = nil
	if d == nil {
		return z.reply(0)
	}
	z.relay(d.Lines...)
	if !d.Failed {
		return z.reply(0)
	}
	if failed != "" {
		z.say("%s", failed)
	}
	return z.reply(1)
}

const daemonFailed = "call to zoneadmd failed"

// invalid is what the daemon says to a command that the state does not allow.
func (m *zoneadmd) invalid(command string) {
	m.fail("%s operation is invalid for zones in state '%s'", command, m.zone.Current())
}

func (z *zoneadm) boot(args []string) cli.Reply {
	cli.Simulated(len(args) == 0)
	if !z.sane("boot") || !z.verify("boot") {
		return z.reply(1)
	}
	return z.daemon("boot", daemonFailed, func(m *zoneadmd) {
		switch m.zone.Current() {
		case world.ZoneReady:
			m.bootUp()
		case world.ZoneInstalled:
			if m.bringUp() {
				m.bootUp()
			} else if m.zone.Kernel != nil {
				m.giveUp()
			}
		case world.ZoneRunning, world.ZoneShuttingDown, world.ZoneDown:
			m.say("zone is already booted")
		default:
			m.invalid("boot")
		}
	})
}

func (z *zoneadm) ready(args []string) cli.Reply {
	cli.Simulated(len(args) == 0)
	if !z.sane("ready") || !z.verify("ready") {
		return z.reply(1)
	}
	return z.daemon("ready", daemonFailed, func(m *zoneadmd) {
		switch m.zone.Current() {
		case world.ZoneInstalled:
			m.bringUp()
		case world.ZoneReady:
			m.say("zone is already ready")
		case world.ZoneRunning, world.ZoneShuttingDown, world.ZoneDown:
			m.startDown(downToReady)
		default:
			m.invalid("ready")
		}
	})
}

func (z *zoneadm) halt(args []string) cli.Reply {
	cli.Simulated(len(args) == 0)
	if !z.sane("halt") || !z.brandVerify("halt") {
		return z.reply(1)
	}
	cli.Simulated(z.zone.Current() != world.ZoneConfigured) // which has no zoneadmd
	return z.daemon("halt", "", func(m *zoneadmd) {
		switch m.zone.Current() {
		case world.ZoneInstalled:
			m.say("zone is already halted")
		case world.ZoneConfigured, world.ZoneIncomplete, world.ZoneMounted:
			m.invalid("halt")
		default:
			m.tx.Cancel(eventHalt, m.zone.Name, "")
			why := ""
			if m.tx.TakeFault(cli.Words(z.call), world.FaultDown) != nil {
				why = downStuck
			}
			m.startDown(why)
		}
	})
}

func (z *zoneadm) reboot(args []string) cli.Reply {
	cli.Simulated(len(args) == 0)
	if !z.sane("reboot") || !z.verify("reboot") {
		return z.reply(1)
	}
	return z.daemon("reboot", "", func(m *zoneadmd) {
		switch m.zone.Current() {
		case world.ZoneRunning, world.ZoneShuttingDown, world.ZoneDown:
			m.tx.Cancel(eventHalt, m.zone.Name, "")
			m.startDown(downToReboot)
		default:
			m.invalid("reboot")
		}
	})
}

// shutdown runs the brand's command inside the zone, and waits until the zone
// is down. It holds no lock meanwhile, so halt can cut it short.
//
// Guess halt-cuts-shutdown-short: a halt cuts a waiting shutdown short, and that one exits with 0.
// Check: both at once
func (z *zoneadm) shutdown(args []string) cli.Reply {
	cli.Simulated(len(args) == 0)
	if !z.sane("shutdown") {
		return z.reply(1)
	}
	if f := z.tx.TakeFault(cli.Words(z.call), world.FaultShutdownTimeout); f != nil {
		return z.next(cli.Next{After: f.Delay}, func(z *zoneadm) cli.Reply {
			z.relay("unable to shutdown zone")
			return z.reply(1)
		})
	}
	cli.Simulated(z.zone.Current() == world.ZoneRunning && idle(z.name, "")(z.tx))
	m := startDaemon(z.tx, z.zone, "shutdown")
	m.later(world.StepHalt, eventHalt, "")
	return z.await("")
}
