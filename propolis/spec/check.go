package spec

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Server is what specs depend on of the server that they are for. The zero
// value is a released build of unknown version.
type Server struct {
	// Features are those that it is built with, next to none.
	Features []string
	// IPv6 says that it listens on an IPv6 address.
	IPv6 bool
}

// The features of builds of Propolis that specs depend on.
const (
	FeatureFalcon           = "falcon"
	FeatureFailureInjection = "failure-injection"
)

// Features lists them.
func Features() []string { return []string{FeatureFalcon, FeatureFailureInjection} }

// Check finds what makes a server refuse the spec, or crash, as far as it is known
// without the host: some of these faults end the whole process, and to the client
// that is a broken connection without a reason (crates and
// bin/propolis-server/src/lib/{spec,initializer.rs} of oxidecomputer/propolis).
// The error is an *InvalidError.
func (s InstanceSpec) Check(on Server) error { return s.check(on, gaps{}).err() }

// gaps are what of a spec could not be read as it was meant.
type gaps struct {
	keys  map[string]bool // components that are not all there
	parts bool            // components are missing, or not all there
}

// check says nothing of what was not read, and nothing that it might make good.
func (s InstanceSpec) check(on Server, unread gaps) problems {
	c := checker{spec: s, on: on, unread: unread, used: map[string]string{}, link: map[string]string{}}
	c.board()
	c.names()
	for _, key := range c.keys() {
		c.component(key, s.Components[key])
	}
	c.ports()
	c.bootSettings()
	c.places()
	c.leftovers()
	return c.problems
}

// Keys lists the components as the server takes them: UUIDs before names.
func (c Components) Keys() []string {
	return slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		isA, isB := uuid.Validate(Key(a)) == nil, uuid.Validate(Key(b)) == nil
		switch {
		case isA && !isB:
			return -1
		case isB && !isA:
			return 1
		}
		return strings.Compare(a, b)
	})
}

type checker struct {
	problems
	spec   InstanceSpec
	on     Server
	unread gaps
	used   map[string]string // which device uses a backend, by Key
	link   map[string]string // which backend uses a VNIC
}

// keys are those of the components that were read.
func (c *checker) keys() []string {
	return slices.DeleteFunc(c.spec.Components.Keys(), func(key string) bool { return c.unread.keys[key] })
}

// lacks adds a problem that one more component could solve.
func (c *checker) lacks(path, format string, args ...any) {
	if !c.unread.parts {
		c.add(path, format, args...)
	}
}

// MaxMemoryMiB bounds guest memory, in MiB: guest-physical addresses end at 16 TiB,
// of which the gigabyte below 4 GiB is no memory.
//
// Guess memory-ends-at-16-tib: guest memory ends at 16 TiB less one GiB: no server gets along with
// more.
// Check: nothing, until such a sled exists
const MaxMemoryMiB = 16<<20 - 1<<10

func (c *checker) board() {
	b := c.spec.Board
	if b.CPUs < 1 || b.CPUs > MaxCPUs {
		c.add("board.cpus", "%d CPUs are not from 1 to %d", b.CPUs, MaxCPUs)
	}
	switch {
	case b.MemoryMiB == 0:
		c.add("board.memory_mb", "there is no memory")
	case b.MemoryMiB > MaxMemoryMiB:
		c.add("board.memory_mb", "%d MiB are more than a machine can address, %d", b.MemoryMiB, uint64(MaxMemoryMiB))
	}
	if b.Chipset.Type != ChipsetI440FX {
		c.add("board.chipset.type", "there is no chipset %q: want %s", b.Chipset.Type, ChipsetI440FX)
	}
	c.hypervisor(b.Hypervisor)
	if b.CPUID != nil {
		c.cpuid(*b.CPUID)
	}
}

func (c *checker) hypervisor(h *Hypervisor) {
	const path = "board.guest_hv_interface"
	switch {
	case h == nil || h.Type == HypervisorBhyve && h.Value == nil:
	case h.Type == HypervisorBhyve:
		c.add(path+".value", "%s has none", h.Type)
	case h.Type != HypervisorHyperV:
		c.add(path+".type", "there is no hypervisor %q: want %s or %s", h.Type, HypervisorBhyve, HypervisorHyperV)
	case h.Value == nil:
		c.add(path+".value", "is missing")
	default:
		for i, feature := range h.Value.Features {
			if feature != ReferenceTSC {
				c.add(at(path+".value.features", i), "there is no feature %q: want %s", feature, ReferenceTSC)
			}
		}
	}
}

