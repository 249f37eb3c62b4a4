package world

import (
	"cmp"
	"maps"
	"slices"
)

// The states of a zone (usr/src/head/zone.h and zones(7)). The first three are
// kept in /etc/zones/index; the others are those of a kernel zone, which win.
const (
	ZoneConfigured   = "configured"
	ZoneIncomplete   = "incomplete"
	ZoneInstalled    = "installed"
	ZoneReady        = "ready"
	ZoneMounted      = "mounted"
	ZoneRunning      = "running"
	ZoneShuttingDown = "shutting_down"
	ZoneDown         = "down"
)

// ZoneRank orders the states as ZONE_STATE_CONFIGURED, … do in
// usr/src/lib/libzonecfg: configured 0, incomplete 1, installed 2, ready 3,
// running 4, shutting_down 5, down 6, mounted 7. -1 is no state.
func ZoneRank(state string) int {
	return slices.Index([]string{ZoneConfigured, ZoneIncomplete, ZoneInstalled, ZoneReady,
		ZoneRunning, ZoneShuttingDown, ZoneDown, ZoneMounted}, state)
}

// FindZone is the zone of this name, or nil. The global zone is none.
func (tx *Tx) FindZone(name string) *Zone {
	for _, z := range tx.State.Zones {
		if z.Name == name {
			return z
		}
	}
	return nil
}

// Current is the state that zoneadm list prints: the kernel's if it has the
// zone, else that of the index (zone_get_state in libzonecfg.c).
func (z *Zone) Current() string {
	if z.Kernel != nil {
		return z.Kernel.State
	}
	return z.State
}

// KernelZones are the zones that the kernel knows, in the order in which they
// got ready, without the global zone (zone_list in usr/src/uts/common/os/zone.c).
func (tx *Tx) KernelZones() []*Zone {
	var in []*Zone
	for _, z := range tx.State.Zones {
		if z.Kernel != nil {
			in = append(in, z)
		}
	}
	slices.SortStableFunc(in, func(a, b *Zone) int {
		return cmp.Or(a.Kernel.Booted.Compare(b.Kernel.Booted), cmp.Compare(a.Kernel.ID, b.Kernel.ID))
	})
	return in
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

// Clone is a copy that shares nothing with c.
func (c Config) Clone() Config {
	out := c
	out.Globals = maps.Clone(c.Globals)
	out.Resources = nil
	for _, r := range c.Resources {
		out.Resources = append(out.Resources, r.Clone())
	}
	return out
}

// All lists the resources of one type, in the order of their adding.
func (c *Config) All(kind string) []*Resource {
	var found []*Resource
	for i := range c.Resources {
		if c.Resources[i].Type == kind {
			found = append(found, &c.Resources[i])
		}
	}
	return found
}

// Clone is a copy that shares nothing with r.
func (r Resource) Clone() Resource {
	out := Resource{Type: r.Type}
	for _, p := range r.Properties {
		out.Properties = append(out.Properties, Property{Name: p.Name, Values: slices.Clone(p.Values)})
	}
	return out
}

// Get is the value of a property that has one value; empty if it is not set.
func (r *Resource) Get(name string) string {
	if v := r.Values(name); len(v) > 0 {
		return v[0]
	}
	return ""
}

// Values are all values of a property.
func (r *Resource) Values(name string) []string {
	for _, p := range r.Properties {
		if p.Name == name {
			return p.Values
		}
	}
	return nil
}

// Set replaces the values of a property; without any, the property is dropped.
func (r *Resource) Set(name string, values ...string) {
	i := slices.IndexFunc(r.Properties, func(p Property) bool { return p.Name == name })
	switch {
	case len(values) == 0:
		if i >= 0 {
			r.Properties = slices.Delete(r.Properties, i, i+1)
		}
	case i >= 0:
		r.Properties[i].Values = values
	default:
		r.Properties = append(r.Properties, Property{Name: name, Values: values})
	}
}

// The faults of zoneadm(8); words: its command line.
const (
	FaultHook            = "hook"             // the brand's hook fails with Exit (253, 254, 255) and Text
	FaultSlowClone       = "slow-clone"       // the clone hook works for Delay longer in the zone, which is mounted
	FaultBoot            = "boot"             // the zone gets ready, and then does not boot
	FaultDown            = "down"             // halt stops halfway: the zone is down
	FaultShutdownTimeout = "shutdown-timeout" // the zone does not shut down by itself in time
	FaultListRace        = "list-race"        // a listing loses the zone named by Text
)

// SettleDaemon forgets a zone's daemon that has nothing to do and nothing to
// say.
func (z *Zone) SettleDaemon() {
	if d := z.Daemon; d != nil && !d.Busy && !d.Failed && len(d.Lines) == 0 {
		z.Daemon = nil
	}
}
