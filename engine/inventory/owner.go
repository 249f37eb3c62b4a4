package inventory

import (
	"iter"
	"path"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zone"
)

// Owner says who owns a zone, by its name, its place and its attrs. Zones,
// Configs and Pools must be known; with Datasets it is also seen whether the
// place is what it seems to be.
func (inv *Inventory) Owner(names naming.Prefixes, z zone.Zone) naming.Owner {
	config, _ := inv.Config(z.Name)
	return inv.OwnerBy(names, z, config)
}

// OwnerBy is Owner by the configuration of the zone, for one who has it.
func (inv *Inventory) OwnerBy(names naming.Prefixes, z zone.Zone, c zone.Config) naming.Owner {
	if z.Name == zone.Global {
		return naming.Owner{}
	}
	return inv.owner(names, naming.Place{Name: z.Name, Path: z.Path, Attrs: attrs(c)})
}

// OwnerOfConfig is Owner for a configuration that no index names.
func (inv *Inventory) OwnerOfConfig(names naming.Prefixes, name string, c zone.Config) naming.Owner {
	return inv.owner(names, naming.Place{Name: name, Path: c.Zonepath, Attrs: attrs(c)})
}

func (inv *Inventory) owner(names naming.Prefixes, p naming.Place) naming.Owner {
	owner := names.OwnerOfZone(p, inv.index.zonePools)
	if owner.Evidence != naming.ByName {
		return owner
	}
	if over, there := inv.mountedAt(path.Dir(p.Path)); there && !inv.isZoneParent(over) {
		owner.Evidence, owner.Doubt = naming.Alike, "it has no mark, and lies in "+over+", where no zone of sledctl does"
	}
	return owner
}

// mountedAt is the file system that is mounted on a directory.
func (inv *Inventory) mountedAt(dir string) (string, bool) {
	i, there := inv.index.mounts[dir]
	if !there {
		return "", false
	}
	return inv.datasets[i].Name, true
}

func (inv *Inventory) isZoneParent(dataset string) bool {
	for _, pool := range inv.index.zonePools {
		if at, ok := naming.ZoneParent(pool); ok && at.Dataset == dataset {
			return true
		}
	}
	return false
}

func attrs(c zone.Config) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, a := range c.Attrs {
			if !yield(a.Name, a.Value) {
				return
			}
		}
	}
}
