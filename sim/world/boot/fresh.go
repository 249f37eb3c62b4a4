package boot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// Options say which sled to make. The zero value is an OmniOS sled without
// latencies, with two M.2 and four U.2 disks (SmartOS: none), a pool on each, and two links.
type Options struct {
	Seed    uint64
	Mode    world.Mode // empty: OmniOS
	Latency string     // none, helios2021, helios; empty: none
	M2, U2  int        // how many disks; 0: two and four, on SmartOS none; negative: none
	Links   int        // how many physical links; 0: two; negative: none
	Blank   bool       // the M.2 and U.2 disks carry no pools

	// Ramdisk lets an OmniOS sled have its root on a RAM disk, as Helios has: what
	// clones zones forgets them then.
	Ramdisk bool
	// Installed lets a Helios sled have its root on a pool, as a workstation that it
	// was installed on.
	Installed bool
	// Build is how the sled's propolis-server was built: development or
	// omicron-build; empty: development.
	Build string
	// Processors is how many the sled has; 0: 128.
	Processors int
	// Methods lets the methods of services in the global zone run as programs of the
	// computer, by the process that lets time pass for the stand-in commands.
	Methods bool
	// Image names files that the maker of the sled adds to its system's image:
	// they outlive a reboot also where the root does not.
	Image []string
	// Files are such files, by absolute name, that are there before the sled is.
	Files map[string]string
}

// maxProcessors is how many a simulated sled can have: more than any machine that VMs run on.
const maxProcessors = 1024

// Check refuses options that no sled can have.
func (o Options) Check() error {
	switch o.Mode {
	case "", world.OmniOS, world.Helios, world.SmartOS:
	default:
		return fmt.Errorf("mode %q: want omnios, helios or smartos", o.Mode)
	}
	switch o.Latency {
	case "", "none", "helios2021", "helios":
	default:
		return fmt.Errorf("latency %q: want none, helios2021 or helios", o.Latency)
	}
	switch o.Build {
	case "", world.DevelopmentBuild, world.OmicronBuild:
	default:
		return fmt.Errorf("server-build %q: want %s or %s", o.Build, world.DevelopmentBuild, world.OmicronBuild)
	}
	if o.Processors < 0 || o.Processors > maxProcessors {
		return fmt.Errorf("processors %d: want 1 to %d", o.Processors, maxProcessors)
	}
	if o.Installed && (o.Mode != world.Helios || o.Ramdisk) {
		return fmt.Errorf("a system that is installed on a pool is helios' choice, and no RAM disk's")
	}
	return nil
}

// howMany reads a count of Options.
func howMany(n, usual int) int { return max(0, cmp.Or(n, usual)) }

// Fresh is a sled that has just been booted for the first time, without the
// files that belong to it (see LayRoot).
func Fresh(o Options) *world.State {
	now := world.Now()
	s := &world.State{
		Format:  world.Format,
		Seed:    o.Seed,
		Mode:    cmp.Or(o.Mode, world.OmniOS),
		Latency: cmp.Or(o.Latency, "none"),
		Image:   append(slices.Clone(o.Image), slices.Sorted(maps.Keys(o.Files))...),
		Ramdisk: o.Ramdisk,
		Build:   o.Build,

		Processors: o.Processors,
		Methods:    o.Methods,

		Installed: o.Installed,
		Booted:    now,
		Boots:     1,
		Counters:  map[string]uint64{},
		Datasets:  map[string]*world.Dataset{},
		Services:  map[string]*world.Repository{world.GlobalZone: smf.GlobalServices(now)},
	}
	tx := world.NewTx(s, now, nil)
	freshRoot(tx)
	if tx.State.Mode == world.SmartOS {
		freshSmartOS(tx)
	}
	m2, u2 := 2, 4
	if s.Mode == world.SmartOS {
		m2, u2 = 0, 0
	}
	for i := range howMany(o.M2, m2) {
		// The slots of a Gimlet (omicron sled-hardware, illumos/gimlet.rs).
		freshDisk(tx, "m2", "oxi_", fmt.Sprintf("c%dt0d0", 1+i), 0x11+i, 960197124096, o.Blank)
	}
	for i := range howMany(o.U2, u2) {
		freshDisk(tx, "u2", "oxp_", fmt.Sprintf("c%dt0d0", 11+i), i, 3200631791616, o.Blank)
	}
	freshNetwork(tx, howMany(o.Links, 2))
	return s
}

// freshRoot makes the pool that the sled was booted from. On Helios it is a
// RAM disk unless it was installed, on SmartOS the root is one too and the pool
// holds the rest.
func freshRoot(tx *world.Tx) {
	vdev, size, root := "c0t0d0", uint64(240057409536), "rpool/ROOT/omnios-r151058"
	switch {
	case tx.State.Mode == world.Helios && tx.State.Installed:
		root = "rpool/ROOT/helios"
	case tx.State.Mode != world.OmniOS || tx.State.Ramdisk:
		vdev, size, root = "/devices/pseudo/ramdisk@1024:rpool", 4<<30, "rpool/ROOT/ramdisk"
	}
	freshPool(tx, zfs.RootPool, vdev, size)
	freshDataset(tx, "rpool/ROOT", "", map[string]string{"canmount": "off", "mountpoint": "legacy"})
	freshDataset(tx, root, "/", map[string]string{"canmount": "noauto", "mountpoint": "/",
		"org.opensolaris.libbe:uuid": tx.UUID()})
}

