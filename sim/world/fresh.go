package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Options say which sled to make. The zero value is an OmniOS sled without
// latencies, with two M.2 and four U.2 disks, a pool on each, and two links.
type Options struct {
	Seed    uint64
	Mode    Mode   // empty: OmniOS
	Latency string // none, helios2021, helios; empty: none
	M2, U2  int    // how many disks; 0: two and four; negative: none
	Links   int    // how many physical links; 0: two; negative: none
	Blank   bool   // the M.2 and U.2 disks carry no pools

	// Ramdisk lets an OmniOS sled have its root on a RAM disk, as Helios has: what
	// clones zones forgets them then.
	Ramdisk bool
	// Installed lets a Helios sled have its root on a pool, as a workstation that it
	// was installed on.
	Installed bool
	// Image names files that whoever makes the sled adds to its system's image:
	// they outlive a reboot also where the root does not.
	Image []string
	// Files are such files, by absolute name, that are there before the sled is.
	Files map[string]string
}

// Check refuses options that no sled can have.
func (o Options) Check() error {
	switch o.Mode {
	case "", OmniOS, Helios, SmartOS:
	default:
		return fmt.Errorf("no distribution %q: omnios, helios or smartos", o.Mode)
	}
	switch o.Latency {
	case "", "none", "helios2021", "helios":
	default:
		return fmt.Errorf("no latencies %q: none, helios2021 or helios", o.Latency)
	}
	if o.Installed && (o.Mode != Helios || o.Ramdisk) {
		return fmt.Errorf("a system that is installed on a pool is helios' choice, and no RAM disk's")
	}
	return nil
}

// howMany reads a count of Options.
func howMany(n, usual int) int { return max(0, cmp.Or(n, usual)) }

// Fresh is a sled that has just been booted for the first time, without the
// files that belong to it (see LayRoot).
func Fresh(o Options) *State {
	now := Now()
	s := &State{
		Format:  Format,
		Seed:    o.Seed,
		Mode:    cmp.Or(o.Mode, OmniOS),
		Latency: cmp.Or(o.Latency, "none"),
		Image:   append(slices.Clone(o.Image), slices.Sorted(maps.Keys(o.Files))...),
		Ramdisk: o.Ramdisk,

		Installed: o.Installed,
		Booted:    now,
		Boots:     1,
		Counters:  map[string]uint64{},
		Datasets:  map[string]*Dataset{},
		Services:  map[string]*Repository{GlobalZone: globalServices(now)},
	}
	tx := NewTx(s, now, nil)
	tx.freshRoot()
	for i := range howMany(o.M2, 2) {
		// The slots of a Gimlet (omicron sled-hardware, illumos/gimlet.rs).
		tx.freshDisk("m2", "oxi_", fmt.Sprintf("c%dt0d0", 1+i), 0x11+i, 960197124096, o.Blank)
	}
	for i := range howMany(o.U2, 4) {
		tx.freshDisk("u2", "oxp_", fmt.Sprintf("c%dt0d0", 11+i), i, 3200631791616, o.Blank)
	}
	tx.freshNetwork(howMany(o.Links, 2))
	return s
}

// freshRoot makes the pool that the sled was booted from. On Helios it is a
// RAM disk unless it was installed, on SmartOS the root is one too and the pool
// holds the rest.
func (tx *Tx) freshRoot() {
	vdev, size, root := "c0t0d0", uint64(240057409536), "rpool/ROOT/omnios-r151056"
	switch {
	case tx.State.Mode == Helios && tx.State.Installed:
		root = "rpool/ROOT/helios"
	case tx.State.Mode != OmniOS || tx.State.Ramdisk:
		vdev, size, root = "/devices/pseudo/ramdisk@1024:rpool", 4<<30, "rpool/ROOT/ramdisk"
	}
	tx.freshPool(rootPool, vdev, size)
	tx.freshDataset("rpool/ROOT", "", map[string]string{"canmount": "off", "mountpoint": "legacy"})
	tx.freshDataset(root, "/", map[string]string{"canmount": "noauto", "mountpoint": "/",
		"org.opensolaris.libbe:uuid": tx.UUID()})
	if tx.State.Mode == SmartOS {
		tx.freshPool("zones", "c0t1d0", 960197124096)
	}
}

