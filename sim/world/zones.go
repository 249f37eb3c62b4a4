package world

import (
	"slices"
)

// ZoneRank orders the states as ZONE_STATE_CONFIGURED, … do in
// usr/src/lib/libzonecfg: configured 0, incomplete 1, installed 2, ready 3,
// running 4, shutting_down 5, down 6, mounted 7. -1 is no state.
func ZoneRank(state string) int {
	return slices.Index([]string{ZoneConfigured, ZoneIncomplete, ZoneInstalled, ZoneReady,
		ZoneRunning, ZoneShuttingDown, ZoneDown, ZoneMounted}, state)
}

// maxZoneID is MAX_ZONEID (usr/src/uts/common/sys/zone.h).
const maxZoneID = 9999

// StartKernelZone makes the kernel zone of z in state ready, with an id that it
// has not had since the sled was booted until the ids come round, and with a
// copy of its configuration: edits count from the next boot only.
func (tx *Tx) StartKernelZone(z *Zone) *Kernel {
	used := map[int]bool{}
	for _, other := range tx.KernelZones() {
		used[other.Kernel.ID] = true
	}
	id := 0
	for id == 0 || used[id] {
		id = int((tx.Count("zone id")-1)%maxZoneID) + 1
	}
	z.Kernel = &Kernel{ID: id, State: ZoneReady, Config: z.Config.Clone(), Booted: tx.Now}
	return z.Kernel
}

// AddZone configures a new zone, last in the index.
func (tx *Tx) AddZone(name string, c Config) (*Zone, error) {
	z := &Zone{Name: name, State: ZoneConfigured, Config: c}
	tx.State.Zones = append(tx.State.Zones, z)
	return z, tx.SaveZone(z)
}

// RemoveZone drops a zone from the index and its file; its datasets, links and
// files stay where they are.
func (tx *Tx) RemoveZone(z *Zone) error {
	tx.State.Zones = slices.DeleteFunc(tx.State.Zones, func(other *Zone) bool { return other == z })
	if err := tx.writeIndex(map[string]string{}); err != nil {
		return err
	}
	return removeFile(tx.Files, zoneFile(z.Name)) // as zonecfg_destroy does: the index first
}

// RenameZone gives a zone another name, in place.
func (tx *Tx) RenameZone(z *Zone, name string) error {
	old := z.Name
	z.Name = name
	if err := removeFile(tx.Files, zoneFile(old)); err != nil {
		return err
	}
	if err := tx.writeIndex(map[string]string{old: name}); err != nil {
		return err
	}
	return tx.SaveZone(z)
}

// SetZoneState sets the state of the index. A zone gets a new UUID when it
// becomes incomplete, keeps it when it is then installed, and loses it when it
// is configured again: the UUID names an installation, not a zone (putzoneent
// in usr/src/lib/libzonecfg/common/getzoneent.c).
func (tx *Tx) SetZoneState(z *Zone, state string) error {
	switch {
	case state == ZoneConfigured:
		z.UUID = ""
	case state == ZoneIncomplete || z.UUID == "":
		z.UUID = tx.UUID()
	}
	z.State = state
	return tx.writeIndex(nil)
}

// ForgetKernelZones is what a reboot of the host does to zones: none is up, and
// the kernel counts their ids from 1 again. The states of the index stay.
func (tx *Tx) ForgetKernelZones() {
	for _, z := range tx.State.Zones {
		z.Kernel, z.Daemon = nil, nil
	}
	delete(tx.State.Counters, "zone id")
}

// DropZones is what a reboot does where /etc/zones lies on a RAM disk: all
// zones are gone, but not what they had on disk.
func (tx *Tx) DropZones() error {
	for _, z := range slices.Clone(tx.State.Zones) {
		if err := tx.RemoveZone(z); err != nil {
			return err
		}
	}
	return nil
}

// BootEnvironment is the UUID of the boot environment that is running, as
// beadm(8) list -H tells the brands' hooks.
func (tx *Tx) BootEnvironment() string {
	for _, d := range tx.State.Datasets {
		if d.Mounted == "/" {
			return d.Local["org.opensolaris.libbe:uuid"]
		}
	}
	return ""
}
