package zfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/sim/world"
)

// Labels: what reading a device shows of the pool on it. Those of disks are
// made up from the state whenever somebody looks; those of files are in the
// files, so that a file that was written again or moved is what it is.

// OpenDevice is open(2) of a device or file by its full path. The errors are
// syscall.ENOENT; ENXIO for a partition that the disk does not have, and for a
// disk whose label cannot be read, unless a pool holds it open (bd_open in
// usr/src/uts/common/io/blkdev/blkdev.c).
func OpenDevice(tx *world.Tx, name string) (Device, error) {
	d, ok := FindDevice(tx, name)
	switch {
	case !ok:
		return d, syscall.ENOENT
	case d.Disk == nil && tx.Exists(d.File):
	case d.Disk == nil:
		return d, syscall.ENOENT
	case !Exists(d.Disk, d.Minor), d.Disk.Failing && !held(tx, d.Disk):
		return d, syscall.ENXIO
	}
	return d, nil
}

// held says whether an imported pool has a partition of the disk open.
func held(tx *world.Tx, d *world.Disk) bool {
	return slices.ContainsFunc(tx.State.Pools, func(p *world.Pool) bool {
		return p.Imported && slices.ContainsFunc(p.Vdevs, func(v string) bool { return DiskOf(tx, v) == d })
	})
}

// DiskOf is the disk that a pool's device lies on, nil for a file.
func DiskOf(tx *world.Tx, vdev string) *world.Disk {
	if strings.HasPrefix(vdev, "/") {
		return nil
	}
	for _, d := range tx.State.Disks {
		if rest, ok := strings.CutPrefix(vdev, d.Name); ok && (rest == "" || rest[0] == 's') {
			return d
		}
	}
	return nil
}

// ReadLabel is zpool_read_label: the pool whose label is on the device, with
// the number of its device there, or nil. A device that cannot be read is one
// without a label (usr/src/lib/libzutil/common/zutil_import.c).
func ReadLabel(tx *world.Tx, d Device) (*world.Pool, int) {
	if d.Disk == nil {
		return readFileLabel(tx, d.File)
	}
	if d.Disk.Gone || d.Disk.Failing || d.Minor >= minorWhole {
		return nil, 0
	}
	at := d.vdev()
	for _, p := range tx.State.Pools {
		if p.Orphaned {
			continue
		}
		if n := slices.Index(p.Vdevs, at); n >= 0 {
			return p, n
		}
	}
	return nil, 0
}

// The parts of a label (usr/src/uts/common/sys/vdev_impl.h): the configuration
// begins after a blank page and a boot header, the uberblocks in its middle.
const (
	labelSize  = 256 << 10
	labelAt    = 16 << 10
	uberblocks = 128 << 10
)

const labelLine = "label of a simulated pool: guid %d device %d state %d txg %d\n"

// labelBytes is the first label of one of a pool's devices.
func labelBytes(p *world.Pool, index, state int) []byte {
	data := make([]byte, labelSize)
	copy(data[labelAt:], fmt.Sprintf(labelLine, p.GUID, index, state, p.TXG))
	copy(data[uberblocks:], []byte{0x0c, 0xb1, 0xba, 0x00}) // UBERBLOCK_MAGIC
	return data
}

// destroyed is POOL_STATE_DESTROYED.
const destroyed = 2

// writeLabels brings what the labels of a pool tell up to date: a change of its
// configuration is a new transaction group.
func writeLabels(tx *world.Tx, p *world.Pool) error {
	p.TXG, p.Accessed = txg(tx), tx.Now.Unix()
	if p.Imported || p.HostID == 0 {
		p.HostID = HostID(tx)
	}
	return writeFileLabels(tx, p, LabelState(p))
}

func writeFileLabels(tx *world.Tx, p *world.Pool, state int) (err error) {
	for i, v := range p.Vdevs {
		if !strings.HasPrefix(v, "/") {
			continue
		}
		f, shut := tx.Files.Open(v, os.O_WRONLY, 0)
		if shut == nil {
			_, shut = f.Write(labelBytes(p, i, state))
			shut = errors.Join(shut, f.Close())
		}
		err = errors.Join(err, unless(shut, fs.ErrNotExist)) // A file that was removed has no label.
	}
	return err
}

func readFileLabel(tx *world.Tx, name string) (*world.Pool, int) {
	f, err := tx.Files.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0
	}
	defer f.Close()
	data := make([]byte, 4096)
	n, _ := f.ReadAt(data, labelAt)
	line, _, _ := bytes.Cut(data[:n], []byte("\n"))
	var guid, txg uint64
	var index, state int
	if _, err := fmt.Sscanf(string(line)+"\n", labelLine, &guid, &index, &state, &txg); err != nil || state == destroyed {
		return nil, 0
	}
	i := slices.IndexFunc(tx.State.Pools, func(p *world.Pool) bool { return p.GUID == guid && index < len(p.Vdevs) })
	if i < 0 {
		return nil, 0
	}
	return tx.State.Pools[i], index
}

// Scrap says whether the labels of a destroyed pool are left on a disk's slice.
func Scrap(tx *world.Tx, d Device) bool {
	return d.Disk != nil && d.Minor < minorWhole && slices.Contains(d.Disk.Scraps, d.vdev())
}

// DeviceSize is how much can be read from a device.
func DeviceSize(tx *world.Tx, d Device) int64 {
	if d.Disk != nil && d.Minor >= minorWhole {
		return int64(d.Disk.Size)
	}
	return int64(VdevSize(tx, d.vdev()))
}

// ReadDevice reads from a disk: the label of the pool that is on it, the
// partition table of a whole disk, zeros elsewhere. A disk that fails gives EIO.
func ReadDevice(tx *world.Tx, d Device, p []byte, offset int64) error {
	clear(p)
	if d.Disk == nil || d.Disk.Failing {
		return syscall.EIO
	}
	show := func(data []byte, at int64) {
		if offset < at+int64(len(data)) && at < offset+int64(len(p)) {
			from := max(0, offset-at)
			copy(p[max(0, at-offset):], data[from:])
		}
	}
	pool, index := ReadLabel(tx, d)
	if pool != nil || Scrap(tx, d) {
		label := labelBytes((&world.Pool{}), 0, destroyed)
		if pool != nil {
			label = labelBytes(pool, index, LabelState(pool))
		}
		// Two at either end (vdev_label.c).
		end := DeviceSize(tx, d)
		for _, at := range []int64{0, labelSize, end - 2*labelSize, end - labelSize} {
			show(label, at)
		}
	}
	if d.Minor >= minorWhole && d.Disk.Layout != "" {
		show([]byte("EFI PART"), 4096) // in the second block (UEFI, GPT header)
	}
	return nil
}

// ClearLabel is zpool_clear_label: no label is left on the slice, and no pool.
func ClearLabel(tx *world.Tx, d Device) (err error) {
	if pool, _ := ReadLabel(tx, d); pool != nil {
		d.Disk.Pool, err = "", DropPool(tx, pool)
	}
	d.Disk.Scraps = slices.DeleteFunc(d.Disk.Scraps, func(s string) bool { return s == d.vdev() })
	return err
}
