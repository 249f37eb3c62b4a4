package spec

import (
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Problem is one thing that a server would refuse or die of.
type Problem struct {
	Where string // a component's key, or a field
	What  string
}

// InvalidError is a spec with problems, in a fixed order.
type InvalidError struct{ Problems []Problem }

// Error lists them all.
func (e *InvalidError) Error() string {
	all := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = p.Where + ": " + p.What
	}
	return "instance spec: " + strings.Join(all, "; ")
}

type problems []Problem

func (p *problems) add(where, format string, args ...any) {
	*p = append(*p, Problem{where, fmt.Sprintf(format, args...)})
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &InvalidError{p}
}

// Check finds what can be known without the host to make a server refuse the
// spec, or die of it: some of these faults end the whole process, and to the
// client that is a broken connection without a reason (crates and
// bin/propolis-server/src/lib/{spec,initializer.rs} of oxidecomputer/propolis).
// The error is an *InvalidError.
func (s InstanceSpec) Check() error {
	c := checker{spec: s, used: map[string]string{}, link: map[string]string{}}
	c.board()
	c.names()
	for _, key := range s.Components.Keys() {
		c.component(key, s.Components[key])
	}
	c.ports()
	c.bootSettings()
	c.places()
	c.leftovers()
	return c.problems.err()
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
	spec InstanceSpec
	used map[string]string // which device uses a backend, by Key
	link map[string]string // which backend uses a VNIC
}

func (c *checker) board() {
	b := c.spec.Board
	if b.CPUs < 1 || b.CPUs > MaxCPUs {
		c.add("board", "%d CPUs are not from 1 to %d", b.CPUs, MaxCPUs)
	}
	if b.MemoryMiB == 0 {
		c.add("board", "there is no memory")
	}
	if b.Chipset.Type != ChipsetI440FX {
		c.add("board", "there is no chipset %q", b.Chipset.Type)
	}
	if b.CPUID != nil {
		c.cpuid(*b.CPUID)
	}
}

// cpuid wants leaves of the two defined ranges, each answered once.
func (c *checker) cpuid(set CPUID) {
	type answer struct {
		leaf, subleaf uint32
		whole         bool
	}
	seen, whole := map[answer]bool{}, map[uint32]bool{}
	for _, e := range set.Entries {
		if e.Leaf > 0xffff && (e.Leaf < 0x80000000 || e.Leaf > 0x8000ffff) {
			c.add("cpuid", "leaf %#x is out of range", e.Leaf)
		}
		a := answer{leaf: e.Leaf, whole: e.Subleaf == nil}
		if !a.whole {
			a.subleaf = *e.Subleaf
		}
		if was, known := whole[e.Leaf]; seen[a] || known && was != a.whole {
			c.add("cpuid", "leaf %#x is answered twice", e.Leaf)
		}
		seen[a], whole[e.Leaf] = true, a.whole
	}
}

// names refuses keys that become one on the server.
func (c *checker) names() {
	seen := map[string]bool{}
	for _, key := range c.spec.Components.Keys() {
		if seen[Key(key)] {
			c.add(key, "is there twice, written differently")
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
		c.takes(key, p.Backend, func(b Component) bool { _, ok := b.(VirtioNetwork); return ok })
		if uuid.Validate(p.Interface) != nil {
			c.add(key, "the interface id %q is not a UUID", p.Interface)
		}
	case FileStorage:
		c.file(key, p)
	case BlobStorage:
		c.blob(key, p)
	case VirtioNetwork:
		c.vnic(key, p.VNIC)
	case VirtioSocket:
		if p.CID < 3 || p.CID > 1<<32-1 {
			c.add(key, "the guest's CID %d is not from 3 to %d", p.CID, uint32(1<<32-1))
		}
	case CrucibleStorage, SerialPort, PCIBridge, Pvpanic, BootSettings: // checked with others
	case nil:
		c.add(key, "there is nothing")
	default:
		c.add(key, "released Propolis servers take no %s", part.Type())
	}
}

func isStorage(c Component) bool {
	switch c.(type) {
	case FileStorage, BlobStorage, CrucibleStorage:
		return true
	}
	return false
}

// takes gives a device its backend, which serves nobody else.
func (c *checker) takes(key, backend string, fits func(Component) bool) {
	part, ok := c.find(backend)
	switch user := c.used[Key(backend)]; {
	case !ok:
		c.add(key, "there is no backend %s", backend)
	case !fits(part):
		c.add(key, "%s, a %s, cannot be its backend", backend, part.Type())
	case user != "":
		c.add(key, "its backend %s serves %s", backend, user)
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
	switch user := c.link[name]; {
	case name == "" || !utf8.ValidString(name):
		c.add(key, "%q is no VNIC", name)
	case user != "":
		c.add(key, "VNIC %s serves %s", name, user)
	}
	c.link[name] = key
}

func (c *checker) file(key string, f FileStorage) {
	switch {
	case !path.IsAbs(f.Path) || !utf8.ValidString(f.Path) || strings.ContainsRune(f.Path, 0):
		c.add(key, "%q is not an absolute name", f.Path)
	case f.BlockSize == 0:
		c.add(key, "blocks have no size")
	case f.Workers != nil && *f.Workers == 0:
		c.add(key, "there are no workers")
	}
}

func (c *checker) blob(key string, b BlobStorage) {
	data, err := base64.StdEncoding.DecodeString(b.Base64)
	switch {
	case err != nil || strings.ContainsAny(b.Base64, "\r\n"):
		c.add(key, "is not base64")
	case len(data) == 0 || len(data)%512 != 0:
		c.add(key, "%d bytes are not a multiple of 512", len(data))
	}
}

// ports wants com1, without which the server dies, each port once, and at most
// one pvpanic and one boot order.
func (c *checker) ports() {
	seen := map[string]string{}
	for _, key := range c.spec.Components.Keys() {
		what := ""
		switch p := c.spec.Components[key].(type) {
		case SerialPort:
			what = p.Number
			if !slices.Contains([]string{"com1", "com2", "com3", "com4"}, what) {
				c.add(key, "there is no serial port %q", what)
			}
		case Pvpanic, BootSettings, VirtioSocket:
			what = p.Type()
		default:
			continue
		}
		if other := seen[what]; other != "" {
			c.add(key, "%s is a %s already", other, what)
		}
		seen[what] = key
	}
	if seen["com1"] == "" {
		c.add("components", "there is no serial port com1")
	}
}

// bootSettings wants disks, and on the first bus.
func (c *checker) bootSettings() {
	for _, key := range c.spec.Components.Keys() {
		order, ok := c.spec.Components[key].(BootSettings)
		if !ok {
			continue
		}
		for _, e := range order.Order {
			part, _ := c.find(e.ID)
			switch part.(type) {
			case NVMeDisk, VirtioDisk:
			default:
				c.add(key, "%s is not a disk", e.ID)
				continue
			}
			if at, _ := place(part); at.Bus != 0 {
				c.add(key, "%s is on bus %d: only those on bus 0 are booted from", e.ID, at.Bus)
			}
		}
	}
}

func (c *checker) leftovers() {
	for _, key := range c.spec.Components.Keys() {
		part := c.spec.Components[key]
		_, network := part.(VirtioNetwork)
		if (network || isStorage(part)) && c.used[Key(key)] == "" {
			c.add(key, "no device uses this backend")
		}
	}
}
