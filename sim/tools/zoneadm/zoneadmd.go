package zoneadm

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file is the daemon that zoneadm(8) calls to change the state of a kernel
// zone: usr/src/cmd/zoneadmd/zoneadmd.c and vplat.c. It does one thing at a time.
// What takes time is scheduled, so that it happens although the caller was killed.

// zoneadmd is the daemon of one zone in one transaction.
type zoneadmd struct {
	tx    *world.Tx
	zone  *world.Zone
	brand *brand
	d     *world.Daemon
}

// The events of the daemon. The name says what the zone goes down for.
const (
	eventBoot = "zone-boot"
	eventHalt = "zone-halt"

	downToReboot = "reboot"
	downToReady  = "ready"
	downStuck    = "stuck"
)

// startDaemon takes up a command. What it had to say last is forgotten.
func startDaemon(tx *world.Tx, z *world.Zone, command string) *zoneadmd {
	z.Daemon = &world.Daemon{Command: command}
	return theDaemon(tx, z)
}

// theDaemon is the daemon of a zone whose command runs.
func theDaemon(tx *world.Tx, z *world.Zone) *zoneadmd {
	name := z.Config.Brand
	if z.Kernel != nil {
		name = z.Kernel.Config.Brand
	}
	b, _ := brandOf(tx, name)
	if z.Daemon == nil {
		z.Daemon = &world.Daemon{}
	}
	z.Daemon.Busy = false
	return &zoneadmd{tx: tx, zone: z, brand: b, d: z.Daemon}
}

func (m *zoneadmd) say(format string, args ...any) {
	m.d.Lines = append(m.d.Lines, fmt.Sprintf(format, args...))
}

// fail says why, and that it failed.
func (m *zoneadmd) fail(format string, args ...any) bool {
	m.say(format, args...)
	m.d.Failed = true
	return false
}

// hook runs a state-change hook; what it prints, the daemon says.
//
// Guess hook-errors-behind-its-output: what a brand's hook prints on standard error is passed on
// behind what it prints on standard output.
// Check: a hook that does both
func (m *zoneadmd) hook(run func(h *hook, command int) int, command int) bool {
	if run == nil {
		return true
	}
	h := &hook{tx: m.tx, brand: m.brand, zone: m.zone.Name, path: m.zone.Path()}
	code := run(h, command)
	for line := range strings.Lines(h.out.String() + h.err.String()) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			m.say("%s", line)
		}
	}
	m.d.Failed = m.d.Failed || code != hookOK
	return code == hookOK
}

// later schedules the rest of a command, or goes on at once if that takes no
// time.
func (m *zoneadmd) later(step, event, name string) {
	wait := m.tx.Latency(step)
	if wait == 0 {
		m.resume(event, name)
		return
	}
	m.d.Busy = true
	m.tx.Schedule(wait, event, m.zone.Name, name)
}

func (m *zoneadmd) resume(event, name string) {
	if event == eventBoot {
		m.run()
		return
	}
	m.down(name)
}

// Handlers carry out what zoneadmd and svc:/system/zones have scheduled.
func Handlers() world.Handlers {
	resume := func(tx *world.Tx, e *world.Event) {
		z := tx.FindZone(e.Zone)
		if z == nil || z.Kernel == nil {
			return
		}
		theDaemon(tx, z).resume(e.Kind, e.Name)
		z.SettleDaemon()
	}
	return world.Handlers{eventBoot: resume, eventHalt: resume, eventUnconfigure: func(tx *world.Tx, e *world.Event) {
		if z := tx.FindZone(e.Zone); z != nil {
			unconfigure(tx, z, e.Name)
		}
	}}
}

// bringUp makes the zone ready (zone_ready). If that fails, the brand is told
// that the zone is halted.
func (m *zoneadmd) bringUp() bool {
	if m.makeReady() {
		return true
	}
	m.hook(m.brand.poststate, stateCommandHalt)
	return false
}

// makeReady is vplat_create and vplat_bringup with the hooks around them. A
// failure after the kernel has the zone takes it down again, and only the last hook
// may print something.
func (m *zoneadmd) makeReady() bool {
	k := m.begin()
	if k == nil {
		return false
	}
	if !m.mountAll(k) || !m.configureNetwork(k) {
		m.d.Failed = true
		m.dismantle()
		return false
	}
	m.writeOwnIndex()
	if m.brand.overlays != nil {
		m.loopOverlays(k)
	}
	return m.hook(m.brand.poststate, stateCommandReady)
}

