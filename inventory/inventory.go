// Package inventory looks at the host: one listing per kind of thing, side by
// side, never one per object. It knows the host, not the ledger; what could
// not be seen is unknown, never absent, and who needs it refuses.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// Part is one kind of thing that can be looked at.
type Part string

// The parts.
const (
	Zones    Part = "zones"    // zoneadm list
	Configs  Part = "configs"  // /etc/zones/*.xml
	Links    Part = "links"    // dladm show-link, show-vnic, show-linkprop
	Pools    Part = "pools"    // zpool list
	Datasets Part = "datasets" // zfs get, below Roots
)

// Want names the parts that the caller needs.
type Want struct {
	Parts []Part
	// Roots picks the datasets below which to look, from the pools that are
	// there. Nil: every pool. Used with Datasets, which implies Pools.
	Roots func([]zfs.Pool) []string
	// User names the user properties to read with the datasets.
	User []string
}

// Inventory is what was seen. Reading a part that was not asked for, or could
// not be seen, gives the reason as an error.
type Inventory struct {
	zones    []zone.Zone
	configs  map[string]zone.Config
	links    []vnic.Link
	pools    []zfs.Pool
	datasets []zfs.Dataset
	failed   map[Part]error
}

var errNotAsked = errors.New("not looked at")

// UnknownError is a part that could not be seen.
type UnknownError struct {
	Part Part
	Err  error
}

// Error says which part, and why.
func (e *UnknownError) Error() string { return fmt.Sprintf("look at %s: %v", e.Part, e.Err) }

// Unwrap gives the reason.
func (e *UnknownError) Unwrap() error { return e.Err }

// Look asks the host for the wanted parts, all at once. It does not fail: a
// part that could not be seen fails when it is read.
func Look(ctx context.Context, h host.Host, want Want) *Inventory {
	inv := &Inventory{failed: map[Part]error{Zones: errNotAsked, Configs: errNotAsked, Links: errNotAsked, Pools: errNotAsked, Datasets: errNotAsked}}
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := func(part Part, err error) {
		mu.Lock()
		defer mu.Unlock()
		inv.failed[part] = err
	}
	for _, part := range want.Parts {
		wg.Go(func() {
			switch part {
			case Zones:
				var err error
				inv.zones, err = zone.List(ctx, h)
				done(Zones, err)
			case Configs:
				var err error
				inv.configs, err = zone.Configs(h.Files())
				done(Configs, err)
			case Links:
				var err error
				inv.links, err = vnic.List(ctx, h)
				done(Links, err)
			case Datasets:
				lookDatasets(ctx, h, want, inv, done)
			case Pools: // with the datasets, where both are wanted
				if !slices.Contains(want.Parts, Datasets) {
					var err error
					inv.pools, err = zfs.Pools(ctx, h)
					done(Pools, err)
				}
			}
		})
	}
	wg.Wait()
	return inv
}

func lookDatasets(ctx context.Context, h host.Host, want Want, inv *Inventory, done func(Part, error)) {
	pools, err := zfs.Pools(ctx, h)
	inv.pools = pools
	done(Pools, err)
	if err != nil {
		done(Datasets, err)
		return
	}
	var roots []string
	if want.Roots != nil {
		roots = want.Roots(pools)
	} else {
		for _, p := range pools {
			roots = append(roots, p.Name)
		}
	}
	if len(roots) > 0 {
		inv.datasets, err = zfs.List(ctx, h, roots, want.User)
	}
	done(Datasets, err)
}

// Know fails with an *UnknownError unless all the parts were seen.
func (inv *Inventory) Know(parts ...Part) error {
	for _, p := range parts {
		if err := inv.failed[p]; err != nil {
			return &UnknownError{Part: p, Err: err}
		}
	}
	return nil
}

// Zones lists the zones, the global one included.
func (inv *Inventory) Zones() ([]zone.Zone, error) { return inv.zones, inv.Know(Zones) }

// Zone finds a zone by name.
func (inv *Inventory) Zone(name string) (zone.Zone, bool) {
	for _, z := range inv.zones {
		if z.Name == name {
			return z, true
		}
	}
	return zone.Zone{}, false
}

// Config is the configuration of a zone.
func (inv *Inventory) Config(name string) (zone.Config, bool) {
	c, ok := inv.configs[name]
	return c, ok
}

// Configs are the configurations of all zones, by name.
func (inv *Inventory) Configs() (map[string]zone.Config, error) {
	return inv.configs, inv.Know(Configs)
}

// Links lists the datalinks, those on loan to zones included.
func (inv *Inventory) Links() ([]vnic.Link, error) { return inv.links, inv.Know(Links) }

// Link finds a link by name.
func (inv *Inventory) Link(name string) (vnic.Link, bool) {
	for _, l := range inv.links {
		if l.Name == name {
			return l, true
		}
	}
	return vnic.Link{}, false
}

// Pools lists the imported pools.
func (inv *Inventory) Pools() ([]zfs.Pool, error) { return inv.pools, inv.Know(Pools) }

// Datasets lists file systems, volumes and snapshots.
func (inv *Inventory) Datasets() ([]zfs.Dataset, error) { return inv.datasets, inv.Know(Datasets) }

// Dataset finds a dataset by its full name.
func (inv *Inventory) Dataset(name string) (zfs.Dataset, bool) {
	for _, d := range inv.datasets {
		if d.Name == name {
			return d, true
		}
	}
	return zfs.Dataset{}, false
}

// Below lists what lies below a dataset, itself excluded; snapshots of the
// dataset itself are below it.
func (inv *Inventory) Below(name string) []zfs.Dataset {
	var below []zfs.Dataset
	for _, d := range inv.datasets {
		if rest, ok := strings.CutPrefix(d.Name, name); ok && rest != "" && (rest[0] == '/' || rest[0] == '@') {
			below = append(below, d)
		}
	}
	return below
}