// cpuid wants leaves of the two defined ranges, each answered once.
func (c *checker) cpuid(set CPUID) {
	const path = "board.cpuid"
	if set.Vendor != "amd" && set.Vendor != "intel" {
		c.add(path+".vendor", "there is no vendor %q: want amd or intel", set.Vendor)
	}
	type answer struct {
		leaf, subleaf uint32
		whole         bool
	}
	seen, whole := map[answer]bool{}, map[uint32]bool{}
	for i, e := range set.Entries {
		entry := at(path+".entries", i)
		if e.Leaf > 0xffff && (e.Leaf < 0x80000000 || e.Leaf > 0x8000ffff) {
			c.add(entry+".leaf", "leaf %#x is out of range", e.Leaf)
		}
		a := answer{leaf: e.Leaf, whole: e.Subleaf == nil}
		if !a.whole {
			a.subleaf = *e.Subleaf
		}
		if was, known := whole[e.Leaf]; seen[a] || known && was != a.whole {
			c.add(entry, "leaf %#x is answered twice", e.Leaf)
		}
		seen[a], whole[e.Leaf] = true, a.whole
	}
}

// names refuses keys that become one on the server.
func (c *checker) names() {
	seen := map[string]bool{}
	for _, key := range c.spec.Components.Keys() {
		if seen[Key(key)] {
			c.add(componentPath(key), "is there twice, written differently")
		}
		if !utf8.ValidString(key) {
			c.add(componentPath(key), "is not text")
		}
		seen[Key(key)] = true
	}
}

func (c *checker) component(key string, part Component) {
	switch p := part.(type) {
	case NVMeDisk:
		c.takes(key, p.Backend, isStorage)
	case VirtioDisk:
		c.takes(key, p.Backend, isStorage)
	case VirtioNIC:
		c.takes(key, p.Backend, isA[VirtioNetwork])
		if uuid.Validate(p.Interface) != nil {
			c.add(bodyPath(key, "interface_id"), "%q is not a UUID", p.Interface)
		}
	case SoftNPUPort:
		c.takes(key, p.Backend, isA[DLPINetwork])
	case FileStorage:
		c.file(key, p)
	case BlobStorage:
		c.blob(key, p)
	case VirtioNetwork:
		c.vnic(key, p.VNIC)
	case DLPINetwork:
		c.vnic(key, p.VNIC)
	case VirtioSocket:
		if p.CID < 3 || p.CID > 1<<32-1 {
			c.add(bodyPath(key, "guest_cid"), "%d is not from 3 to %d", p.CID, uint32(1<<32-1))
		}
	case nil:
		c.add(componentPath(key), "there is nothing")
	case Other:
		c.add(componentPath(key)+".type", "no released Propolis server has a component %s", p.Tag)
	}
	if f := feature(part); f != "" && !slices.Contains(c.on.Features, f) {
		c.add(componentPath(key)+".type", "only a Propolis server that is built with the feature %s has a %s", f, part.Type())
	}
}

func isA[C Component](part Component) bool {
	_, ok := part.(C)
	return ok
}

func isStorage(c Component) bool {
	switch c.(type) {
	case FileStorage, BlobStorage, CrucibleStorage:
		return true
	}
	return false
}

func isNetwork(c Component) bool { return isA[VirtioNetwork](c) || isA[DLPINetwork](c) }

// takes gives a device its backend, which serves nobody else.
func (c *checker) takes(key, backend string, fits func(Component) bool) {
	where := bodyPath(key, "backend_id")
	part, ok := c.find(backend)
	switch user := c.used[Key(backend)]; {
	case !ok:
		c.lacks(where, "there is no backend %s", backend)
	case !fits(part):
		c.add(where, "%s, a %s, cannot be its backend", backend, part.Type())
	case user != "":
		c.add(where, "the backend %s serves %s", backend, user)
	}
	c.used[Key(backend)] = key
}

func (c *checker) find(key string) (Component, bool) {
	for other, part := range c.spec.Components {
		if part != nil && Key(other) == Key(key) {
			return part, true
		}
	}
	return nil, false
}

func (c *checker) vnic(key, name string) {
	where := bodyPath(key, "vnic_name")
	switch user := c.link[name]; {
	case name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		c.add(where, "%q is no VNIC", name)
	case user != "":
		c.add(where, "VNIC %s serves %s", name, user)
	}
	c.link[name] = key
}