// freshDisk makes a disk and, unless it is blank, the pool on it, as the sled
// agent makes both (omicron common/src/zpool_name.rs, illumos-utils/src/zpool.rs).
// The M.2s have their partitions in any case: they come from the factory with
// them, and the sled agent makes none.
func (tx *Tx) freshDisk(kind, prefix, name string, slot int, size uint64, blank bool) {
	d := &Disk{
		Name: name, Kind: kind, Slot: slot, Size: size,
		Vendor: "1b96", Model: map[string]string{"m2": "WUS4BA196D7P3E2", "u2": "WUS4C6432DSP3X3"}[kind],
		Serial: tx.serialNumber(),
	}
	tx.State.Disks = append(tx.State.Disks, d)
	vdev := d.Name
	if kind == "m2" {
		d.Layout, vdev = LayoutM2, d.sliceName(m2PoolSlice)
	}
	if blank {
		return
	}
	if kind == "u2" {
		d.Layout = LayoutWhole
	}
	d.Pool = prefix + tx.UUID()
	p := tx.freshPool(d.Pool, vdev, tx.vdevSize(vdev))
	p.Properties = map[string]string{"ashift": "12", "failmode": "continue"}
}

func (tx *Tx) freshPool(name, vdev string, size uint64) *Pool {
	p := &Pool{
		Name: name, GUID: tx.Draw("guid"), Vdevs: []string{vdev}, Size: size, Health: "ONLINE", Imported: true,
		HostID: tx.HostID(), Accessed: tx.Now.Unix(),
	}
	tx.State.Pools = append(tx.State.Pools, p)
	tx.freshDataset(name, "/"+name, nil)
	p.TXG = tx.Count("txg")
	return p
}

func (tx *Tx) freshDataset(name, mounted string, local map[string]string) {
	tx.State.Datasets[name] = &Dataset{
		Name: name, Type: "filesystem", GUID: tx.Draw("guid"), Created: tx.Count("txg"), Local: local,
		Mounted: mounted, Used: 96 << 10,
	}
}

// freshNetwork makes the physical links and the global zone's stack.
func (tx *Tx) freshNetwork(links int) {
	for i := range links {
		tx.State.Links = append(tx.State.Links, &Link{
			Name: "net" + strconv.Itoa(i), Class: "phys", MACType: "factory, slot 1", Up: true,
			MAC:        fmt.Sprintf("a8:40:25:%02x:%02x:%02x", byte(tx.State.Seed>>8), byte(tx.State.Seed), i+1),
			Properties: map[string]string{"mtu": "1500"},
		})
	}
	tx.freshStack()
}

// freshStack gives the first physical link the global zone's address and
// default route.
func (tx *Tx) freshStack() {
	stack := &Stack{}
	tx.State.Stacks = map[string]*Stack{GlobalZone: stack}
	ok := []Timepoint{{State: "ok", From: tx.Now}}
	stack.Interfaces = append(stack.Interfaces, &Interface{Name: loopback})
	stack.Addresses = append(stack.Addresses,
		&Address{Object: "lo0/v4", Type: "static", Address: "127.0.0.1/8", Timeline: ok},
		&Address{Object: "lo0/v6", Type: "static", Address: "::1/128", Timeline: ok})
	if len(tx.State.Links) > 0 {
		stack.Interfaces = append(stack.Interfaces, &Interface{Name: "net0"})
		stack.Addresses = append(stack.Addresses,
			&Address{Object: "net0/v4", Type: "static", Address: "192.168.77.10/24", Timeline: ok})
		stack.Routes = append(stack.Routes,
			&Route{Destination: "default", Gateway: "192.168.77.1", Interface: "net0", Persistent: true})
	}
}
