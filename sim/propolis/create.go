package propolis

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// This file makes a machine's parts, as bin/propolis-server/src/lib/initializer.rs
// does: what the zone must have for it, and what happens where it has not.

// errPanic is a fault at which a release build of the server aborts: SMF
// starts it again, the VM is lost, the client sees a broken connection.
var errPanic = errors.New("panicked")

// maxCPUs is the limit of each build (oxidecomputer/propolis,
// lib/propolis/src/vcpu.rs).
func maxCPUs(build string) uint64 {
	if build == world.OmicronBuild {
		return 254
	}
	return 32
}

// creation makes the parts of one machine.
type creation struct {
	tx      *world.Tx
	process *world.Process
	machine machine
	links   []string
}

// create gives the links that the machine holds open, or why it cannot be
// made.
//
// Guess host-faults-are-500: every fault of the host while a machine is made is a 500.
// Check: `curl` with such requests
func create(tx *world.Tx, p *world.Process, m machine) ([]string, error) {
	c := &creation{tx: tx, process: p, machine: m}
	for _, step := range []func() error{c.checkBoard, c.bootrom, c.checkBridges, c.checkSlots, c.openNICs, c.openDisks, c.checkRest} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if tx.TakeFault([]string{"propolis", "create"}, world.FaultFail) != nil {
		return nil, errors.New("failed to allocate guest memory: Not enough space (os error 12)")
	}
	return c.links, nil
}

// Guess words-for-too-many-cpus: a machine of more CPUs than the host has is refused with "failed
// to create machine: Invalid argument (os error 22)". That it is refused is known.
// Check: `curl` with such a request
func (c *creation) checkBoard() error {
	most := maxCPUs(c.tx.State.Build)
	switch b := c.machine.board; {
	case !c.hasDevice("/dev/vmmctl") || !c.hasDevice("/dev/vmm/vm"): // which every machine opens
		return errNoEntry
	case b.CPUs == 0 || b.CPUs > most:
		return fmt.Errorf("%d virtual CPUs requested, but only up to %d supported", b.CPUs, most)
	case b.CPUs > uint64(c.tx.Processors()):
		return errors.New("failed to create machine: Invalid argument (os error 22)")
	case b.Memory == 0:
		return errors.New("failed to create machine: Invalid argument (os error 22)")
	}
	if err := c.tx.TakeMemory(c.process.VM, c.machine.board.Memory<<20); err != nil {
		return errors.New("failed to allocate guest memory: No space left on device (os error 28)")
	}
	return nil
}

// bootrom is read when the machine is made, not when the server starts.
func (c *creation) bootrom() error {
	name := bootromOf(c.process.Argv)
	info, err := c.tx.Files.Stat(c.tx.ZonePathOf(c.process.Zone, name))
	if err != nil || !info.Mode.IsRegular() || info.Size == 0 || info.Size%4096 != 0 || info.Size > 2<<20 {
		return fmt.Errorf("%w: bootrom %s", errPanic, name)
	}
	return nil
}

// bootromOf is the first operand behind "run".
func bootromOf(argv []string) string {
	for i := slices.Index(argv, "run") + 1; i > 0 && i < len(argv); i++ {
		switch {
		case !strings.HasPrefix(argv[i], "-"):
			return argv[i]
		case !strings.Contains(argv[i], "="):
			i++ // its value
		}
	}
	return ""
}

func (c *creation) checkBridges() error {
	buses := []uint64{0}
	for _, b := range c.machine.bridges {
		if slices.Contains(buses, b.bus) {
			return fmt.Errorf("invalid downstream bus %d for PCI bridge", b.bus)
		}
		buses = append(buses, b.bus)
	}
	for _, b := range c.machine.bridges {
		if !slices.Contains(buses, b.path.Bus) {
			return fmt.Errorf("PCI bridge is on bus %d, which no bridge provides", b.path.Bus)
		}
	}
	return nil
}

// checkSlots: host bridge, LPC and power management have theirs, and a
// bus must exist, as must the first port.
func (c *creation) checkSlots() error {
	if !slices.Contains(c.machine.ports, "com1") {
		return fmt.Errorf("%w: no com1", errPanic)
	}
	builtIn := []pciPath{{0, 0, 0}, {0, 1, 0}, {0, 1, 3}}
	for _, a := range c.machine.attached {
		provided := a.path.Bus == 0 || slices.ContainsFunc(c.machine.bridges, func(b bridge) bool { return b.bus == a.path.Bus })
		if !provided || slices.Contains(builtIn, a.path) {
			return fmt.Errorf("%w: device %s cannot be attached", errPanic, a.key)
		}
	}
	return nil
}

// openNICs opens the links through viona, which the zone must have; a link
// serves one machine.
func (c *creation) openNICs() error {
	for _, vnic := range c.machine.nics {
		switch {
		case !c.hasDevice("/dev/viona"):
			return errNoEntry
		case network.LinkIn(c.tx, c.process.Zone, vnic) == nil:
			return fmt.Errorf("failed to create viona device for %q: No such device or address (os error 6)", vnic)
		case c.taken(vnic) || slices.Contains(c.links, vnic):
			return fmt.Errorf("failed to create viona device for %q: Device busy (os error 16)", vnic)
		}
		c.links = append(c.links, vnic)
	}
	return nil
}

