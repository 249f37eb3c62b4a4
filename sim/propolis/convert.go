package propolis

import (
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
	nics     []nic
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

type nic struct {
	path pciPath
	vnic string
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

// refusal is a reason why a spec is not accepted.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

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
		if isBackend(spec.Components[key].Type) {
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
			return machine{}, refuse("boot option %s is not an attached device", e.ID)
		}
	}
	if err := c.leftovers(keys); err != nil {
		return machine{}, err
	}
	if err := c.vsock(); err != nil {
		return machine{}, err
	}
	return c.machine, nil
}

func isBackend(kind string) bool {
	return slices.Contains([]string{"crucible_storage_backend", "file_storage_backend", "blob_storage_backend",
		"virtio_network_backend", "dlpi_network_backend"}, kind)
}

func (c *converter) device(key string, part component) error {
	switch part.Type {
	case "virtio_disk", "nvme_disk":
		return c.addDisk(key, part)
	case "virtio_nic":
		return c.addNIC(key, part)
	case "serial_port":
		return c.addPort(part.Body["num"].(string))
	case "pci_pci_bridge":
		path := part.Body["pci_path"].(pciPath)
		c.bridges = append(c.bridges, bridge{path, part.Body["downstream_bus"].(uint64)})
		return c.attach(key, path)
	case "qemu_pvpanic":
		if c.pvpanic {
			return refuse("pvpanic device already specified")
		}
		c.pvpanic = true
	case "boot_settings":
		c.boot = part.Body["order"].([]bootEntry) // the last one counts
	case "virtio_socket":
		c.sockets = append(c.sockets, key)
	case "soft_npu_pci_port", "soft_npu_port", "soft_npu_p9", "p9fs":
		return refuse("support for component %s compiled out via falcon", key)
	case "migration_failure_injector":
		return refuse("support for component %s compiled out via failure-injection", key)
	}
	return nil
}

func (c *converter) addDisk(key string, part component) error {
	name := part.Body["backend_id"].(string)
	backend, ok := c.unused[name]
	if !ok || backend.Type == "virtio_network_backend" || backend.Type == "dlpi_network_backend" {
		return refuse("storage backend %s not found for device %s", name, key)
	}
	delete(c.unused, name)
	path := part.Body["pci_path"].(pciPath)
	c.disks = append(c.disks, disk{key, path, backend})
	return c.attach(key, path)
}

func (c *converter) addNIC(key string, part component) error {
	name := part.Body["backend_id"].(string)
	backend, ok := c.unused[name]
	if !ok || backend.Type != "virtio_network_backend" {
		return refuse("network backend %s not found for device %s", name, key)
	}
	delete(c.unused, name)
	path := part.Body["pci_path"].(pciPath)
	c.nics = append(c.nics, nic{path, backend.Body["vnic_name"].(string)})
	return c.attach(key, path)
}

func (c *converter) addPort(num string) error {
	if slices.Contains(c.ports, num) {
		return refuse("serial port C%s is already specified", num[1:])
	}
	c.ports = append(c.ports, num)
	return nil
}

func (c *converter) attach(key string, path pciPath) error {
	if slices.ContainsFunc(c.attached, func(a attachment) bool { return a.path == path }) {
		return refuse("a PCI device is already attached at PciPath { bus: %d, device: %d, function: %d }", path.Bus, path.Device, path.Function)
	}
	c.attached = append(c.attached, attachment{key, path})
	return nil
}

// leftovers refuses the first backend that no device uses: storage before
// viona before dlpi.
func (c *converter) leftovers(keys []string) error {
	for _, kinds := range [][]string{
		{"crucible_storage_backend", "file_storage_backend", "blob_storage_backend"},
		{"virtio_network_backend"}, {"dlpi_network_backend"},
	} {
		for _, key := range keys {
			if part, left := c.unused[key]; left && slices.Contains(kinds, part.Type) {
				return refuse("backend %s not used by any device", key)
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
	part := c.spec.Components[c.sockets[0]]
	cid := part.Body["guest_cid"].(uint64)
	c.socket = &cid
	return c.attach(c.sockets[0], part.Body["pci_path"].(pciPath))
}

// checkCPUID refuses leaves out of the two ranges, and a leaf that is there
// twice, or both with and without subleaves (crates/cpuid-utils).
// Guess: the words behind the colon.
func checkCPUID(set *cpuid) error {
	if set == nil {
		return nil
	}
	seen := map[uint64][]*uint64{}
	for _, e := range set.Entries {
		if !(e.Leaf <= 0xffff || e.Leaf >= 0x80000000 && e.Leaf <= 0x8000ffff) {
			return refuse("instance spec's CPUID entries are invalid: leaf %#x not in a valid range", e.Leaf)
		}
		for _, other := range seen[e.Leaf] {
			switch {
			case (other == nil) != (e.Subleaf == nil):
				return refuse("instance spec's CPUID entries are invalid: leaf %#x has entries with and without subleaves", e.Leaf)
			case other == nil || *other == *e.Subleaf:
				return refuse("instance spec's CPUID entries are invalid: leaf %#x is there twice", e.Leaf)
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