func (c *checker) file(key string, f FileStorage) {
	switch {
	case !path.IsAbs(f.Path) || !utf8.ValidString(f.Path) || strings.ContainsRune(f.Path, 0):
		c.add(bodyPath(key, "path"), "%q is not an absolute name", f.Path)
	case f.BlockSize == 0:
		c.add(bodyPath(key, "block_size"), "blocks have no size")
	case f.Workers != nil && *f.Workers == 0:
		c.add(bodyPath(key, "workers"), "there are no workers")
	}
}

func (c *checker) blob(key string, b BlobStorage) {
	if IsSealed(b.Base64) {
		return
	}
	data, err := base64.StdEncoding.DecodeString(b.Base64)
	switch where := bodyPath(key, "base64"); {
	case err != nil || strings.ContainsAny(b.Base64, "\r\n"):
		c.add(where, "is not base64")
	case len(data) == 0 || len(data)%512 != 0:
		c.add(where, "%d bytes are not a multiple of 512", len(data))
	}
}

// ports wants com1, without which the server dies, each port once, and at most
// one pvpanic, one boot order and one vsock device.
func (c *checker) ports() {
	seen := map[string]string{}
	for _, key := range c.keys() {
		what, where := "", componentPath(key)
		switch p := c.spec.Components[key].(type) {
		case SerialPort:
			what, where = p.Number, bodyPath(key, "num")
			if !slices.Contains([]string{"com1", "com2", "com3", "com4"}, what) {
				c.add(where, "there is no serial port %q: want com1, com2, com3 or com4", what)
			}
		case Pvpanic, BootSettings, VirtioSocket:
			what = p.Type()
		default:
			continue
		}
		if other := seen[what]; other != "" {
			c.add(where, "%s is a %s already", other, what)
		}
		seen[what] = key
	}
	if seen["com1"] == "" {
		c.lacks("components", "there is no serial port com1, without which a Propolis server dies")
	}
}

// bootSettings wants disks, on the first bus, and not two next to a vsock device
// of a server on IPv6: what attests the guest there takes the one boot disk.
func (c *checker) bootSettings() {
	for _, key := range c.keys() {
		order, ok := c.spec.Components[key].(BootSettings)
		if !ok {
			continue
		}
		for i, e := range order.Order {
			where := at(bodyPath(key, "order"), i) + ".id"
			part, there := c.find(e.ID)
			switch part.(type) {
			case NVMeDisk, VirtioDisk:
			default:
				tell := c.add
				if !there {
					tell = c.lacks
				}
				tell(where, "%s is not a disk", e.ID)
				continue
			}
			if p, _ := Place(part); p.Bus != 0 {
				c.add(where, "%s is on bus %d: only those on bus 0 are booted from", e.ID, p.Bus)
			}
		}
		if len(order.Order) > 1 && c.on.IPv6 && slices.ContainsFunc(slices.Collect(maps.Values(c.spec.Components)), isA[VirtioSocket]) {
			c.add(bodyPath(key, "order"), "a machine with a vsock device boots from one disk at most where Propolis listens on IPv6: the server dies of more")
		}
	}
}

func (c *checker) leftovers() {
	for _, key := range c.keys() {
		part := c.spec.Components[key]
		if (isNetwork(part) || isStorage(part)) && c.used[Key(key)] == "" {
			c.lacks(componentPath(key), "no device uses this backend")
		}
	}
}

// maxWorkers is the number of threads beyond which a server takes its default
// instead (lib/propolis/src/block/file.rs).
const maxWorkers = 32

// Warnings lists what a server takes, and what may yet be a mistake.
func (s InstanceSpec) Warnings() []Problem {
	var p problems
	serials := map[SerialNumber]string{}
	for _, key := range s.Components.Keys() {
		switch part := s.Components[key].(type) {
		case FileStorage:
			if part.Workers != nil && *part.Workers > maxWorkers {
				p.add(bodyPath(key, "workers"), "%d are more than %d: the server takes its default", *part.Workers, maxWorkers)
			}
		case NVMeDisk:
			if other := serials[part.Serial]; other != "" {
				p.add(bodyPath(key, "serial_number"), "is that of %s too: guests tell disks by it", other)
			}
			serials[part.Serial] = key
		case PCIBridge, VirtioSocket, P9FS, SoftNPUPCIPort, SoftNPUP9, SoftNPUPort:
			p.add(componentPath(key), "a machine with a %s cannot be migrated", part.Type())
		}
	}
	return p
}
