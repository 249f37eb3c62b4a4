package disk

// board is a sled's board: which of its slots hold which disks.
//
// The numbers are those of oxidecomputer/omicron sled-hardware (disk_location.rs
// and illumos/mod.rs); the order of the M.2s is that of the units that the sled
// is booted from.
type board struct {
	root    string // the name of the device tree's root
	firstU2 int
	u2s     int
	m2s     [2]int
}

// Guess slots-of-other-machines: slots on other machines are not known: disks are configured there.
// Check: nothing: such a machine has no numbers of slots that sledctl could know
func boards() map[string]board {
	m2s := [2]int{0x11, 0x12}
	return map[string]board{
		"gimlet": {root: "Oxide,Gimlet", firstU2: 0x00, u2s: 10, m2s: m2s},
		"cosmo":  {root: "Oxide,Cosmo", firstU2: 0x20, u2s: 10, m2s: m2s},
	}
}

// kind is that of a disk in the slot; empty for a slot of something else.
func (b board) kind(slot int) Kind {
	switch {
	case slot >= b.firstU2 && slot < b.firstU2+b.u2s:
		return U2
	case slot == b.m2s[0] || slot == b.m2s[1]:
		return M2
	}
	return ""
}

// m2Partitions is how many partitions an M.2 has; the last one is the pool's.
// Before it come the boot image, three that are reserved and the dump device
// (oxidecomputer/omicron sled-hardware/src/illumos/partitions.rs).
const m2Partitions = 6

// lay fills in what follows from a disk's kind and device.
func (d *Disk) lay() {
	d.PoolDevice = d.Device
	if d.Kind != M2 || d.IsFile() {
		return
	}
	for n := range m2Partitions {
		d.Partitions = append(d.Partitions, slice(d.Device, n))
	}
	d.PoolDevice = d.Partitions[m2Partitions-1]
}

// booted says whether the sled was booted from the M.2 in the slot, by the
// root's property boot-storage-unit: 'A' or 'B'.
//
// Guess boot-storage-unit-at-root: boot-storage-unit is a property of the root that `prtconf`
// shows, 41 or 42.
// Check: `prtconf -v | grep -A1 boot-storage-unit`
func (b board) booted(slot int, unit uint64) bool {
	return unit == 'A' && slot == b.m2s[0] || unit == 'B' && slot == b.m2s[1]
}
