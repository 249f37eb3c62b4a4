package propolis

import (
	"cmp"
	"fmt"
	"slices"
)

// machine is a spec whose parts have found each other: what the server calls
// its internal instance spec.
type machine struct {
	board    board
	ports    []string // serial ports
	bridges  []bridge
	disks    []disk
	nics     []string // their VNICs
	boot     []bootEntry
	socket   *uint64 // guest CID of the vsock device
	attached []attachment
}

type bridge struct {
	path pciPath
	bus  uint64
}

type disk struct {
	key     string
	path    pciPath
	backend component
}

// attachment is a device and where it sits.
type attachment struct {
	key  string
	path pciPath
}

// converter takes the components one after the other
// (bin/propolis-server/src/lib/spec/api_spec_v0.rs and builder.rs).
type converter struct {
	machine
	spec    *instanceSpec
	unused  map[string]component // backends that no device has taken yet
	pvpanic bool
	sockets []string
}

// convert checks a spec as a whole: the CPUID set, devices in the order of
// their keys, the boot order, backends that nobody took, the vsock device.
func convert(spec *instanceSpec) (machine, error) {
	c := &converter{spec: spec, unused: map[string]component{}}
	c.board = spec.Board
	if err := checkCPUID(spec.Board.CPUID); err != nil {
		return machine{}, err
	}
	keys := sortedKeys(spec.Components)
	slices.SortFunc(keys, compareKeys)
	for _, key := range keys {
		if slices.Contains(slices.Concat(backends()...), spec.Components[key].Type) {
			c.unused[key] = spec.Components[key]
		}
	}
	for _, key := range keys {
		if err := c.device(key, spec.Components[key]); err != nil {
			return machine{}, err
		}
	}
	for _, e := range c.boot {
		if !slices.ContainsFunc(c.disks, func(d disk) bool { return d.key == e.ID }) {
			return machine{}, fmt.Errorf("boot option %s is not an attached device", e.ID)
		}
	}
	err := cmp.Or(c.leftovers(keys), c.vsock())
	return c.machine, err
}

func storage() []string {
	return []string{"crucible_storage_backend", "file_storage_backend", "blob_storage_backend"}
}

func backends() [][]string {
	return [][]string{storage(), {"virtio_network_backend"}, {"dlpi_network_backend"}}
}

func (c *converter) device(key string, part component) error {
	has := part.contents()
	switch part.Type {
	case "virtio_disk", "nvme_disk":
		backend, err := c.take(key, has.Backend, "storage", storage())
		if err != nil {
			return err
		}
		c.disks = append(c.disks, disk{key, has.Path, backend})
		return c.attach(key, has.Path)
	case "virtio_nic":
		backend, err := c.take(key, has.Backend, "network", []string{"virtio_network_backend"})
		if err != nil {
			return err
		}
		c.nics = append(c.nics, backend.contents().VNIC)
		return c.attach(key, has.Path)
	case "serial_port":
		num := has.Port
		if slices.Contains(c.ports, num) {
			return fmt.Errorf("serial port C%s is already specified", num[1:])
		}
		c.ports = append(c.ports, num)
	case "pci_pci_bridge":
		c.bridges = append(c.bridges, bridge{has.Path, has.Bus})
		return c.attach(key, has.Path)
	case "qemu_pvpanic":
		if c.pvpanic {
			return fmt.Errorf("pvpanic device already specified")
		}
		c.pvpanic = true
	case "boot_settings":
		c.boot = has.Order // the last one counts
	case "virtio_socket":
		c.sockets = append(c.sockets, key)
	case "soft_npu_pci_port", "soft_npu_port", "soft_npu_p9", "p9fs":
		return fmt.Errorf("support for component %s compiled out via falcon", key)
	case "migration_failure_injector":
		return fmt.Errorf("support for component %s compiled out via failure-injection", key)
	}
	return nil
}

// take gives a device its backend, which has no other.
func (c *converter) take(key, name, what string, kinds []string) (component, error) {
	backend, ok := c.unused[name]
	if !ok || !slices.Contains(kinds, backend.Type) {
		return backend, fmt.Errorf("%s backend %s not found for device %s", what, name, key)
	}
	delete(c.unused, name)
	return backend, nil
}

func (c *converter) attach(key string, path pciPath) error {
	if slices.ContainsFunc(c.attached, func(a attachment) bool { return a.path == path }) {
		return fmt.Errorf("a PCI device is already attached at PciPath { bus: %d, device: %d, function: %d }", path.Bus, path.Device, path.Function)
	}
	c.attached = append(c.attached, attachment{key, path})
	return nil
}

// leftovers refuses the first backend that no device uses: storage before
// viona before dlpi.
func (c *converter) leftovers(keys []string) error {
	for _, kinds := range backends() {
		for _, key := range keys {
			if part, left := c.unused[key]; left && slices.Contains(kinds, part.Type) {
				return fmt.Errorf("backend %s not used by any device", key)
			}
		}
	}
	return nil
}

// vsock adds the first socket device; others are passed over.
func (c *converter) vsock() error {
	if len(c.sockets) == 0 {
		return nil
	}
	has := c.spec.Components[c.sockets[0]].contents()
	c.socket = &has.CID
	return c.attach(c.sockets[0], has.Path)
}

// checkCPUID refuses leaves out of the two ranges, and a leaf that is there
// twice, or both with and without subleaves (crates/cpuid-utils).
//
// Guess words-for-cpuid-faults: the words for CPUID faults, behind the colon.
// Check: `curl` with such requests
func checkCPUID(set *cpuid) error {
	if set == nil {
		return nil
	}
	seen := map[uint64][]*uint64{}
	for _, e := range set.Entries {
		if !(e.Leaf <= 0xffff || e.Leaf >= 0x80000000 && e.Leaf <= 0x8000ffff) {
			return fmt.Errorf("instance spec's CPUID entries are invalid: leaf %#x not in a valid range", e.Leaf)
		}
		for _, other := range seen[e.Leaf] {
			if other == nil || e.Subleaf == nil || *other == *e.Subleaf {
				return fmt.Errorf("instance spec's CPUID entries are invalid: leaf %#x is there twice", e.Leaf)
			}
		}
		seen[e.Leaf] = append(seen[e.Leaf], e.Subleaf)
	}
	return nil
}

// hostCPUID is what the host has, when the spec does not say: a shortened list
// of bhyve's defaults.
func hostCPUID() *cpuid {
	zero := uint64(0)
	return &cpuid{Vendor: "amd", Entries: []cpuidEntry{
		{Leaf: 0, EAX: 16, EBX: 0x68747541, ECX: 0x444d4163, EDX: 0x69746e65},
		{Leaf: 1, EAX: 0x00a00f11, EBX: 0x00000800, ECX: 0xf6d83203, EDX: 0x178bfbff},
		{Leaf: 7, Subleaf: &zero, EBX: 0x201405a9},
		{Leaf: 0x80000000, EAX: 0x80000008, EBX: 0x68747541, ECX: 0x444d4163, EDX: 0x69746e65},
	}}
}
