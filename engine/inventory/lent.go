package inventory

import (
	"context"
	"errors"
	"slices"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

// lend puts zones to the VNICs where dladm's listings do not tell them. The
// configurations of the zones that the kernel has do: zoneadmd moves the links of a
// configuration into its zone, and takes no others.
//
// Guess zone-has-configured-vnics: where show-vnic has no ZONE, a zone that is ready or running has
// the VNICs of its configuration, and no other zone has any (zoneadmd moves no others, but
// `dladm set-linkprop -p zone=` does).
// Check: `dladm show-linkprop -p zone` on a Helios with VMs
func (inv *Inventory) lend(ctx context.Context, h host.Host, wanted func(zone string) bool) error {
	zones, configs := inv.zones, inv.configs
	var err error
	if inv.Know(Zones) != nil {
		if zones, err = zone.List(ctx, h); err != nil {
			return err
		}
	}
	if inv.Know(Configs) != nil {
		if configs, err = zone.Configs(h.Files(), wanted); configs == nil {
			return err
		}
	}
	if wanted != nil {
		zones = slices.DeleteFunc(slices.Clone(zones), func(z zone.Zone) bool { return !wanted(z.Name) })
	}
	inv.links, err = lent(inv.links, zones, configs, func(link string) (string, error) {
		found, err := vnic.ZoneOf(ctx, h, link)
		if errors.Is(err, host.ErrNotFound) {
			return "", nil // It has gone meanwhile, as any other could have.
		}
		return found, err
	})
	return err
}

// lent puts zones to VNICs. If the configurations do not show the zone, lent asks for it:
// of a zone that goes down a link may be back already, of two zones that have the
// same one in their configurations only one has it, and a zone whose configuration
// cannot be read may have any that no other has. Of two links of one name the first
// is the zone's, since the second could be made only then (illumos 10001).
func lent(links []vnic.Link, zones []zone.Zone, configs map[string]zone.Config, ask func(link string) (string, error)) ([]vnic.Link, error) {
	wants, blind := map[string][]zone.Zone{}, false
	for _, z := range zones {
		if !hasLinks(z) {
			continue
		}
		config, read := configs[z.Name]
		blind = blind || !read
		for _, n := range config.Nets {
			wants[n.Physical] = append(wants[n.Physical], z)
		}
	}
	links, seen := slices.Clone(links), map[string]bool{}
	for i := range links {
		l := &links[i]
		who := wants[l.Name]
		if l.Class != "vnic" && !IsMisc(*l) || seen[l.Name] || len(who) == 0 && !blind {
			continue
		}
		seen[l.Name] = true
		if len(who) == 1 && (who[0].State == zone.Running || who[0].State == zone.Ready) {
			l.Zone = who[0].Name
			continue
		}
		found, err := ask(l.Name)
		if err != nil {
			return nil, err
		}
		l.Zone = found
	}
	return links, nil
}

// hasLinks says whether the kernel has a zone with a network: a mounted one has none.
func hasLinks(z zone.Zone) bool {
	return z.ID != nil && z.Name != zone.Global && z.State != zone.Mounted
}
