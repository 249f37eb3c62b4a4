package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

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

// The drivers of devices.
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
