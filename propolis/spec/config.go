package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
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

// devices converts them in the order of their names.
func (c *config) devices() {
	v, there := c.root[deviceTable]
	if !there {
		return
	}
	all := c.table(deviceTable, v)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path := join(deviceTable, name)
		device := c.table(path, all[name])
		if device == nil {
			continue
		}
		driver, there := c.text(path, device, "driver")
		if !there && device["driver"] == nil {
			c.add(path, "driver is missing: want %s", strings.Join(drivers(), ", "))
		} else if name == failureInjector {
			c.failureInjector(path, name, device)
		} else if there {
			c.device(path, name, driver, device)
		}
	}
}

// The drivers.
const (
	driverBlock   = "pci-virtio-block"
	driverNVMe    = "pci-nvme"
	driverViona   = "pci-virtio-viona"
	driverSocket  = "pci-virtio-socket"
	driverNPU     = "softnpu-pci-port"
	driverNPUP9   = "softnpu-p9"
	driverNPUPort = "softnpu-port"
	driver9P      = "pci-virtio-9p"
)

func drivers() []string {
	return []string{driverBlock, driverNVMe, driverViona, driverSocket, driverNPU, driverNPUP9, driverNPUPort, driver9P}
}

func (c *config) device(path, name, driver string, device map[string]any) {
	const pci = "pci-path"
	known := func(keys ...string) { c.only(path, device, append([]string{"driver"}, keys...)...) }
	switch driver {
	case driverBlock:
		known("block_dev", pci)
		at := c.pciPath(path, device)
		if backend, ok := c.backend(path, name, device); ok {
			c.put(name, path, VirtioDisk{Backend: backend, PCI: at}, "pci_path", pci, "backend_id", "block_dev")
		}
	case driverNVMe:
		known("block_dev", pci, "has_write_cache")
		c.nvme(path, name, device)
	case driverViona:
		known("vnic", pci)
		c.nic(path, name, device)
	case driverSocket:
		known("guest_cid", pci)
		cid, there := c.written(path, device, "guest_cid", 64)
		if !there {
			c.missing(path, device, "guest_cid")
		}
		c.put(name, path, VirtioSocket{CID: cid, PCI: c.pciPath(path, device)}, "pci_path", pci, "guest_cid", "guest_cid")
	case driverNPU:
		known(pci)
		c.put(name, path, SoftNPUPCIPort{c.pciPath(path, device)}, "pci_path", pci)
	case driverNPUP9:
		known(pci)
		c.put(name, path, SoftNPUP9{c.pciPath(path, device)}, "pci_path", pci)
	case driverNPUPort:
		known("vnic")
		vnic := c.required(path, device, "vnic")
		c.put(name, path, SoftNPUPort{Link: name, Backend: name + ":backend"})
		c.put(name+":backend", path, DLPINetwork{vnic}, "vnic_name", "vnic")
	case driver9P:
		known("source", "target", "chunk_size", pci)
		c.p9(path, name, device)
	default:
		c.add(path+".driver", "unrecognized device type %q: want %s", driver, strings.Join(drivers(), ", "))
	}
}

func (c *config) nvme(path, name string, device map[string]any) {
	backend, ok := c.backend(path, name, device)
	disk := NVMeDisk{Backend: backend, PCI: c.pciPath(path, device), Serial: Serial(name)}
	if v, there := device["has_write_cache"]; there {
		cache, isBool := v.(bool)
		if !isBool {
			c.wrong(path+".has_write_cache", v, "true or false")
		}
		disk.WriteCache = &cache
	}
	if len(name) > len(disk.Serial) {
		c.warn(path, "the serial number is the first %d characters of the name", len(disk.Serial))
	}
	if ok {
		c.put(name, path, disk, "pci_path", "pci-path", "backend_id", "block_dev", "has_write_cache", "has_write_cache")
	}
}

func (c *config) nic(path, name string, device map[string]any) {
	vnic := c.required(path, device, "vnic")
	backend := name + backendSuffix
	c.put(name, path, VirtioNIC{Backend: backend, Interface: uuid.Nil.String(), PCI: c.pciPath(path, device)}, "pci_path", "pci-path")
	c.put(backend, path, VirtioNetwork{vnic}, "vnic_name", "vnic")
}

// defaultChunk is the chunk size of a 9P device that does not say.
const defaultChunk = 65536

func (c *config) p9(path, name string, device map[string]any) {
	p := P9FS{Source: c.required(path, device, "source"), Target: c.required(path, device, "target"), ChunkSize: defaultChunk, PCI: c.pciPath(path, device)}
	if n, there := c.written(path, device, "chunk_size", 32); there {
		p.ChunkSize = uint32(n)
	}
	c.put(name, path, p, "pci_path", "pci-path", "source", "source", "target", "target", "chunk_size", "chunk_size")
}