// smartOSPool is the pool on which SmartOS keeps what outlives a reboot.
const smartOSPool = "zones"

// smartOSMounts are its file systems that are mounted over the root's directories, by
// directory (smartos-live, overlay/generic/lib/svc/method/fs-joyent).
func smartOSMounts() map[string]string {
	return map[string]string{"/etc/zones": smartOSPool + "/config", "/opt": smartOSPool + "/opt", "/var": smartOSPool + "/var"}
}

func freshSmartOS(tx *world.Tx) {
	freshPool(tx, smartOSPool, "c0t1d0", 960197124096)
	all := smartOSMounts()
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		freshDataset(tx, all[dir], dir, map[string]string{"mountpoint": "legacy"})
	}
}

// freshDisk makes a disk and, unless it is blank, the pool on it, as the sled
// agent makes both (omicron common/src/zpool_name.rs, illumos-utils/src/zpool.rs).
// The M.2s have their partitions in any case: they come from the factory with
// them, and the sled agent makes none.
func freshDisk(tx *world.Tx, kind, prefix, name string, slot int, size uint64, blank bool) {
	d := &world.Disk{
		Name: name, Kind: kind, Slot: slot, Size: size,
		Vendor: "1b96", Model: map[string]string{"m2": "WUS4BA196D7P3E2", "u2": "WUS4C6432DSP3X3"}[kind],
		Serial: zfs.SerialNumber(tx),
	}
	tx.State.Disks = append(tx.State.Disks, d)
	vdev := d.Name
	if kind == "m2" {
		d.Layout, vdev = zfs.LayoutM2, zfs.SliceName(d, zfs.M2PoolSlice)
	}
	if blank {
		return
	}
	if kind == "u2" {
		d.Layout = zfs.LayoutWhole
	}
	d.Pool = prefix + tx.UUID()
	p := freshPool(tx, d.Pool, vdev, zfs.VdevSize(tx, vdev))
	p.Properties = map[string]string{"ashift": "12", "failmode": "continue"}
}

func freshPool(tx *world.Tx, name, vdev string, size uint64) *world.Pool {
	p := &world.Pool{
		Name: name, GUID: tx.Draw("guid"), Vdevs: []string{vdev}, Size: size, Health: "ONLINE", Imported: true,
		HostID: zfs.HostID(tx), Accessed: tx.Now.Unix(),
	}
	tx.State.Pools = append(tx.State.Pools, p)
	freshDataset(tx, name, "/"+name, nil)
	p.TXG = tx.Count("txg")
	return p
}

func freshDataset(tx *world.Tx, name, mounted string, local map[string]string) {
	tx.TouchDataset(name)
	tx.State.Datasets[name] = &world.Dataset{
		Name: name, Type: "filesystem", GUID: tx.Draw("guid"), Created: tx.Count("txg"), Local: local,
		Mounted: mounted, Used: 96 << 10,
	}
}

// freshNetwork makes the physical links and the global zone's stack.
func freshNetwork(tx *world.Tx, links int) {
	for i := range links {
		tx.State.Links = append(tx.State.Links, &world.Link{
			Name: "net" + strconv.Itoa(i), Class: "phys", MACType: "factory, slot 1", Up: true,
			MAC:        fmt.Sprintf("a8:40:25:%02x:%02x:%02x", byte(tx.State.Seed>>8), byte(tx.State.Seed), i+1),
			Properties: map[string]string{"mtu": "1500"},
		})
	}
	freshStack(tx)
}

// freshStack gives the first physical link the global zone's address and
// default route.
func freshStack(tx *world.Tx) {
	stack := &world.Stack{}
	for zone := range tx.State.Stacks {
		tx.TouchStack(zone)
	}
	tx.TouchStack(world.GlobalZone)
	tx.State.Stacks = map[string]*world.Stack{world.GlobalZone: stack}
	ok := []world.Timepoint{{State: "ok", From: tx.Now}}
	stack.Interfaces = append(stack.Interfaces, &world.Interface{Name: network.Loopback})
	stack.Addresses = append(stack.Addresses,
		&world.Address{Object: "lo0/v4", Type: "static", Address: "127.0.0.1/8", Timeline: ok},
		&world.Address{Object: "lo0/v6", Type: "static", Address: "::1/128", Timeline: ok})
	if len(tx.State.Links) > 0 {
		stack.Interfaces = append(stack.Interfaces, &world.Interface{Name: "net0"})
		stack.Addresses = append(stack.Addresses,
			&world.Address{Object: "net0/v4", Type: "static", Address: "192.168.77.10/24", Timeline: ok})
		stack.Routes = append(stack.Routes,
			&world.Route{Destination: "default", Gateway: "192.168.77.1", Interface: "net0", Persistent: true})
	}
}
