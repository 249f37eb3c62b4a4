package reap

import (
	"path"
	"time"

	"github.com/sledctl/sledctl/bundle"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/inventory"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/sled"
	"github.com/sledctl/sledctl/zone"
)

// Bundles says where bundles go, and how much of them is kept.
type Bundles struct {
	Dir  string // configured; empty: the debug datasets
	Max  int64  // bytes, of all bundles of a place; 0: none are taken
	Lock string // bundle.LockName
}

func (b Bundles) ready(f host.Files, inv *inventory.Inventory) ([]bundle.Place, error) {
	pools, err := inv.Pools()
	if err != nil || b.Max == 0 {
		return nil, err
	}
	var names []string
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return bundle.Ready(f, bundle.Places(b.Dir, names))
}

// bundler plans bundles. It is pure; the zero one plans none.
type bundler struct {
	Bundles
	places []bundle.Place
	bases  map[string]bool // zones of which none is taken: they never run
	now    time.Time
	seed   string
}

func (s Settings) bundler(k known, got seen, at operation.Moment) bundler {
	b := bundler{Bundles: s.Bundles, places: got.places, bases: map[string]bool{}, now: at.Now, seed: at.ID}
	zones, _ := got.inv.Zones()
	for _, z := range zones {
		config, _ := got.inv.Config(z.Name)
		if k.isBase(z, config) {
			b.bases[z.Name] = true
		}
	}
	return b
}

// ofZone takes a bundle of a zone that goes: nothing of one that was never
// installed.
func (b bundler) ofZone(o Object, z zone.Zone) []plan.Action {
	if z.State == zone.Configured || b.bases[z.Name] {
		return nil
	}
	return b.take(o, z.Name, z.Path, z.State == zone.Running)
}

// ofRoot takes a bundle of a zone's root that has lost its zone, as after a
// reboot of a sled that forgets its zones.
func (b bundler) ofRoot(o Object, inv *inventory.Inventory) []plan.Action {
	d, _ := inv.Dataset(o.Name)
	if isBase(d) || !path.IsAbs(d.Mountpoint) || !d.Mounted {
		return nil
	}
	return b.take(o, path.Base(d.Name), d.Mountpoint, false)
}

func (b bundler) take(o Object, name, zonepath string, running bool) []plan.Action {
	place, ok := bundle.Best(b.places, sled.PoolAt(zonepath))
	if !ok || zone.ValidateName(name) != nil {
		return nil
	}
	step := bundle.Take{
		Zone: name, Zonepath: zonepath, Running: running, ID: bundle.ID(b.now, causeOf(o), b.seed+name), Reason: o.Reason,
		Dir: place.Dir, Max: b.Max, Lock: b.Lock,
	}
	return []plan.Action{{
		ID: step.Verb() + " " + name, Object: "bundle " + step.ID, Why: "of zone " + name + ", before it goes", Change: plan.Create, Courtesy: true, Step: step,
	}}
}

func causeOf(o Object) bundle.Cause {
	switch o.Verdict {
	case StaleZone:
		return bundle.StaleZone
	case Orphan:
		return bundle.Orphan
	}
	return bundle.Removed
}

// unbundled notes that zones go, and nothing can be kept of them.
func (f *Findings) unbundled(nowhere error) {
	for _, o := range f.Objects {
		if o.Goes && o.Kind == KindZone {
			f.Unbundled = nowhere
		}
	}
}