// failureInjector counts what it must fail; less than nothing is nothing.
func (c *config) failureInjector(path, name string, device map[string]any) {
	c.only(path, device, "driver", "fail_exports", "fail_imports")
	count := func(key string) uint32 {
		v, there := device[key]
		n, ok := v.(int64)
		switch {
		case there && (!ok || n > 1<<32-1):
			c.wrong(join(path, key), v, fmt.Sprintf("a whole number up to %d", uint32(1<<32-1)))
		case n < 0:
			c.warn(join(path, key), "%d counts as 0", n)
		}
		return uint32(max(n, 0))
	}
	c.put(name, path, MigrationFailureInjector{Exports: count("fail_exports"), Imports: count("fail_imports")})
}

// backend converts the block_dev of a disk, and gives its key.
func (c *config) backend(path, device string, table map[string]any) (string, bool) {
	if _, there := table["block_dev"]; !there {
		c.add(path, "no backend name for storage device %q: block_dev is missing", device)
		return "", false
	}
	name, ok := c.text(path, table, "block_dev")
	if !ok {
		return "", false
	}
	all, _ := c.root[backendTable].(map[string]any)
	found := name
	if _, there := all[name]; !there { // a server writes UUIDs in one way, and so does the crate before it looks
		for other := range all {
			if Key(other) == Key(name) {
				found = other
			}
		}
	}
	value, there := all[found]
	if !there {
		c.add(path+".block_dev", "couldn't find storage device %q's backend %q: there is no table [%s]", device, name, join(backendTable, name))
		return "", false
	}
	if other := c.used[found]; other != "" {
		c.add(path+".block_dev", "%s is the block_dev of %s already", name, other)
		return "", false
	}
	c.used[found] = device
	from := join(backendTable, found)
	if found != Key(found) {
		c.warn(from, "the name is a UUID, and is written %s in the spec", Key(found))
	}
	if file, ok := c.file(from, found, value); ok {
		c.put(Key(found), from, file, "path", "path", "readonly", "readonly", "block_size", "block_size", "workers", "workers")
	}
	return Key(found), true
}

func (c *config) file(path, name string, v any) (FileStorage, bool) {
	table := c.table(path, v)
	if table == nil {
		return FileStorage{}, false
	}
	c.only(path, table, "type", "path", "readonly", "read_only", "block_size", "workers", "skip_flush")
	if kind, _ := table["type"].(string); kind != "file" {
		c.add(join(path, "type"), "invalid storage backend kind %s for backend %q: want file", show(table["type"]), name)
		return FileStorage{}, false
	}
	f := FileStorage{Path: c.required(path, table, "path"), ReadOnly: c.readOnly(path, table), BlockSize: blockSize}
	if n, there := c.number(path, table, "block_size", 1, 1<<32-1); there {
		f.BlockSize = uint32(n)
	}
	if n, there := c.number(path, table, "workers", 1, 1<<63-1); there {
		f.Workers = &n
	}
	if _, there := table["skip_flush"]; there {
		c.warn(path+".skip_flush", "is passed over: a spec has nothing like it")
	}
	return f, true
}

