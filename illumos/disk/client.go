package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/devtree"
)

// Source is where disks are looked for: Detect, Vdevs or Devices.
type Source interface {
	look(ctx context.Context, h host.Host) ([]Disk, error)
}

// Look lists the disks of a source, M.2s first, by their slots. A disk that is
// there and cannot be made out is told by the error; the others are listed all
// the same. Errors: ErrNoSlots; ErrSyntax; devtree.ErrSyntax; a *host.CommandError.
func Look(ctx context.Context, h host.Host, s Source) ([]Disk, error) {
	disks, err := s.look(ctx, h)
	if err != nil {
		err = fmt.Errorf("look for disks: %w", err)
	}
	return sorted(disks), err
}

// Detect finds the disks in the slots of an Oxide sled: NVMe disks behind a
// bridge that has the slot's number, as the sled agent finds them
// (oxidecomputer/omicron sled-hardware/src/illumos/mod.rs). On other machines it
// is ErrNoSlots.
type Detect struct {
	// Board is "gimlet" or "cosmo"; empty or "auto": as the machine calls itself.
	Board string
}

// Vdevs are files that stand for disks: DIR/NAME with names u2_X.vdev and
// m2_X.vdev. They have the identities that the sled agent gives such files, so
// the keys of one fit the other's (oxidecomputer/omicron sled-storage).
type Vdevs struct {
	Dir   string // where names that are no paths lie; empty: /var/tmp
	Names []string
}

// Devices are disks that are configured by their devices. An M.2 among them has
// the partitions of a sled's, or is the pool's as a whole.
type Devices []Device

// Device is one of them.
type Device struct {
	Kind Kind
	Path string // /dev/dsk/c3t0d0
}

func (s Detect) look(ctx context.Context, h host.Host) ([]Disk, error) {
	nodes, err := devtree.Query(ctx, h)
	if err != nil {
		return nil, err
	}
	root := nodes[0]
	b, err := s.board(root)
	if err != nil {
		return nil, err
	}
	unit, _ := root.Number("boot-storage-unit") // without it, it is not known which
	var disks []Disk
	var unclear error
	for _, n := range nodes {
		if n.Driver != "blkdev" {
			continue
		}
		slot, err := n.Above("nvme").Above("pcieb").Number("physical-slot#")
		if err != nil || b.kind(int(slot)) == "" {
			continue // behind something else, or in a slot of something else
		}
		d, err := found(n, b.kind(int(slot)), int(slot))
		if err != nil {
			unclear = errors.Join(unclear, fmt.Errorf("slot %#02x: %w", slot, err))
			continue
		}
		d.Boot = b.booted(d.Slot, unit)
		disks = append(disks, d)
	}
	return disks, unclear
}

func (s Detect) board(root *devtree.Node) (board, error) {
	if s.Board != "" && s.Board != "auto" {
		b, known := boards()[s.Board]
		if !known {
			return b, fmt.Errorf("board %q is none of gimlet, cosmo", s.Board)
		}
		return b, nil
	}
	for _, b := range boards() {
		if b.root == root.Name {
			return b, nil
		}
	}
	return board{}, fmt.Errorf("this machine calls itself %s: %w", root.Name, ErrNoSlots)
}

// found makes a disk of a node.
//
// Guess size-in-two-properties: a disk whose node has no device-nblocks or device-blksize does not
// tell its size, and nothing else in `prtconf` would.
// Check: `prtconf -v | grep -A1 device-nblocks` for each disk
func found(n *devtree.Node, kind Kind, slot int) (Disk, error) {
	device, there := whole(n)
	if !there {
		return Disk{}, fmt.Errorf("%s has no link for the whole disk: %w", n.Name, ErrSyntax)
	}
	d := Disk{Name: path.Base(device), Kind: kind, Slot: slot, Device: device}
	var err error
	if d.Identity, err = identity(n); err != nil {
		return Disk{}, err
	}
	blocks, berr := n.Number("device-nblocks")
	block, serr := n.Number("device-blksize")
	if berr == nil && serr == nil {
		d.Size = blocks * block
	}
	d.lay()
	return d, nil
}

// identity is what the sled agent takes for it: of an NVMe disk the vendor is the
// controller's number in hexadecimal, and the model has no vendor before it where
// the driver only puts a word there.
//
// Guess disk-below-nvme-below-pcieb: a disk in a slot is a blkdev below an nvme below a pcieb with
// physical-slot#, and the identity is made of its properties as the sled agent makes it.
// Check: `sledctl storage list`, and what `omdb` or the agent's log calls the disks
func identity(n *devtree.Node) (Identity, error) {
	serial, serr := n.Text("inquiry-serial-no")
	product, perr := n.Text("inquiry-product-id")
	vendor, verr := n.Text("inquiry-vendor-id")
	if err := errors.Join(serr, perr, verr); err != nil {
		return Identity{}, err
	}
	i := Identity{Vendor: vendor, Model: product, Serial: serial}
	controller := n.Above("nvme")
	if controller == nil {
		return i, nil
	}
	number, err := controller.Number("vendor-id")
	if err != nil {
		return Identity{}, err
	}
	i.Vendor = fmt.Sprintf("%x", number)
	if vendor != "" && vendor != "NVMe" {
		i.Model = vendor + " " + product
	}
	return i, nil
}