// begin gives the kernel the zone, unless the hook fails or another zone has its
// root; nor may anything be mounted below that.
func (m *zoneadmd) begin() *world.Kernel {
	if !m.hook(m.brand.prestate, stateCommandReady) {
		return nil
	}
	root := m.zone.Root()
	used := slices.ContainsFunc(m.tx.KernelZones(), func(z *world.Zone) bool { return z != m.zone && z.Root() == root })
	if used || len(mountsBelow(m.tx, root)) > 0 {
		m.fail("not simulated: zone root %s already in use", root) // no command: a reboot's end may come here
		return nil
	}
	return zones.StartKernelZone(m.tx, m.zone)
}

// writeOwnIndex writes the zone's line of /etc/zones/index inside the zone; if
// that cannot be, nobody minds (write_index_file in vplat.c).
func (m *zoneadmd) writeOwnIndex() {
	dir := path.Join(m.zone.Root(), "etc/zones")
	if mkdirAll(m.tx.Files, dir) == nil {
		_ = cli.WriteFile(m.tx.Files, dir+"/index", []byte(m.zone.Name+":installed:/:"+m.zone.UUID+"\n"), 0o644)
	}
}

// bootUp starts what makes a ready zone run: init must be there.
//
// Guess words-for-a-failed-zone-boot: what zoneadmd says when zone_boot(2) fails.
// Check: nothing, until it occurs
func (m *zoneadmd) bootUp() bool {
	k := m.zone.Kernel
	at := m.tx.ZonePathOf(m.zone.Name, m.brand.init)
	shown := m.zone.Root() + m.brand.init
	info, err := m.tx.Files.Stat(at)
	fault := m.tx.TakeFault([]string{"zoneadm", "-z", m.zone.Name, "boot"}, world.FaultBoot)
	switch {
	case fault != nil:
		m.fail("%s", cmp.Or(fault.Text, "unable to boot zone"))
	case err != nil || info.Mode&0o100 == 0:
		m.fail("not simulated: a zone without %s", shown)
	default:
		k.State = world.ZoneReady
		m.later(world.StepBoot, eventBoot, "")
		return true
	}
	m.hook(m.brand.poststate, stateCommandHalt)
	m.giveUp()
	return false
}

// giveUp halts a zone that does not come up.
func (m *zoneadmd) giveUp() {
	m.hook(m.brand.prestate, stateCommandHalt)
	m.dismantle()
	m.hook(m.brand.poststate, stateCommandHalt)
}

// run is the end of a boot: init has been started.
func (m *zoneadmd) run() {
	m.zone.Kernel.State = world.ZoneRunning
	smf.BootServices(m.tx, m.zone.Name)
}

// startDown begins to take the zone down (zone_halt): its processes are killed,
// for which the kernel takes its time if there are any.
func (m *zoneadmd) startDown(why string) {
	k := m.zone.Kernel
	m.hook(m.brand.prestate, stateCommandHalt)
	processes := k.State == world.ZoneRunning
	smf.HaltServices(m.tx, m.zone.Name)
	if k.State != world.ZoneDown {
		k.State = world.ZoneShuttingDown
	}
	if !processes {
		m.down(why)
		return
	}
	m.later(world.StepHalt, eventHalt, why)
}

// down is the end of taking the zone down (vplat_teardown). A failure
// stops it there: the zone stays down, and halt may be tried again.
//
// Guess lines-of-a-stuck-halt: which lines a halt prints that is stuck on an unmount, and in which
// order (vplat.c).
// Check: halt a zone while a shell of the global zone is in its root
func (m *zoneadmd) down(why string) {
	k := m.zone.Kernel
	smf.HaltServices(m.tx, m.zone.Name)
	network.ClearProtection(m.tx, m.zone.Name)
	var stuck []string
	if why == downStuck {
		stuck = []string{"unable to unmount '" + m.zone.Root() + "'", "unable to unmount file systems in zone"}
	} else if len(network.ReturnLinks(m.tx, m.zone.Name)) > 0 {
		stuck = []string{"datalinks remain in zone after shutdown", "unable to unconfigure network interfaces in zone"}
	}
	if stuck != nil {
		k.State = world.ZoneDown
		m.d.Lines = append(m.d.Lines, stuck...)
		m.fail("unable to destroy zone")
		return
	}
	m.dismantle()
	m.hook(m.brand.poststate, stateCommandHalt)
	if m.d.Failed {
		return
	}
	switch why {
	case downToReady:
		m.bringUp()
	case downToReboot:
		if m.bringUp() {
			m.bootUp()
		}
	}
}

// dismantle removes what bringUp made, and the kernel zone.
func (m *zoneadmd) dismantle() {
	network.ReturnLinks(m.tx, m.zone.Name)
	network.ClearStack(m.tx, m.zone.Name)
	m.zone.Kernel = nil
}
