package world

import (
	"maps"
	"slices"
	"strings"
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
	degraded    = "DEGRADED"
	unavailable = "UNAVAIL"
)

// Lost tells whether the pool cannot be worked on: it is suspended, or was
// never opened.
func (p *Pool) Lost() bool { return p.Unloaded || p.Health == unavailable }

// Waits says that input and output on the suspended pool waits instead of
// ending with EIO (failmode in zpoolprops(7)).
func (p *Pool) Waits() bool {
	mode := p.Properties["failmode"]
	return p.Health == unavailable && (mode == "" || mode == "wait")
}

// PoolAt is the pool that a path lies on, or nil.
func (tx *Tx) PoolAt(name string) *Pool {
	d := tx.DatasetOf(name)
	if d == nil {
		return nil
	}
	return tx.FindPool(poolName(d.Name))
}

// VdevState is how zpool status shows a device: its state, and why.
func (tx *Tx) VdevState(vdev string) (state, why string) {
	d := tx.DiskOf(vdev)
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

// vdevGroups splits a pool's devices into its top-level ones: a word and the
// devices that it groups, or no word and one device.
func vdevGroups(vdevs []string) (groups [][]string) {
	for len(vdevs) > 0 {
		n := 1
		if vdevWord(vdevs[0]) {
			if n = 1 + slices.IndexFunc(vdevs[1:], vdevWord); n == 0 {
				n = len(vdevs)
			}
		} else {
			groups, vdevs = append(groups, []string{"", vdevs[0]}), vdevs[1:]
			continue
		}
		groups, vdevs = append(groups, vdevs[:n]), vdevs[n:]
	}
	return groups
}

// Spare is how many of n devices a group of this kind can do without.
func (*Tx) Spare(word string, n int) int {
	switch word {
	case "mirror":
		return n - 1
	case "raidz", "raidz1":
		return 1
	case "raidz2":
		return 2
	case "raidz3":
		return 3
	}
	return 0
}

// openable is measure for a pool that is not open: its files have to be there.
func (tx *Tx) openable(p *Pool) bool {
	return tx.measure(p) != unavailable && !slices.ContainsFunc(p.Vdevs, func(v string) bool {
		return strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "/devices/") && tx.vdevSize(v) == 0
	})
}

// measure works out the health from the devices as they are now.
func (tx *Tx) measure(p *Pool) string {
	if p.Orphaned {
		return unavailable
	}
	health := online
	for _, group := range vdevGroups(p.Vdevs) {
		missing := 0
		for _, v := range group[1:] {
			if state, _ := tx.VdevState(v); state != online {
				missing++
			}
		}
		switch {
		case missing > tx.Spare(group[0], len(group)-1):
			return unavailable
		case missing > 0:
			health = degraded
		}
	}
	return health
}

// notice brings the health of the pools up to date after a disk has changed. A
// suspended pool stays one.
func (tx *Tx) notice() {
	for _, p := range tx.State.Pools {
		if p.Health != unavailable || !p.Imported {
			p.Health = tx.measure(p)
		}
	}
}

// ClearPool is zpool clear: the pool goes on if its devices allow it. One that
// was not opened is opened now; its file systems are not mounted
// (zfs_ioc_clear in usr/src/uts/common/fs/zfs/zfs_ioctl.c).
func (tx *Tx) ClearPool(name, device string) error {
	p := tx.FindPool(name)
	if p == nil {
		return refuse("cannot open '%s': no such pool", name)
	}
	if device != "" && !slices.ContainsFunc(p.Vdevs, func(v string) bool {
		_, path, _ := tx.VdevPath(v)
		return v == device || path == device
	}) {
		return refuse("cannot clear errors for %s: no such device in pool", device)
	}
	health := tx.measure(p)
	switch {
	case health == unavailable:
		return refuse("cannot clear errors for '%s': I/O error", name)
	case p.Unloaded:
		p.Unloaded = false
		if err := tx.unpark(p, name); err != nil {
			return err
		}
	}
	p.Health = health
	return tx.writeLabels(p)
}

// unpark gives the datasets of a pool that was not there their names back.
func (tx *Tx) unpark(p *Pool, name string) error {
	old := p.park() + p.Name
	for _, key := range slices.Sorted(maps.Keys(tx.State.Datasets)) {
		if key != old && !isBelow(key, old) {
			continue
		}
		d := tx.State.Datasets[key]
		delete(tx.State.Datasets, key)
		d.rename(old, name)
		tx.State.Datasets[d.Name] = d
		if err := tx.addDevices(d); err != nil {
			return err
		}
	}
	return nil
}
