package zfs

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// The health of a pool follows from its devices (zpoolconcepts(7)). One that
// lacks too many is suspended: all input and output ends with EIO, or waits, as
// the property failmode says. It stays so when the devices are back, until
// zpool clear (zio_resume in usr/src/uts/common/fs/zfs/zio.c).
//
// Guess pool-notices-at-once: a pool notices at once that its disk is gone; a real one with the
// next input or output.
// Check: pull one, `zpool status`
const (
	online      = "ONLINE"
	unavailable = "UNAVAIL"
)

// Lost tells whether the pool cannot be worked on: it is suspended, or was
// never opened.
func Lost(p *world.Pool) bool { return p.Unloaded || p.Health == unavailable }

// Waits says that input and output on the suspended pool waits instead of
// ending with EIO (failmode in zpoolprops(7)).
func Waits(p *world.Pool) bool {
	mode := p.Properties["failmode"]
	return p.Health == unavailable && (mode == "" || mode == "wait")
}

// VdevState is how zpool status shows a device: its state, and why.
func VdevState(tx *world.Tx, vdev string) (state, why string) {
	switch d := DiskOf(tx, vdev); {
	case d != nil && d.Gone:
		return unavailable, "cannot open"
	case d != nil && d.Failing:
		return "FAULTED", "too many errors"
	}
	return online, ""
}

// Openable is measure for a pool that is not open: its files have to be there.
func Openable(tx *world.Tx, p *world.Pool) bool {
	return Measure(tx, p) != unavailable && !slices.ContainsFunc(p.Vdevs, func(v string) bool {
		return strings.HasPrefix(v, "/") && VdevSize(tx, v) == 0
	})
}

// Measure works out the health from the devices as they are now: none is spare,
// groups with parity are not simulated.
func Measure(tx *world.Tx, p *world.Pool) string {
	if p.Orphaned || slices.ContainsFunc(p.Vdevs, func(v string) bool {
		state, _ := VdevState(tx, v)
		return state != online
	}) {
		return unavailable
	}
	return online
}

// notice brings the health of the pools up to date after a disk has changed. A
// suspended pool stays one.
func notice(tx *world.Tx) {
	for _, p := range tx.State.Pools {
		if p.Health != unavailable || !p.Imported {
			p.Health = Measure(tx, p)
		}
	}
}

// ClearPool is zpool clear: the pool goes on if its devices allow it. One that
// was not opened is opened now; its file systems are not mounted
// (zfs_ioc_clear in usr/src/uts/common/fs/zfs/zfs_ioctl.c).
func ClearPool(tx *world.Tx, name string) error {
	p := FindPool(tx, name)
	if p == nil {
		return refuse("cannot open '%s': no such pool", name)
	}
	health := Measure(tx, p)
	if health == unavailable {
		return refuse("cannot clear errors for '%s': I/O error", name)
	}
	var err error
	if p.Unloaded {
		err = unpark(tx, p)
	}
	p.Unloaded, p.Health = false, health
	return errors.Join(err, writeLabels(tx, p))
}

// unpark gives the datasets of a pool that was missing their names back.
func unpark(tx *world.Tx, p *world.Pool) (err error) {
	old := park(p) + p.Name
	for _, key := range slices.Sorted(maps.Keys(tx.State.Datasets)) {
		if key != old && !isBelow(key, old) {
			continue
		}
		d := tx.State.Datasets[key]
		tx.TouchDataset(key)
		delete(tx.State.Datasets, key)
		setName(d, old, p.Name)
		tx.TouchDataset(d.Name)
		tx.State.Datasets[d.Name] = d
		err = errors.Join(err, addDevices(tx, d))
	}
	return err
}

// PoolAt is the pool that a path lies on, or nil.
func PoolAt(tx *world.Tx, name string) *world.Pool {
	d := DatasetOf(tx, name)
	if d == nil {
		return nil
	}
	return FindPool(tx, PoolName(d.Name))
}

// Candidate is a pool that can be imported, and the devices it was found on.
type Candidate struct {
	*world.Pool
	Found []string
}

// Importable are the pools that zpool import finds in a directory, by name: those
// that are not imported. The directory of disks is /dev/dsk. A pool whose file lies
// elsewhere than its label says is found where it is (zpool_find_import_impl in
// usr/src/lib/libzutil/common/zutil_import.c). A directory that cannot be read
// is refused.
func Importable(tx *world.Tx, dir string) (pools []Candidate, err error) {
	found, err := labelled(tx, dir)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p, index := ReadLabel(tx, found[name])
		if p == nil || p.Imported || slices.ContainsFunc(pools, func(c Candidate) bool { return c.Pool == p }) {
			continue
		}
		at := p.Vdevs[index]
		if found[name].Disk == nil {
			at = name
		}
		pools = append(pools, Candidate{p, []string{at}})
	}
	slices.SortFunc(pools, func(a, b Candidate) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.GUID, b.GUID)) })
	return pools, err
}

// labelled are the devices of a directory that may bear a label, by name.
func labelled(tx *world.Tx, dir string) (map[string]Device, error) {
	found := map[string]Device{}
	dir = path.Clean(dir)
	if dir == "/dev/dsk" {
		for _, d := range tx.State.Disks {
			for _, m := range Minors() {
				if name := dir + "/" + d.Name + m.Suffix; m.Number < minorWhole {
					if device, err := OpenDevice(tx, name); err == nil {
						found[name] = device
					}
				}
			}
		}
		return found, nil
	}
	entries, err := tx.Files.ReadDir(dir)
	for _, e := range entries {
		if name := path.Join(dir, e.Name); e.Mode.IsRegular() {
			found[name] = Device{File: name}
		}
	}
	if err != nil {
		err = refuse("cannot open '%s': No such file or directory", dir)
	}
	return found, err
}

// OtherHost says that a pool was last in use on another system, which has not
// let it go: it is imported only if it is forced (zfs_force_import_required in
// usr/src/lib/libzfs/common/libzfs_import.c).
func OtherHost(tx *world.Tx, p *world.Pool) bool {
	return !p.Exported && p.HostID != 0 && p.HostID != HostID(tx)
}
