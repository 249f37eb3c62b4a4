package zfs

import (
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// The health of a pool follows from its devices (zpoolconcepts(7)). One that
// lacks too many is suspended: all input and output ends with EIO, or waits, as
// the property failmode says. It stays so when the devices are back, until
// zpool clear (zio_resume in usr/src/uts/common/fs/zfs/zio.c).
//
// Guess: a pool notices at once that a device is gone. A real one does with
// the next input or output.
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
	d := DiskOf(tx, vdev)
	switch {
	case d == nil:
		return online, ""
	case d.Gone:
		return unavailable, "cannot open"
	case d.Failing:
		return "FAULTED", "too many errors"
	}
	return online, ""
}

// Openable is measure for a pool that is not open: its files have to be there.
func Openable(tx *world.Tx, p *world.Pool) bool {
	return Measure(tx, p) != unavailable && !slices.ContainsFunc(p.Vdevs, func(v string) bool {
		return strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "/devices/") && VdevSize(tx, v) == 0
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
func ClearPool(tx *world.Tx, name, device string) error {
	p := FindPool(tx, name)
	if p == nil {
		return refuse("cannot open '%s': no such pool", name)
	}
	if device != "" && !slices.ContainsFunc(p.Vdevs, func(v string) bool {
		_, path, _ := VdevPath(tx, v)
		return v == device || path == device
	}) {
		return refuse("cannot clear errors for %s: no such device in pool", device)
	}
	health := Measure(tx, p)
	switch {
	case health == unavailable:
		return refuse("cannot clear errors for '%s': I/O error", name)
	case p.Unloaded:
		p.Unloaded = false
		if err := unpark(tx, p, name); err != nil {
			return err
		}
	}
	p.Health = health
	return writeLabels(tx, p)
}

// unpark gives the datasets of a pool that was missing their names back.
func unpark(tx *world.Tx, p *world.Pool, name string) error {
	old := park(p) + p.Name
	for _, key := range slices.Sorted(maps.Keys(tx.State.Datasets)) {
		if key != old && !isBelow(key, old) {
			continue
		}
		d := tx.State.Datasets[key]
		delete(tx.State.Datasets, key)
		setName(d, old, name)
		tx.State.Datasets[d.Name] = d
		if err := addDevices(tx, d); err != nil {
			return err
		}
	}
	return nil
}

// PoolAt is the pool that a path lies on, or nil.
func PoolAt(tx *world.Tx, name string) *world.Pool {
	d := DatasetOf(tx, name)
	if d == nil {
		return nil
	}
	return FindPool(tx, PoolName(d.Name))
}
