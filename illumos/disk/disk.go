// Package disk finds the disks of a sled and says what is on them: in the slots
// of an Oxide sled by the device tree, elsewhere by configuration, and files that
// stand for disks.
//
// A disk is blank only if it was proven to be: everything that looked at it
// answered, and saw nothing. A look that failed is an error.
package disk

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Kind is what a disk is for.
type Kind string

// The kinds.
const (
	M2 Kind = "m2" // internal: what the sled is booted from, and keeps about itself
	U2 Kind = "u2" // external: the guests' data
)

// Identity is how a disk identifies itself. It stays when the disk moves to
// another slot.
type Identity struct{ Vendor, Model, Serial string }

// Disk is a disk, or a file that stands for one.
type Disk struct {
	Name     string // c11t0d0, u2_0
	Kind     Kind
	Slot     int // of an Oxide sled, from 1024 for files, NoSlot for other disks
	Identity Identity
	Size     uint64 // bytes; 0 if it is not known
	Device   string // the whole disk, or the file, by its full path
	// Partitions are those of an M.2 in their order, by their full paths.
	Partitions []string
	// PoolDevice is where its pool is or would be: the sixth partition of an M.2,
	// all of a U.2 or file. Content tells it more exactly.
	PoolDevice string
	// Boot says that the sled was booted from it; of files that stand for M.2s
	// it is true of each.
	Boot bool
	// Absent is a disk that is configured and not there. Only its name, kind,
	// slot and device are known then.
	Absent bool
}

// NoSlot is the slot of a disk that is in none that we know.
const NoSlot = -1

// firstFileSlot is the slot of the first file: none of a sled's is so high
// (oxidecomputer/omicron sled-agent config: vdevs).
const firstFileSlot = 1024

// IsFile says whether it is a file that stands for a disk.
func (d Disk) IsFile() bool { return !strings.HasPrefix(d.Device, deviceDir) }

// Owns says whether a device of a pool, as zpool names it, lies on the disk:
// "c11t0d0", "c11t0d0s5", either with its directory, or the file.
func (d Disk) Owns(device string) bool {
	if d.IsFile() {
		return device == d.Device
	}
	short, _ := strings.CutPrefix(device, deviceDir)
	rest, found := strings.CutPrefix(short, path.Base(d.Device))
	if !found || rest == "" {
		return found
	}
	_, err := strconv.ParseUint(rest[1:], 10, 8)
	return (rest[0] == 's' || rest[0] == 'p') && err == nil
}

const (
	deviceDir = "/dev/dsk/"
	rawDir    = "/dev/rdsk/"
)

// raw is the character device next to a block device.
func raw(device string) string {
	if short, found := strings.CutPrefix(device, deviceDir); found {
		return rawDir + short
	}
	return device
}

func slice(device string, n int) string { return device + "s" + strconv.Itoa(n) }

// ErrNoSlots is a machine whose slots are not known: it is no Oxide sled.
var ErrNoSlots = fmt.Errorf("no slots for disks that are known: %w", host.ErrNotFound)

// sorted puts M.2s first, each kind by its slot and name.
func sorted(disks []Disk) []Disk {
	slices.SortStableFunc(disks, func(a, b Disk) int {
		if a.Kind != b.Kind {
			return strings.Compare(string(a.Kind), string(b.Kind))
		}
		if a.Slot != b.Slot {
			return a.Slot - b.Slot
		}
		return strings.Compare(a.Name, b.Name)
	})
	return disks
}
