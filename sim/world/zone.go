package world

import (
	"cmp"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
)

// GlobalZone is the name of the zone that is always there.
const GlobalZone = "global"

// ZoneRoot is the directory of a zone's root as the global zone names it, "/"
// for the global zone itself. A zone that is not configured has none.
func (tx *Tx) ZoneRoot(zone string) string {
	if zone == GlobalZone {
		return "/"
	}
	z := tx.FindZone(zone)
	if z == nil {
		return ""
	}
	return z.Root()
}

// Root is the directory of the zone's root.
func (z *Zone) Root() string { return z.Path() + "/root" }

// Path is the zonepath that counts: the one that a kernel zone was made with.
func (z *Zone) Path() string {
	if z.Kernel != nil {
		return z.Kernel.Config.Zonepath
	}
	return z.Config.Zonepath
}

// ZonePathOf is where a path inside a zone lies, as the global zone names it:
// below the zone's root, unless a loopback mount of a zone that the kernel
// knows shows another place there. The last mount wins.
func (tx *Tx) ZonePathOf(zone, name string) string {
	at, _ := tx.zonePath(zone, name)
	return at
}

// ReadOnlyIn says whether a path inside a zone lies on a mount that the zone
// cannot write to.
func (tx *Tx) ReadOnlyIn(zone, name string) bool {
	_, readOnly := tx.zonePath(zone, name)
	return readOnly
}

func (tx *Tx) zonePath(zone, name string) (string, bool) {
	name = path.Clean("/" + name)
	root := tx.ZoneRoot(zone)
	if z := tx.FindZone(zone); z != nil && z.Kernel != nil {
		loops := z.Kernel.Loops
		for i := len(loops) - 1; i >= 0; i-- {
			if Below(loops[i].Dir, name) {
				return path.Join(loops[i].Special, strings.TrimPrefix(name, loops[i].Dir)), loops[i].ReadOnly
			}
		}
	}
	return path.Join("/", root, name), false
}

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

// FindZone is the zone of this name, or nil. The global zone is none. The caller may
// change it.
func (tx *Tx) FindZone(name string) *Zone {
	for _, z := range tx.State.Zones {
		if z.Name == name {
			tx.TouchZone(z)
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

// Clone is a copy that shares nothing with c.
func (c Config) Clone() Config { return deep(reflect.ValueOf(c)).Interface().(Config) }

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
func (r Resource) Clone() Resource { return deep(reflect.ValueOf(r)).Interface().(Resource) }

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

// SettleDaemon forgets a zone's daemon that has nothing to do and nothing to
// say.
func (z *Zone) SettleDaemon() {
	if d := z.Daemon; d != nil && !d.Busy && !d.Failed && len(d.Lines) == 0 {
		z.Daemon = nil
	}
}

// SetGlobal sets a property of the zone as a whole: limitpriv, bootargs, pool,
// hostid, scheduling-class, fs-allowed, debugid.
func (c *Config) SetGlobal(name, value string) {
	globals := maps.Clone(c.Globals)
	if globals == nil {
		globals = map[string]string{}
	}
	globals[name] = value
	c.Globals = globals
}

// ClearGlobal drops a property of the zone as a whole.
func (c *Config) ClearGlobal(name string) {
	globals := maps.Clone(c.Globals)
	delete(globals, name)
	c.Globals = globals
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