func (c *creation) taken(link string) bool {
	return slices.ContainsFunc(c.tx.State.Processes, func(p *world.Process) bool {
		return p != c.process && p.Zone == c.process.Zone && p.VM != nil && slices.Contains(p.VM.Links, link) &&
			!finished(world.At(p.VM.Timeline, c.tx.Now).State)
	})
}

func (c *creation) openDisks() error {
	for _, d := range c.machine.disks {
		var err error
		switch has := d.backend.contents(); d.backend.Type {
		case "file_storage_backend":
			err = c.openFile(has.File, has.ReadOnly)
		case "blob_storage_backend":
			data, decode := base64.StdEncoding.DecodeString(has.Base64)
			if err = decode; err == nil && (len(data) == 0 || len(data)%512 != 0) {
				err = fmt.Errorf("size %d of disk is no multiple of its block size 512", len(data))
			}
		default:
			err = openCrucible(has.Volume)
		}
		if err != nil {
			return fmt.Errorf("failed to create backend of %s: %w", d.key, err)
		}
	}
	return nil
}

// osError is an error number as printed by Rust's std::io::Error.
type osError string

func (e osError) Error() string { return string(e) }

const (
	errNoEntry  osError = "No such file or directory (os error 2)"
	errReadOnly osError = "Read-only file system (os error 30)"
)

// openFile opens a disk as the zone sees it: a device that it was given, or a
// file.
func (c *creation) openFile(path string, readonly bool) error {
	if strings.HasPrefix(path, "/dev/") {
		return c.openDevice(path)
	}
	info, err := c.tx.Files.Stat(c.tx.ZonePathOf(c.process.Zone, path))
	switch {
	case err != nil || !info.Mode.IsRegular():
		return errNoEntry
	case !readonly && (c.tx.ReadOnlyIn(c.process.Zone, path) || info.Mode.Perm()&0o222 == 0):
		return errReadOnly
	}
	return nil
}

// openDevice: a volume must exist and be among the devices of the zone.
func (c *creation) openDevice(path string) error {
	for _, dir := range []string{"/dev/zvol/rdsk/", "/dev/zvol/dsk/"} {
		name, ok := strings.CutPrefix(path, dir)
		if d := zfs.FindDataset(c.tx, name); ok && d != nil && d.Type == "volume" && c.hasDevice(path) {
			return nil
		}
	}
	return errNoEntry
}

// hasDevice says whether the zone was given a device. The global zone has all.
func (c *creation) hasDevice(path string) bool {
	z := c.tx.FindZone(c.process.Zone)
	if z == nil || z.Kernel == nil {
		return z == nil && c.process.Zone == world.GlobalZone
	}
	return slices.ContainsFunc(z.Kernel.Config.Resources, func(r world.Resource) bool {
		return r.Type == "device" && slices.ContainsFunc(r.Properties, func(p world.Property) bool {
			return p.Name == "match" && slices.ContainsFunc(p.Values, func(pattern string) bool { return glob(pattern, path) })
		})
	})
}

// glob matches a pattern whose "*" stands for anything, slashes too, as the
// patterns of devices in a zone's configuration do (gmatch(3GEN)).
func glob(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	tail, ok := strings.CutPrefix(name, head)
	switch {
	case !ok:
		return false
	case !star:
		return tail == ""
	}
	for i := range len(tail) + 1 {
		if glob(rest, tail[i:]) {
			return true
		}
	}
	return false
}

// checkRest: where the disks to boot from are, the address of a vsock device, and
// a panic of the server that it meets with two boot options while it listens on
// IPv6.
func (c *creation) checkRest() error {
	for _, d := range c.machine.disks {
		if d.path.Bus != 0 && slices.Contains(c.machine.boot, bootEntry{d.key}) {
			return fmt.Errorf("boot disk %s is not on PCI bus 0", d.key)
		}
	}
	cid := c.machine.socket
	listen, err := netip.ParseAddrPort(c.process.Listen)
	switch {
	case cid == nil:
		return nil
	case *cid < 3 || *cid > 1<<32-1:
		return fmt.Errorf("invalid guest CID %d", *cid)
	case err == nil && listen.Addr().Is6() && len(c.machine.boot) > 1:
		return fmt.Errorf("%w: attestation finds two boot disks", errPanic)
	}
	return nil
}

// finished says whether a machine is over: the server takes another one.
func finished(state string) bool { return state == "Destroyed" || state == "Failed" }

// logName is the file that SMF gives a service's output to.
func logName(fmri string) string {
	name := strings.TrimPrefix(fmri, "svc:/")
	return "/var/svc/log/" + strings.ReplaceAll(cmp.Or(name, "propolis"), "/", "-") + ".log"
}
