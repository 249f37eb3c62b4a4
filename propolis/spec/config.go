package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// What propolis-cli reads: TOML with a table for each device and each backend
// of a disk. crates/propolis-config-toml in oxidecomputer/propolis turns it into
// components, and so is it done here, with the same keys, places and defaults.
// Where that crate passes over what an operator wrote, or reads it differently from
// it stands there, it is an error here, or is read as it stands with a warning.

// config turns one into a spec.
type config struct {
	reader
	spec     InstanceSpec
	document Document
	used     map[string]string // which device uses a block_dev
}

// The names of the tables, and of a device that is none.
const (
	deviceTable     = "dev"
	backendTable    = "block_dev"
	failureInjector = "test-migration-failure"
)

func parseConfig(data []byte, o ParseOptions) (Document, error) {
	s, err := parseTOML(data)
	if err != nil {
		return illegible(err), err
	}
	c := config{
		reader: reader{source: s}, used: map[string]string{},
		spec:     InstanceSpec{Board: Board{Chipset: Chipset{Type: ChipsetI440FX}}, Components: Components{}},
		document: Document{source: s, origin: map[string]string{}, board: []string{"chipset", "cpuid", "main.cpus", "main.memory", "main.cpuid_profile"}},
	}
	c.only("", c.root, "main", "chipset", "pci_bridge", deviceTable, backendTable, "cpuid", "cloudinit", "bootrom", "bootrom_version")
	for _, name := range []string{"bootrom", "bootrom_version", "cloudinit"} {
		if _, there := c.root[name]; there {
			c.warn(name, "is passed over: only propolis-standalone reads it here")
		}
	}
	profile := cmp.Or(o.CPUID, c.main())
	c.chipset()
	c.bridges()
	c.devices()
	c.unused()
	c.fixed()
	c.cpuidProfiles(profile, o.CPUID != "")
	if o.HyperV {
		c.spec.Board.Hypervisor = &Hypervisor{HypervisorHyperV, &HyperV{[]string{ReferenceTSC}}}
	}
	sortByLine(c.problems)
	sortByLine(c.document.Warnings)
	c.document.Spec, c.document.unread = c.spec, c.problems
	return c.document, c.err()
}

func (c *config) warn(path, format string, args ...any) {
	c.document.Warnings = append(c.document.Warnings, Problem{Path: path, Line: c.line(path), What: fmt.Sprintf(format, args...)})
}

// put adds a component that comes from a path, its fields from keys of their
// own.
func (c *config) put(key, from string, part Component, fields ...string) {
	if _, there := c.spec.Components[key]; there {
		c.add(from, "the component %s is that of %s already", key, c.document.origin[componentPath(key)])
		return
	}
	c.spec.Components[key] = part
	c.document.origin[componentPath(key)] = from
	for i := 0; i < len(fields); i += 2 {
		c.document.origin[bodyPath(key, fields[i])] = join(from, fields[i+1])
	}
}

// main reads the order of booting, and what there is of a board. It gives the
// name of the CPUID profile.
func (c *config) main() string {
	v, there := c.root["main"]
	if !there {
		return ""
	}
	main := c.table("main", v)
	passed := []string{"name", "bootrom", "bootrom_version", "use_reservoir", "cpu_binding", "exit_on_halt", "exit_on_reboot", "acpi_variant"}
	c.only("main", main, append([]string{"boot_order", "cpus", "memory", "cpuid_profile"}, passed...)...)
	for _, name := range passed {
		if _, there := main[name]; there {
			c.warn("main."+name, "is passed over: only propolis-standalone reads it")
		}
	}
	const others = "is read, which propolis-cli does not do"
	if n, there := c.number("main", main, "cpus", 1, 255); there {
		c.warn("main.cpus", others)
		c.spec.Board.CPUs, c.document.CPUs = uint8(n), true
		c.document.origin["board.cpus"] = "main.cpus"
	}
	if n, there := c.number("main", main, "memory", 1, 1<<62); there {
		c.warn("main.memory", others+", in MiB")
		c.spec.Board.MemoryMiB, c.document.Memory = n, true
		c.document.origin["board.memory_mb"] = "main.memory"
	}
	c.bootOrder(main)
	profile, there := c.text("main", main, "cpuid_profile")
	if there {
		c.warn("main.cpuid_profile", others)
	}
	return profile
}

func (c *config) bootOrder(main map[string]any) {
	v, there := main["boot_order"]
	if !there {
		return
	}
	const path = "main.boot_order"
	list, ok := v.([]any)
	if !ok {
		c.wrong(path, v, "a list of names of devices")
		return
	}
	settings := BootSettings{Order: []BootEntry{}}
	for i, v := range list {
		name, ok := v.(string)
		if !ok {
			c.wrong(at(path, i), v, "the name of a device")
		}
		settings.Order = append(settings.Order, BootEntry{name})
		c.document.origin[at(bodyPath(KeyBootSettings, "order"), i)] = at(path, i)
	}
	c.put(KeyBootSettings, path, settings)
}

func (c *config) chipset() {
	v, there := c.root["chipset"]
	if !there {
		return
	}
	chipset := c.table("chipset", v)
	c.only("chipset", chipset, "enable-pcie")
	if v, there := chipset["enable-pcie"]; there {
		pcie, ok := v.(bool)
		if !ok {
			c.add("chipset.enable-pcie", `invalid value for enable-pcie flag in chipset: %s: want true or false`, show(v))
		}
		c.spec.Board.Chipset.Value.PCIe = pcie
	}
}

func (c *config) bridges() {
	v, there := c.root["pci_bridge"]
	if !there {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c.wrong("pci_bridge", v, "a list of tables, [[pci_bridge]]")
		return
	}
	for i, v := range list {
		path := at("pci_bridge", i)
		bridge := c.table(path, v)
		if bridge == nil {
			continue
		}
		c.only(path, bridge, "pci-path", "downstream-bus")
		written, _ := bridge["pci-path"].(string)
		place := c.pciPath(path, bridge)
		bus, there := c.number(path, bridge, "downstream-bus", 0, 255)
		if !there {
			c.missing(path, bridge, "downstream-bus")
		}
		c.put("pci-bridge-"+written, path, PCIBridge{Downstream: uint8(bus), PCI: place}, "pci_path", "pci-path", "downstream_bus", "downstream-bus")
	}
}

// unused reports backends that no device has.
func (c *config) unused() {
	v, there := c.root[backendTable]
	if !there {
		return
	}
	all := c.table(backendTable, v)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if c.used[name] != "" {
			continue
		}
		path := join(backendTable, name)
		c.warn(path, "is left out: no device has it as its block_dev")
		_, _ = c.file(path, name, all[name]) // what is wrong with it is told all the same
	}
}

// fixed adds what propolis-cli gives every machine. The fourth serial port is
// what a SoftNPU speaks over.
func (c *config) fixed() {
	ports := 4
	for _, part := range c.spec.Components {
		if isA[SoftNPUPort](part) {
			ports = 3
		}
	}
	for i := 1; i <= ports; i++ {
		name := "com" + strconv.Itoa(i)
		c.always(name, SerialPort{name})
	}
	c.always(KeyPvpanic, Pvpanic{ISA: true})
}

func (c *config) always(key string, part Component) {
	if from, taken := c.document.origin[componentPath(key)]; taken {
		c.add(from, "every machine has a component %s of its own: give it another name", key)
		return
	}
	c.spec.Components[key] = part
}
