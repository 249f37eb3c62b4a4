package inventory

import (
	"path"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zone"
)

// Whose says whose a zone is, by its name, its place and its attrs. Zones,
// Configs and Pools must be known; with Datasets it is also seen whether the
// place is what it seems to be.
func (inv *Inventory) Whose(names naming.Prefixes, z zone.Zone) naming.Claim {
	if z.Name == zone.Global {
		return naming.Claim{}
	}
	config, _ := inv.Config(z.Name)
	return inv.whose(names, naming.Place{Name: z.Name, Path: z.Path, Attrs: attrs(config)})
}

// WhoseConfig is Whose for a configuration that no index names.
func (inv *Inventory) WhoseConfig(names naming.Prefixes, name string, c zone.Config) naming.Claim {
	return inv.whose(names, naming.Place{Name: name, Path: c.Zonepath, Attrs: attrs(c)})
}

func (inv *Inventory) whose(names naming.Prefixes, p naming.Place) naming.Claim {
	claim := names.WhoseZone(p, ZonePools(inv.pools))
	if claim.Evidence != naming.ByName {
		return claim
	}
	if over, there := inv.mountedAt(path.Dir(p.Path)); there && !inv.isZoneParent(over) {
		claim.Evidence, claim.Doubt = naming.Alike, "it has no mark, and lies in "+over+", where no zone of sledctl does"
	}
	return claim
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
	for _, pool := range ZonePools(inv.pools) {
		if at, ok := naming.ZoneParent(pool); ok && at.Dataset == dataset {
			return true
		}
	}
	return false
}

func attrs(c zone.Config) map[string]string {
	all := make(map[string]string, len(c.Attrs))
	for _, a := range c.Attrs {
		all[a.Name] = a.Value
	}
	return all
}
