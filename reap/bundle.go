package reap

import (
	"path"
	"time"

	"github.com/sledctl/sledctl/bundle"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/inventory"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/zone"
)

// places looks where bundles can be written; nowhere is why there is no place.
func (s Settings) places(f host.Files, inv *inventory.Inventory) (ready []bundle.Place, nowhere error) {
	pools, err := inv.Pools()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return s.Bundles.Ready(f, names)
}

// bundler plans bundles. It is pure; the zero one plans none.
type bundler struct {
	bundle.Settings
	places []bundle.Place
	bases  map[string]bool // zones of which none is taken: they never run
	now    time.Time
	seed   string
}

func (s Settings) bundler(k known, got seen, at operation.Moment) bundler {
	b := bundler{Settings: s.Bundles, places: got.places, bases: map[string]bool{}, now: at.Now, seed: at.ID}
	zones, _ := got.inv.Zones()
	for _, z := range zones {
		config, _ := got.inv.Config(z.Name)
		if k.isBase(z, config) {
			b.bases[z.Name] = true
		}
	}
	return b
}

// ofZone takes a bundle of a zone that goes.
func (b bundler) ofZone(o Object, z zone.Zone) []plan.Action {
	if b.bases[z.Name] {
		return nil
	}
	step, ok := b.Of(b.places, z, causeOf(o), o.Reason, b.now, b.seed)
	if !ok {
		return nil
	}
	return []plan.Action{{
		ID: step.Verb() + " " + z.Name, Object: "bundle " + step.ID, Why: "of zone " + z.Name + ", before it goes", Change: plan.Create, Courtesy: true, Step: step,
	}}
}

// ofRoot takes a bundle of a zone's root that has lost its zone, as after a
// reboot of a sled that forgets its zones.
func (b bundler) ofRoot(o Object, inv *inventory.Inventory) []plan.Action {
	d, _ := inv.Dataset(o.Name)
	if isBase(d) || !path.IsAbs(d.Mountpoint) || !d.Mounted {
		return nil
	}
	return b.ofZone(o, zone.Zone{Name: path.Base(d.Name), Path: d.Mountpoint, State: zone.Installed})
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
