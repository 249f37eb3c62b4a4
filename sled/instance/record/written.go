package record

import (
	"strconv"

	"github.com/sledctl/sledctl/propolis/spec"
)

// WithMachine makes the machine of a document that of the spec. NICs keep what those at
// their position had.
func (s Spec) WithMachine(d spec.Document) Spec {
	m := d.Spec.Clone()
	if d.CPUs {
		s.CPUs = int(m.Board.CPUs)
	}
	if d.Memory {
		s.Memory = min(m.Board.MemoryMiB, 1<<40) << 20 // what is more is refused as it is
	}
	m.Board.CPUs, m.Board.MemoryMiB = 0, 0
	s.Disks = []Disk{}
	for _, key := range m.Files() {
		file := m.Components[key].(spec.FileStorage)
		disk := Disk{Path: file.Path, ReadOnly: file.ReadOnly}
		if normal, err := disk.Normal(); err == nil {
			disk = normal
		}
		file.Path = disk.Path
		m.Components[key] = file
		if !disk.ReadOnly || !hasDisk(s.Disks, disk) {
			s.Disks = append(s.Disks, disk)
		}
	}
	networks := m.Networks()
	nics := make([]NIC, len(networks))
	copy(nics, s.NICs)
	for i, key := range networks {
		m.Components[key] = spec.VirtioNetwork{VNIC: "nic" + strconv.Itoa(i)}
	}
	s.NICs, s.Machine = nics, &m
	return s
}

func hasDisk(disks []Disk, d Disk) bool {
	for _, other := range disks {
		if other == d {
			return true
		}
	}
	return false
}

// Assembled is the spec's machine with all that was taken out of it.
func (s Spec) Assembled(guests []VNIC) spec.InstanceSpec {
	m := s.Machine.Clone()
	m.Board.CPUs, m.Board.MemoryMiB = uint8(s.CPUs), s.Memory>>20
	for i, key := range m.Networks()[:len(guests)] {
		m.Components[key] = spec.VirtioNetwork{VNIC: guests[i].Name}
	}
	return m
}
