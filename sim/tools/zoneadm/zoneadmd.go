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
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file is the daemon that zoneadm(8) calls to change the state of a kernel
// zone: usr/src/cmd/zoneadmd/zoneadmd.c and vplat.c. It does one thing at a time.
// What takes time is scheduled, so that it happens although whoever called was
// killed.

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
	b, _ := brandOf(tx, brandName(z))
	z.Daemon = &world.Daemon{Command: command}
	return &zoneadmd{tx: tx, zone: z, brand: b, d: z.Daemon}
}

// resumeDaemon goes on with the command that it is about.
func resumeDaemon(tx *world.Tx, z *world.Zone) *zoneadmd {
	b, _ := brandOf(tx, brandName(z))
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
func (m *zoneadmd) hook(run func(h *hook, command int) int, command int) bool {
	if m.brand == nil || run == nil {
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
		resumeDaemon(tx, z).resume(e.Kind, e.Name)
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

// makeReady is vplat_create and vplat_bringup with the hooks around them. What
// fails after the kernel has the zone takes it down again without a word, but
// for the last hook.
func (m *zoneadmd) makeReady() bool {
	if !m.hook(m.brand.prestate, stateCommandReady) {
		return false
	}
	if !m.rootIsFree() {
		return false
	}
	k := zones.StartKernelZone(m.tx, m.zone)
	if !m.lendDatasets(k) || !m.mountAll(k) || !m.configureNetwork(k) {
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

// rootIsFree refuses a root that another zone has, or below which anything is
// mounted.
func (m *zoneadmd) rootIsFree() bool {
	root := m.zone.Root()
	for _, other := range m.tx.KernelZones() {
		if other != m.zone && other.Root() == root {
			return m.fail("zone root %s already in use by zone %s", root, other.Name)
		}
	}
	found := (&zoneadm{tx: m.tx}).mountsBelow(root)
	if len(found) == 0 {
		return true
	}
	m.fail("These file-systems are mounted on subdirectories of %s:", root)
	for _, dir := range found {
		m.say("  %s", dir)
	}
	return false
}

// lendDatasets gives the zone its datasets: zoned is set, and stays set.
func (m *zoneadmd) lendDatasets(k *world.Kernel) bool {
	for _, r := range k.Config.All("dataset") {
		name := r.Get("name")
		if zfs.FindDataset(m.tx, name) == nil {
			return m.fail("cannot open ZFS dataset '%s'", name)
		}
		if zoned, _ := zfs.Property(m.tx, name, "zoned"); zoned == "on" {
			continue
		}
		if err := zfs.SetProperties(m.tx, name, map[string]string{"zoned": "on"}); err != nil {
			return m.fail("cannot set 'zoned' property for ZFS dataset '%s'\n", name)
		}
	}
	return true
}

// mountAll mounts the brand's directories and the zone's file systems, those
// above before those below.
func (m *zoneadmd) mountAll(k *world.Kernel) bool {
	for _, dir := range m.brand.loops {
		if !m.loop(k, world.Loop{Dir: dir, Special: dir, ReadOnly: true}) {
			return false
		}
	}
	all := k.Config.All("fs")
	slices.SortStableFunc(all, func(a, b *world.Resource) int { return strings.Compare(a.Get("dir"), b.Get("dir")) })
	for _, r := range all {
		if !m.mountOne(k, r) {
			return false
		}
	}
	return true
}

func (m *zoneadmd) mountOne(k *world.Kernel, r *world.Resource) bool {
	dir, special := path.Clean(r.Get("dir")), path.Join("/", r.Get("special"))
	at := path.Join(m.zone.Root(), dir)
	switch r.Get("type") {
	case "lofs":
		readOnly := slices.ContainsFunc(r.Values("options"), func(o string) bool {
			return slices.Contains(strings.Split(o, ","), "ro")
		})
		return m.loop(k, world.Loop{Dir: dir, Special: special, ReadOnly: readOnly})
	case "zfs":
		if err := mkdirAll(m.tx.Files, at); err != nil {
			return m.fail("could not create directory %s: %s", at, cli.ErrnoText(err))
		}
		if err := zfs.MountAt(m.tx, r.Get("special"), at); err != nil {
			return m.fail("\"/usr/lib/fs/zfs/mount %s %s\" failed with exit code 111", r.Get("special"), at)
		}
	default: // tmpfs and others: an empty directory
		if err := mkdirAll(m.tx.Files, at); err != nil {
			return m.fail("could not create directory %s: %s", at, cli.ErrnoText(err))
		}
	}
	k.Mounts = append(k.Mounts, at)
	return true
}

// loop mounts a directory or file of the global zone in the zone. Where the
// mount point is missing it is made.
func (m *zoneadmd) loop(k *world.Kernel, l world.Loop) bool {
	at := path.Join(m.zone.Root(), l.Dir)
	info, err := m.tx.Files.Stat(l.Special)
	if err != nil {
		return m.fail("could not stat %s: %s", l.Special, cli.ErrnoText(err))
	}
	if !exists(m.tx, m.tx.ZonePathOf(m.zone.Name, l.Dir)) && !exists(m.tx, at) {
		if err = mkdirAll(m.tx.Files, path.Dir(at)); err == nil && info.Mode.IsDir() {
			err = m.tx.Files.Mkdir(at, 0o755)
		} else if err == nil {
			err = cli.WriteFile(m.tx.Files, at, nil, 0o644)
		}
		if err != nil {
			return m.fail("could not create directory %s: %s", at, cli.ErrnoText(err))
		}
	}
	k.Loops = append(k.Loops, l)
	k.Mounts = append(k.Mounts, at)
	return true
}

// loopOverlays shows the brand's overlays over its loops: the poststate hook
// mounts them there.
func (m *zoneadmd) loopOverlays(k *world.Kernel) {
	for _, o := range m.brand.overlays {
		k.Loops = append(k.Loops, world.Loop{Dir: "/" + o.dir, Special: path.Join(m.zone.Root(), o.dir)})
	}
}

// configureNetwork moves the zone's links into it
// (configure_exclusive_network_interfaces). A zone with a shared stack uses
// what is plumbed in the global zone.
func (m *zoneadmd) configureNetwork(k *world.Kernel) bool {
	if k.Config.IPType != "exclusive" {
		return true
	}
	for _, r := range k.Config.All("net") {
		if !m.addLink(r) {
			// Guess: the errno that zerror adds here is left over from another call.
			return m.fail("failed to add network device: No such file or directory")
		}
	}
	network.StartStack(m.tx, m.zone.Name)
	return true
}

func (m *zoneadmd) addLink(r *world.Resource) bool {
	name := r.Get("physical")
	if network.LinkPlumbed(m.tx, world.GlobalZone, name) {
		return m.fail("WARNING: skipping network interface '%s' which is used in the global zone", name)
	}
	if network.FindLink(m.tx, name) == nil {
		return false // dladm_name2info: nothing is said of its own
	}
	if err := network.LendLink(m.tx, m.zone.Name, name); err != nil {
		return m.fail("WARNING: unable to add network interface '%s': %s", name, err)
	}
	address := r.Get("allowed-address")
	if address == "" {
		return true
	}
	l := network.LinkIn(m.tx, m.zone.Name, name)
	host, _, _ := strings.Cut(address, "/")
	protect := []network.LinkSetting{{Name: "protection", Values: []string{"ip-nospoof"}}, {Name: "allowed-ips", Values: []string{host}}}
	for _, s := range protect {
		if err := network.SetLinkProperty(m.tx, l, s, true); err != nil {
			return m.fail("WARNING: unable to set %s on network interface '%s': %s", s.Name, name, err)
		}
	}
	return true
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
func (m *zoneadmd) bootUp() bool {
	k := m.zone.Kernel
	at := m.tx.ZonePathOf(m.zone.Name, m.brand.init)
	shown := m.zone.Root() + m.brand.init
	info, err := m.tx.Files.Stat(at)
	fault := m.tx.TakeFault([]string{"zoneadm", "-z", m.zone.Name, "boot"}, world.FaultBoot)
	switch {
	case fault != nil:
		// Guess: the words of zone_boot(2) in zone_bootup.
		m.fail("%s", cmp.Or(fault.Text, "unable to boot zone"))
	case err != nil:
		m.fail("could not stat %s: %s", shown, cli.ErrnoText(err))
	case info.Mode&0o100 == 0:
		m.fail("%s is not executable", shown)
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

// down is the end of taking the zone down (vplat_teardown). What goes wrong
// stops it there: the zone stays down, and halt may be tried again.
func (m *zoneadmd) down(why string) {
	k := m.zone.Kernel
	smf.HaltServices(m.tx, m.zone.Name)
	switch {
	case why == downStuck:
		k.State = world.ZoneDown
		m.fail("unable to unmount '%s'", m.zone.Root())
		m.fail("unable to unmount file systems in zone")
		m.fail("unable to destroy zone")
		return
	case len(network.ReturnLinks(m.tx, m.zone.Name)) > 0:
		k.State = world.ZoneDown
		m.fail("datalinks remain in zone after shutdown")
		m.fail("unable to unconfigure network interfaces in zone")
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

// dismantle takes away what bringUp has made, and the kernel zone.
func (m *zoneadmd) dismantle() {
	k := m.zone.Kernel
	network.ReturnLinks(m.tx, m.zone.Name)
	k.Mounts, k.Loops = nil, nil
	for _, r := range k.Config.All("fs") {
		if r.Get("type") != "zfs" {
			continue
		}
		if d := zfs.FindDataset(m.tx, r.Get("special")); d != nil && d.Mounted != "" {
			_ = zfs.Unmount(m.tx, d.Name, true) // forced: nothing keeps it
		}
	}
	network.ClearStack(m.tx, m.zone.Name)
	m.zone.Kernel = nil
}

// brandName is the brand of the kernel zone, or else of the configuration.
func brandName(z *world.Zone) string {
	if z.Kernel != nil {
		return z.Kernel.Config.Brand
	}
	return z.Config.Brand
}
