package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Pool is a pool that zpool lists, imported or not.
type Pool struct {
	Name, GUID string
	Imported   bool
	Devices    []string // as zpool names them
}

// Content is what is on a disk where its pool is or would be.
type Content struct {
	State State
	Pool  Pool   // if it is HasPool
	Other string // if it is Other: what is there
	// Device is what a pool on it has, or would be made on: for zpool create.
	Device string
}

// State is a kind of content.
type State string

// The states.
const (
	Blank   State = "blank" // proven: nothing would be lost
	HasPool State = "pool"
	Other   State = "other" // something else; it is never overwritten
)

// Probe says what is on a disk. Pools are those that zpool list and zpool import
// show, complete: fstyp alone takes a disk that cannot be read for one without a
// label, as long as a pool has it open (zpool_read_label of
// usr/src/lib/libzutil/common/zutil_import.c). The disk is blank if fstyp says
// that nothing matches, no pool is said to lie on it, and the places of ZFS's
// labels were read and are zeros. Whatever could not be looked at, and whatever
// contradicts itself, is an error.
func Probe(ctx context.Context, h host.Host, d Disk, pools []Pool) (Content, error) {
	c, err := d.probe(ctx, h, pools)
	if err != nil {
		return Content{}, fmt.Errorf("look what is on disk %s: %w", d.Name, err)
	}
	return c, nil
}

func (d Disk) probe(ctx context.Context, h host.Host, pools []Pool) (Content, error) {
	if d.Absent {
		return Content{}, fmt.Errorf("%s does not exist: %w", d.Device, host.ErrNotFound)
	}
	listed, there := d.listed(pools)
	if there && listed.Imported {
		return Content{State: HasPool, Pool: listed, Device: d.PoolDevice}, nil
	}
	device, size, err := d.where(h.Files())
	if err != nil {
		return Content{}, err
	}
	found, err := content(ctx, h, device)
	switch {
	case err != nil:
		return Content{}, err
	case there && found.guid != listed.GUID:
		return Content{}, fmt.Errorf("zpool finds pool %s, guid %s, on it, and fstyp %s", listed.Name, listed.GUID, found)
	case there:
		return Content{State: HasPool, Pool: listed, Device: device}, nil
	case found.system == "zfs":
		return Content{State: HasPool, Pool: Pool{Name: found.name, GUID: found.guid, Devices: []string{device}}, Device: device}, nil
	case found.system != "":
		return Content{State: Other, Other: "a file system: " + found.system, Device: device}, nil
	}
	zeros, err := blank(h.Files(), device, size)
	switch {
	case err != nil:
		return Content{}, err
	case !zeros:
		return Content{State: Other, Other: "data that fstyp does not know", Device: device}, nil
	}
	return Content{State: Blank, Device: device}, nil
}

// listed is the pool that zpool shows on the disk. Of an M.2 only the pool's
// partition counts: sledctl does not use the others.
func (d Disk) listed(pools []Pool) (Pool, bool) {
	for _, p := range pools {
		for _, device := range p.Devices {
			mine := d.Owns(device)
			if len(d.Partitions) > 0 {
				mine = strings.TrimPrefix(device, deviceDir) == strings.TrimPrefix(d.PoolDevice, deviceDir)
			}
			if mine {
				return p, true
			}
		}
	}
	return Pool{}, false
}

// where is what to look at: the pool's partition of an M.2, the first one of
// another disk that has a partition table, else all of it. Size is 0 for a
// partition.
//
// Guess unlabelled-disk-opens-whole: a disk without a partition table can be opened as a whole and
// by /dev/rdsk, and fstyp can look at it so.
// Check: that, with a new disk
func (d Disk) where(files host.Files) (device string, size uint64, err error) {
	if d.IsFile() {
		return d.Device, d.Size, nil
	}
	if len(d.Partitions) > 0 {
		return d.PoolDevice, 0, d.partitioned(files)
	}
	head, err := read(files, d.Device, 0, 2*largestBlock)
	if err != nil {
		return "", 0, err
	}
	if partitioned(head) {
		return slice(d.Device, 0), 0, nil
	}
	return d.Device, d.Size, nil
}

const largestBlock = 4096

// partitioned says whether the disk has a GPT, whose header is in its second
// block, of 512 or 4096 bytes (UEFI specification, GPT header).
func partitioned(head []byte) bool {
	for _, block := range []int{512, largestBlock} {
		if len(head) >= block+8 && string(head[block:block+8]) == "EFI PART" {
			return true
		}
	}
	return false
}

// noMatch is the output of fstyp for a device without contents that it knows
// (usr/src/cmd/fstyp/fstyp.c, FSTYP_ERR_NO_MATCH).
//
// Guess no-match-and-zeros-are-blank: `fstyp -a` of what it does not know says "unknown_fstyp (no
// matches)" and ends with 1; that and zeros where labels would be are taken for a blank disk.
// Check: `fstyp -a` of a new disk
const noMatch = "unknown_fstyp (no matches)\n"

// content asks fstyp. If nothing matches, it is nothing.
func content(ctx context.Context, h host.Host, device string) (file, error) {
	c := contentCommand(raw(device))
	r, err := h.Run(ctx, c)
	switch {
	case err != nil:
		return file{}, err
	case r.Exit == 1 && len(r.Stdout) == 0 && string(r.Stderr) == noMatch:
		return file{}, nil
	case r.Exit != 0 || len(r.Stderr) > 0:
		return file{}, &host.CommandError{Command: c, Result: r}
	}
	return parseContent(r.Stdout)
}

// String says what it is.
func (f file) String() string {
	switch {
	case f.system == "":
		return "nothing"
	case f.system == "zfs":
		return fmt.Sprintf("pool %s, guid %s", f.name, f.guid)
	}
	return "a file system: " + f.system
}

// labels is how much ZFS's two labels take at each end of a device, in bytes
// (VDEV_LABEL_START_SIZE without the boot block, and VDEV_LABEL_END_SIZE, of
// usr/src/uts/common/sys/vdev_impl.h).
const labels = 512 << 10

// blank says whether there are only zeros where labels, partition tables and the
// superblocks of most file systems would be.
func blank(files host.Files, device string, size uint64) (bool, error) {
	starts := []int64{0}
	if size > 2*labels {
		starts = append(starts, int64(size)-labels)
	}
	for _, at := range starts {
		data, err := read(files, device, at, labels)
		if err != nil {
			return false, err
		}
		for _, b := range data {
			if b != 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

// read reads n bytes, or up to the end.
func read(files host.Files, name string, at int64, n int) ([]byte, error) {
	f, err := files.Open(name, 0, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, n)
	got, err := f.ReadAt(data, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if got == 0 {
		return nil, fmt.Errorf("%s: nothing can be read at %d", name, at)
	}
	return data[:got], nil
}