func (s Vdevs) look(_ context.Context, h host.Host) ([]Disk, error) {
	var disks []Disk
	var unclear error
	for i, name := range s.Names {
		d, err := s.disk(h.Files(), name)
		if err != nil {
			unclear = errors.Join(unclear, err)
			continue
		}
		d.Slot = firstFileSlot + i
		disks = append(disks, d)
	}
	return disks, unclear
}

func (s Vdevs) disk(files host.Files, name string) (Disk, error) {
	if !path.IsAbs(name) {
		dir := s.Dir
		if dir == "" {
			dir = "/var/tmp"
		}
		name = path.Join(dir, name)
	}
	short, ended := strings.CutSuffix(path.Base(name), ".vdev")
	kind, serial, found := strings.Cut(short, "_")
	if !ended || !found || serial == "" || kind != string(M2) && kind != string(U2) {
		return Disk{}, fmt.Errorf("%s is neither u2_NAME.vdev nor m2_NAME.vdev", name)
	}
	d := Disk{
		Name: short, Kind: Kind(kind), Device: name, Boot: kind == string(M2),
		Identity: Identity{
			Vendor: "synthetic-vendor", Model: "synthetic-model-" + strings.ToUpper(kind), Serial: "synthetic-serial-" + serial,
		},
	}
	info, err := files.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Disk{Name: d.Name, Kind: d.Kind, Device: d.Device, Absent: true}, nil
	case err != nil:
		return Disk{}, err
	case !info.Mode.IsRegular():
		return Disk{}, fmt.Errorf("%s is no file: %v", name, info.Mode)
	}
	d.Size = uint64(info.Size)
	d.lay()
	return d, nil
}

func (s Devices) look(ctx context.Context, h host.Host) ([]Disk, error) {
	if len(s) == 0 {
		return nil, nil // nothing to ask for
	}
	nodes, err := devtree.Query(ctx, h)
	if err != nil {
		return nil, err
	}
	var disks []Disk
	var unclear error
	for _, device := range s {
		i := slices.IndexFunc(nodes, func(n *devtree.Node) bool {
			link, found := whole(n)
			return found && link == device.Path
		})
		if i < 0 {
			disks = append(disks, Disk{Name: path.Base(device.Path), Kind: device.Kind, Slot: NoSlot, Device: device.Path, Absent: true})
			continue
		}
		d, err := found(nodes[i], device.Kind, NoSlot)
		if err == nil && device.Kind == M2 {
			err = d.layAsFound(h.Files())
		}
		if err != nil {
			unclear = errors.Join(unclear, fmt.Errorf("%s: %w", device.Path, err))
			continue
		}
		disks = append(disks, d)
	}
	return disks, unclear
}

// layAsFound removes the partitions again if there are not as many.
func (d *Disk) layAsFound(files host.Files) error {
	err := d.partitioned(files)
	if _, none := errors.AsType[*PartitionError](err); none {
		d.Partitions, d.PoolDevice = nil, d.Device
		return nil
	}
	return err
}

// PartitionError is an M.2 that has no partition for its pool. Sledctl makes
// none, as the sled agent does not: the others are the boot image's and the dump
// device's (oxidecomputer/omicron sled-hardware/src/illumos/partitions.rs).
type PartitionError struct {
	Disk   string
	Device string // of the partition
	Err    error
}

// Error says what there should be.
func (e *PartitionError) Error() string {
	return fmt.Sprintf("disk %s has no partition %s: an M.2 has %d, and the last holds the pool", e.Disk, path.Base(e.Device), m2Partitions)
}

func (*PartitionError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the host's error.
func (e *PartitionError) Unwrap() error { return e.Err }

// Hint says who makes them.
//
// Guess partitions-copied-by-hand: the partitions of one M.2 can be given to another with `prtvtoc`
// and format(8), as the hint for an M.2 without them says.
// Check: on a bench sled: `prtvtoc /dev/rdsk/c1t0d0`, then format(8) of a new M.2
func (e *PartitionError) Hint() string {
	return "give it the partitions of the other M.2 with format(8), since sledctl partitions no disk; to see those, run: prtvtoc DEVICE"
}

// partitioned fails with a *PartitionError if the pool's partition is missing.
//
// Guess missing-slice-is-enxio: opening a slice that a disk does not have fails with ENXIO, or
// ENOENT where there is no link for it; that and nothing else is "it has no such partition".
// Check: `dd if=/dev/dsk/c1t0d0s5 of=/dev/null count=1` on a disk without slice 5
func (d Disk) partitioned(files host.Files) error {
	f, err := files.Open(d.PoolDevice, 0, 0)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, syscall.ENXIO), errors.Is(err, fs.ErrNotExist):
		return &PartitionError{Disk: d.Name, Device: d.PoolDevice, Err: err}
	}
	return err
}
