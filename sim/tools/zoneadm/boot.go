package zoneadm

import (
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
)

// This file has the commands that zoneadmd carries out: boot, ready, halt,
// reboot, shutdown, mount and unmount. What it says goes to standard error,
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

// daemon calls the zone's zoneadmd, waits until it is through, and tells what
// it said. Failed is zoneadm's own last line if it failed; it may be empty.
func (z *zoneadm) daemon(command, failed string, act func(m *zoneadmd)) cli.Reply {
	call := func(tx *world.Tx) cli.Reply {
		next := z.at(tx)
		if next.zone == nil {
			next.errf("zoneadm: %s: %s", z.name, zonecfg.NoZone)
			return next.reply(1)
		}
		m := startDaemon(tx, next.zone, command)
		act(m)
		return next.await(failed)
	}
	return z.locked(z.reply(0), func(z *zoneadm) cli.Reply {
		so := z.reply(0)
		so.Next = &cli.Next{Until: idle(z.name, command), Do: call}
		return so
	})
}

// await goes on when the daemon is through.
func (z *zoneadm) await(failed string) cli.Reply {
	if z.zone.Daemon == nil || !z.zone.Daemon.Busy {
		return z.told(failed)
	}
	so := z.reply(0)
	so.Next = &cli.Next{Until: idle(z.name, ""), Do: func(tx *world.Tx) cli.Reply { return z.at(tx).told(failed) }}
	return so
}

// told prints what the daemon had to say.
func (z *zoneadm) told(failed string) cli.Reply {
	if z.zone == nil || z.zone.Daemon == nil {
		return z.reply(0)
	}
	d := z.zone.Daemon
	z.zone.Daemon = nil
	z.relay(d.Lines)
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

// bootArguments joins the operands; more than 256 characters are refused.
func (z *zoneadm) bootArguments(operands []string) (string, bool) {
	joined := strings.Join(operands, " ")
	if len(joined) >= 256 { // BOOTARGS_MAX in usr/src/uts/common/sys/zone.h
		z.say("Boot argument list too long")
		return "", false
	}
	return joined, true
}

// unusedArguments are those that no zone takes: -m, -i and -s are taken.
func unusedArguments(joined string) string {
	var unused []string
	words := strings.Fields(joined)
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "-s":
		case "-m", "-i":
			i++
		default:
			unused = append(unused, words[i])
		}
	}
	return strings.Join(unused, " ")
}

func (z *zoneadm) boot(args []string) cli.Reply {
	options, operands := cli.Getopt(args, "?fsX", nil)
	if r := z.asked("boot", args, options); r != nil {
		return *r
	}
	force := false
	for _, o := range options {
		force = force || o.Letter == 'f'
	}
	arguments, ok := z.bootArguments(operands)
	if !ok || !z.sane(zoneCheck{command: "boot", force: force}) || !z.verify("boot") {
		return z.reply(1)
	}
	return z.daemon("boot", daemonFailed, func(m *zoneadmd) { m.boot(force, arguments) })
}

func (m *zoneadmd) boot(force bool, arguments string) {
	switch state := m.zone.Current(); {
	case state == world.ZoneMounted, state == world.ZoneConfigured, state == world.ZoneIncomplete && !force:
		m.invalid("boot")
		return
	case state == world.ZoneRunning || state == world.ZoneShuttingDown || state == world.ZoneDown:
		m.say("zone is already booted")
		return
	case state != world.ZoneReady && !m.bringUp():
		if m.zone.Kernel != nil {
			m.giveUp()
		}
		return
	}
	if unused := unusedArguments(arguments); unused != "" {
		// Guess: the words behind "Unused or invalid boot arguments".
		m.say("WARNING: Unused or invalid boot arguments were specified: %s", unused)
	}
	m.bootUp()
}

func (z *zoneadm) ready(args []string) cli.Reply {
	options, operands := cli.Getopt(args, "?X", nil)
	if r := z.asked("ready", args, options); r != nil {
		return *r
	}
	if len(operands) > 0 {
		return z.subUsage("ready")
	}
	if !z.sane(zoneCheck{command: "ready"}) || !z.verify("ready") {
		return z.reply(1)
	}
	return z.daemon("ready", daemonFailed, func(m *zoneadmd) {
		switch m.zone.Current() {
		case world.ZoneInstalled:
			m.bringUp()
		case world.ZoneReady:
			m.say("zone is already ready")
		case world.ZoneMounted:
			m.invalid("ready")
		default:
			m.startDown(downToReady)
		}
	})
}

