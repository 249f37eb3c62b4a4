// Package zones keeps the zones of a simulated sled as libzonecfg and the kernel
// do: /etc/zones, the states, and the processes that run inside.
package zones

import (
	"slices"

	"github.com/sledctl/sledctl/sim/world"
)

// ZoneRank orders the states as ZONE_STATE_CONFIGURED, … do in
// usr/src/lib/libzonecfg: configured 0, incomplete 1, installed 2, ready 3,
// running 4, shutting_down 5, down 6, mounted 7. -1 is no state.
func ZoneRank(state string) int {
	return slices.Index([]string{world.ZoneConfigured, world.ZoneIncomplete, world.ZoneInstalled, world.ZoneReady,
		world.ZoneRunning, world.ZoneShuttingDown, world.ZoneDown, world.ZoneMounted}, state)
}

// MaxZoneID is MAX_ZONEID (usr/src/uts/common/sys/zone.h).
const MaxZoneID = 9999

// StartKernelZone makes the kernel zone of z in state ready, with an id that it
// has not had since the sled was booted until the ids come round, and with a
// copy of its configuration: edits count from the next boot only.
//
// Guess zone-ids-from-one: ids of zones begin at 1 after each boot.
// Check: `zoneadm list -cv` after a boot
func StartKernelZone(tx *world.Tx, z *world.Zone) *world.Kernel {
	used := map[int]bool{}
	for _, other := range tx.KernelZones() {
		used[other.Kernel.ID] = true
	}
	id := 0
	for id == 0 || used[id] {
		id = int((tx.Count("zone id")-1)%MaxZoneID) + 1
	}
	z.Kernel = &world.Kernel{ID: id, State: world.ZoneReady, Config: z.Config.Clone(), Booted: tx.Now}
	return z.Kernel
}

// AddZone configures a new zone, last in the index.
func AddZone(tx *world.Tx, name string, c world.Config) (*world.Zone, error) {
	z := &world.Zone{Name: name, State: world.ZoneConfigured, Config: c}
	tx.State.Zones = append(tx.State.Zones, z)
	return z, SaveZone(tx, z)
}

// RemoveZone drops a zone from the index and its file; its datasets, links and
// files stay where they are.
func RemoveZone(tx *world.Tx, z *world.Zone) error {
	tx.State.Zones = slices.DeleteFunc(tx.State.Zones, func(other *world.Zone) bool { return other == z })
	if err := writeIndex(tx, map[string]string{}); err != nil {
		return err
	}
	return world.RemoveFile(tx.Files, ZoneFile(z.Name)) // as zonecfg_destroy does: the index first
}

// RenameZone gives a zone another name, in place.
func RenameZone(tx *world.Tx, z *world.Zone, name string) error {
	old := z.Name
	z.Name = name
	if err := world.RemoveFile(tx.Files, ZoneFile(old)); err != nil {
		return err
	}
	if err := writeIndex(tx, map[string]string{old: name}); err != nil {
		return err
	}
	return SaveZone(tx, z)
}

// SetZoneState sets the state of the index. A zone gets a new UUID when it
// becomes incomplete, keeps it when it is then installed, and loses it when it
// is configured again: the UUID names an installation, not a zone (putzoneent
// in usr/src/lib/libzonecfg/common/getzoneent.c).
//
// Guess no-status-events-of-zones: status events of zones (duplicate, or before the state changes)
// are not simulated.
// Check: nothing: no part of sledctl listens to them
func SetZoneState(tx *world.Tx, z *world.Zone, state string) error {
	switch {
	case state == world.ZoneConfigured:
		z.UUID = ""
	case state == world.ZoneIncomplete || z.UUID == "":
		z.UUID = tx.UUID()
	}
	z.State = state
	return writeIndex(tx, nil)
}

// ForgetKernelZones is what a reboot of the host does to zones: none is up, and
// the kernel counts their ids from 1 again. The states of the index stay.
func ForgetKernelZones(tx *world.Tx) {
	for _, z := range tx.State.Zones {
		tx.TouchZone(z)
		z.Kernel, z.Daemon = nil, nil
	}
	delete(tx.State.Counters, "zone id")
}

// DropZones is what a reboot does where /etc/zones lies on a RAM disk: all
// zones are gone, but not what they had on disk.
func DropZones(tx *world.Tx) error {
	for _, z := range slices.Clone(tx.State.Zones) {
		if err := RemoveZone(tx, z); err != nil {
			return err
		}
	}
	return nil
}

// BootEnvironment is the UUID of the boot environment that is running, as
// beadm(8) list -H tells the brands' hooks.
func BootEnvironment(tx *world.Tx) string {
	for _, d := range tx.State.Datasets {
		if d.Mounted == "/" {
			return d.Local["org.opensolaris.libbe:uuid"]
		}
	}
	return ""
}