// readOnly also honours the spelling of propolis-standalone: its author does not want
// the disk written to.
func (c *config) readOnly(path string, table map[string]any) bool {
	truth := func(key string) (value, there bool) {
		v, there := table[key]
		switch v {
		case true, "true":
			return true, true
		case false, "false":
			return false, true
		}
		if there {
			c.wrong(join(path, key), v, "true or false")
		}
		return false, there
	}
	value, said := truth("readonly")
	other, there := truth("read_only")
	switch {
	case there && said && other != value:
		c.add(path+".read_only", "is not what readonly says")
	case there && !said:
		c.warn(path+".read_only", "is read as readonly, which propolis-cli does not do: there the disk would be writable")
		return other
	}
	return value
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

// cpuidProfiles reads all of them, and takes one.
func (c *config) cpuidProfiles(wanted string, asked bool) {
	all := map[string]any{}
	if v, there := c.root["cpuid"]; there {
		all = c.table("cpuid", v)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path := join("cpuid", name)
		set := c.cpuidSet(path, all[name])
		if name == wanted {
			c.spec.Board.CPUID = &set
			c.document.origin["board.cpuid"] = path
		}
	}
	if _, there := all[wanted]; wanted != "" && !there {
		path := "main.cpuid_profile"
		if asked {
			path = "cpuid"
		}
		c.add(path, "there is no CPUID profile %q: want a table [%s]", wanted, join("cpuid", wanted))
	}
}

func (c *config) cpuidSet(path string, v any) CPUID {
	set := CPUID{Entries: []CPUIDEntry{}}
	table := c.table(path, v)
	if table == nil {
		return set
	}
	set.Vendor = c.required(path, table, "vendor")
	if set.Vendor != "" && set.Vendor != "amd" && set.Vendor != "intel" {
		c.wrong(path+".vendor", set.Vendor, "amd or intel")
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if key == "vendor" {
			continue
		}
		if e, ok := c.cpuidEntry(join(path, key), key, table[key]); ok {
			set.Entries = append(set.Entries, e)
		}
	}
	slices.SortStableFunc(set.Entries, compareEntries)
	return set
}

// cpuidEntry reads "LEAF" or "LEAF-SUBLEAF", in hex, and the four registers.
func (c *config) cpuidEntry(path, key string, v any) (e CPUIDEntry, ok bool) {
	hex := func(s string) uint32 {
		n, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 32)
		if err != nil && ok {
			c.add(path, "%q is no leaf, or leaf and subleaf, of hexadecimal digits", key)
			ok = false
		}
		return uint32(n)
	}
	ok = true
	leaf, subleaf, has := strings.Cut(key, "-")
	e.Leaf = hex(leaf)
	if has {
		e.Subleaf = new(hex(subleaf))
	}
	list, isList := v.([]any)
	if !isList || len(list) != 4 {
		c.wrong(path, v, "four numbers: eax, ebx, ecx, edx")
		return e, false
	}
	for i, to := range []*uint32{&e.EAX, &e.EBX, &e.ECX, &e.EDX} {
		n, isNumber := list[i].(int64)
		if !isNumber || n < 0 || n > 1<<32-1 {
			c.wrong(at(path, i), list[i], fmt.Sprintf("a number from 0 to %d", uint32(1<<32-1)))
		}
		*to = uint32(n)
	}
	return e, ok
}

// pciPath reads BUS.DEVICE.FUNCTION, in decimal, as Rust reads numbers: with
// leading zeros, or a plus.
func (c *config) pciPath(path string, table map[string]any) (p PCIPath) {
	const key = "pci-path"
	v, there := table[key]
	if !there {
		c.missing(path, table, key)
		return p
	}
	s, _ := v.(string)
	parts := strings.Split(s, ".")
	numbers := []*uint8{&p.Bus, &p.Device, &p.Function}
	for i, limit := range []uint64{255, 31, 7} {
		text := ""
		if len(parts) == 3 {
			text = parts[i]
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, 8)
		if err != nil || n > limit || strings.HasPrefix(text, "++") {
			c.add(join(path, key), "failed to parse PCI path %s: want BUS.DEVICE.FUNCTION, up to 255.31.7", show(v))
			return PCIPath{}
		}
		*numbers[i] = uint8(n)
	}
	return p
}

// missing reports a key that is missing; one that is there and wrong has been reported
// before.
func (c *config) missing(path string, table map[string]any, key string) {
	if _, there := table[key]; !there {
		c.add(path, "%s is missing", key)
	}
}

func (c *config) required(path string, table map[string]any, key string) string {
	c.missing(path, table, key)
	s, _ := c.text(path, table, key)
	return s
}

func (c *config) text(path string, table map[string]any, key string) (s string, there bool) {
	v, there := table[key]
	if !there {
		return "", false
	}
	s, ok := v.(string)
	if !ok {
		c.wrong(join(path, key), v, "a text")
	}
	return s, ok
}

func (c *config) number(path string, table map[string]any, key string, least, most uint64) (n uint64, there bool) {
	v, there := table[key]
	if !there {
		return 0, false
	}
	i, ok := v.(int64)
	if !ok || i < 0 || uint64(i) < least || uint64(i) > most {
		c.wrong(join(path, key), v, fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0, false
	}
	return uint64(i), true
}

// written reads a number that the crate wants in quotes. Without them it takes
// it as not said.
func (c *config) written(path string, table map[string]any, key string, bits int) (n uint64, there bool) {
	v, there := table[key]
	if !there {
		return 0, false
	}
	text, quoted := v.(string)
	if i, ok := v.(int64); ok {
		c.warn(join(path, key), "is read, which propolis-cli does not do without quotes")
		text, quoted = strconv.FormatInt(i, 10), true
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if !quoted || err != nil {
		c.wrong(join(path, key), v, fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<bits-1))
		return 0, false
	}
	return n, true
}