func (z *zoneadm) halt(args []string) cli.Reply {
	options, operands := cli.Getopt(args, "?X", nil)
	if r := z.asked("halt", args, options); r != nil {
		return *r
	}
	if len(operands) > 0 {
		return z.subUsage("halt")
	}
	if !z.sane(zoneCheck{command: "halt"}) || !z.brandVerify("halt") {
		return z.reply(1)
	}
	if z.zone.Current() == world.ZoneConfigured {
		z.errf("cannot manage a zone which is in state 'configured'\nzone '%s': could not start zoneadmd", z.name)
		return z.reply(1)
	}
	return z.daemon("halt", "", func(m *zoneadmd) {
		switch m.zone.Current() {
		case world.ZoneInstalled:
			m.say("zone is already halted")
		case world.ZoneConfigured, world.ZoneIncomplete, world.ZoneMounted:
			m.invalid("halt")
		default:
			m.tx.Cancel(eventHalt, m.zone.Name, "")
			m.startDown(z.downFault(m.tx))
		}
	})
}

// downFault is a halt that a fault makes stop halfway.
func (z *zoneadm) downFault(tx *world.Tx) string {
	if tx.TakeFault(cli.Words(z.call), world.FaultDown) != nil {
		return downStuck
	}
	return ""
}

func (z *zoneadm) reboot(args []string) cli.Reply {
	options, operands := cli.Getopt(args, "?X", nil)
	if r := z.asked("reboot", args, options); r != nil {
		return *r
	}
	if _, ok := z.bootArguments(operands); !ok {
		return z.reply(1)
	}
	if !z.sane(zoneCheck{command: "reboot", running: true}) || !z.verify("reboot") {
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
func (z *zoneadm) shutdown(args []string) cli.Reply {
	options, operands := cli.Getopt(args, "?r", nil)
	if r := z.asked("shutdown", args, options); r != nil {
		return *r
	}
	_, ok := z.bootArguments(operands)
	if !ok || !z.sane(zoneCheck{command: "shutdown", running: true}) {
		return z.reply(1)
	}
	switch state := z.zone.Current(); {
	case z.zone.Daemon != nil && z.zone.Daemon.Busy && z.zone.Daemon.Command == "shutdown":
		z.relay([]string{"shutdown already in progress"})
		return z.reply(1)
	case state == world.ZoneReady || state == world.ZoneMounted:
		z.relay([]string{"shutdown operation is invalid for zones in state '" + state + "'"})
		return z.reply(1)
	case state != world.ZoneRunning:
		z.relay([]string{"unable to shutdown zone"})
		return z.reply(1)
	}
	if f := z.tx.TakeFault(cli.Words(z.call), world.FaultShutdownTimeout); f != nil {
		return z.later(f.Delay, func(z *zoneadm) cli.Reply {
			z.relay([]string{"unable to shutdown zone"})
			return z.reply(1)
		})
	}
	m := startDaemon(z.tx, z.zone, "shutdown")
	m.later(world.StepHalt, eventHalt, "")
	return z.whenDown(func(z *zoneadm) cli.Reply {
		if z.zone != nil && z.zone.Kernel != nil {
			z.relay([]string{"unable to shutdown zone"})
			return z.reply(1)
		}
		so := z.told("")
		if so.Exit == 0 && len(options) > 0 {
			so.Add(z.at(z.tx).boot(append([]string{"--"}, operands...)))
		}
		return so
	})
}

// later goes on after a time.
func (z *zoneadm) later(wait time.Duration, then func(z *zoneadm) cli.Reply) cli.Reply {
	so := z.reply(0)
	so.Next = &cli.Next{After: wait, Do: func(tx *world.Tx) cli.Reply { return then(z.at(tx)) }}
	return so
}

// whenDown goes on when the kernel does not have the zone any more, or the
// daemon has given up.
func (z *zoneadm) whenDown(then func(z *zoneadm) cli.Reply) cli.Reply {
	down := func(tx *world.Tx) bool {
		now := tx.FindZone(z.name)
		return now == nil || now.Kernel == nil || now.Daemon == nil || !now.Daemon.Busy
	}
	if down(z.tx) {
		return then(z)
	}
	so := z.reply(0)
	so.Next = &cli.Next{Until: down, Do: func(tx *world.Tx) cli.Reply { return then(z.at(tx)) }}
	return so
}
