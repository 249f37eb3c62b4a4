// Package inventory looks at the host: one listing per kind of thing, side by
// side, never one per object. It knows the host, not the ledger; what could
// not be seen is unknown, never absent, and who needs it refuses.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/ipadm"
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
	Links    Part = "links"    // dladm show-link, show-vnic
	Pools    Part = "pools"    // zpool list
	Datasets Part = "datasets" // zfs get, below Roots
	// Ports are those of OPTE among the links, which have their MAC from there. They are looked
	// at with Links, and are known where the sled has no link of their class.
	Ports Part = "OPTE's ports" // opteadm list-ports
)

// Want names the parts that the caller needs.
type Want struct {
	Parts []Part
	// Roots picks the datasets below which to look, from the pools that answer.
	// Nil: all of these. Used with Datasets, which implies Pools.
	Roots func([]zfs.Pool) []string
	// User names the user properties to read with the datasets.
	User []string
	// OfZones picks the zones whose Configs are read: the zones of VNICs in others are
	// then not known where dladm does not tell them. Nil: all.
	OfZones func(name string) bool
	// Narrow leaves out of Datasets what the caller does not need. Nil: nothing.
	Narrow *Narrow
	// Directories are those whose contents Entries lists.
	Directories []string
}

// Inventory is what was seen. Reading a part that was not asked for, or could
// not be seen, gives the reason as an error.
type Inventory struct {
	zones    []zone.Zone
	configs  map[string]zone.Config
	links    []vnic.Link
	pools    []zfs.Pool
	datasets []zfs.Dataset

	addresses []ipadm.Address
	homes     []Home
	entries   []Entry

	failed map[Part]error
	index  index
}

// Listings are what was listed already; a nil one was not looked at.
type Listings struct {
	Zones    []zone.Zone
	Configs  map[string]zone.Config
	Links    []vnic.Link
	Pools    []zfs.Pool
	Datasets []zfs.Dataset

	Addresses []ipadm.Address
	Homes     []Home
	Entries   []Entry
}

// Of returns the inventory of what was listed already. A part without a
// listing fails when it is read.
func Of(l Listings) *Inventory {
	inv := &Inventory{zones: l.Zones, configs: l.Configs, links: l.Links, pools: l.Pools, datasets: l.Datasets,
		addresses: l.Addresses, homes: l.Homes, entries: l.Entries, failed: map[Part]error{}}
	for part, missing := range map[Part]bool{
		Zones: l.Zones == nil, Configs: l.Configs == nil, Links: l.Links == nil, Pools: l.Pools == nil, Datasets: l.Datasets == nil,
		Addresses: l.Addresses == nil, Homes: l.Homes == nil, Entries: l.Entries == nil,
	} {
		if missing {
			inv.failed[part] = errNotAsked
		}
	}
	inv.index = inv.indexed()
	return inv
}

var errNotAsked = errors.New("not looked at")

// UnknownError is a part that could not be seen.
type UnknownError struct {
	Part Part
	Err  error
}

// Error says which part, and why.
func (e *UnknownError) Error() string { return fmt.Sprintf("look at %s: %v", e.Part, e.Err) }

func (*UnknownError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the reason.
func (e *UnknownError) Unwrap() error { return e.Err }

// Look asks the host for the wanted parts, all at once. It does not fail: a
// part that could not be seen fails when it is read.
func Look(ctx context.Context, h host.Host, want Want) *Inventory {
	if g, seen := host.Recall[prefetch](h, prefetchKey{}); seen {
		if inv, ok := g.answer(want); ok {
			return inv
		}
	}
	inv := Of(Listings{})
	inv.failed[Rival], inv.failed[Ports] = errNotAsked, errNotAsked
	var wg sync.WaitGroup
	var mu sync.Mutex
	var zoned bool
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
				inv.configs, err = zone.Configs(h.Files(), want.OfZones)
				done(Configs, err)
			case Links:
				var err error
				inv.links, zoned, err = vnic.List(ctx, h)
				done(Links, err)
				done(Ports, lookPorts(ctx, h, inv.links))
			case Rival:
				done(Rival, lookRival(ctx, h))
			case Addresses:
				var err error
				inv.addresses, err = lookAddresses(ctx, h)
				done(Addresses, err)
			case Entries:
				var err error
				inv.entries, err = lookEntries(h.Files(), want.Directories)
				done(Entries, err)
			}
		})
	}
	if want.any(Pools, Datasets, Homes) {
		wg.Go(func() { lookPools(ctx, h, want, inv, done) })
	}
	wg.Wait()
	if inv.failed[Links] == nil && !zoned {
		inv.failed[Links] = inv.lend(ctx, h, want.OfZones)
	}
	inv.index = inv.indexed()
	return inv
}

func (w Want) any(parts ...Part) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return slices.Contains(w.Parts, p) })
}

// lookPools looks at the pools, and at what is found by way of them.
func lookPools(ctx context.Context, h host.Host, want Want, inv *Inventory, done func(Part, error)) {
	var err error
	inv.pools, err = zfs.Pools(ctx, h)
	done(Pools, err)
	if want.any(Homes) {
		failed := err
		if failed == nil {
			inv.homes, failed = lookHomes(h.Files(), answering(inv.pools))
		}
		done(Homes, failed)
	}
	if want.any(Datasets) {
		if err == nil {
			inv.datasets, err = want.datasets(ctx, h, want.roots(answering(inv.pools)))
		}
		done(Datasets, err)
	}
}

// answering are the pools that can be asked about their datasets. A pool that
// could not be opened when the sled booted is named by zpool list all the same,
// and zfs list fails over it; over one that is suspended it may wait forever.
func answering(pools []zfs.Pool) []zfs.Pool {
	return slices.DeleteFunc(slices.Clone(pools), func(p zfs.Pool) bool { return !p.Answers() })
}

// Lost names the pools whose datasets could not be listed: what lies on them is
// unknown, and none of it is among the Datasets.
func (inv *Inventory) Lost() []string {
	var lost []string
	for _, p := range inv.pools {
		if !p.Answers() {
			lost = append(lost, p.Name)
		}
	}
	return lost
}

// Unseen says why nothing that lies on a pool can be seen; empty: it can.
func (inv *Inventory) Unseen(pool string) string {
	i := slices.IndexFunc(inv.pools, func(p zfs.Pool) bool { return p.Name == pool })
	switch {
	case i < 0:
		return "pool " + pool + " is not imported"
	case !inv.pools[i].Answers():
		return "pool " + pool + " is " + inv.pools[i].Health
	}
	return ""
}

// Answering names the pools that answer.
func (inv *Inventory) Answering() []string {
	var names []string
	for _, p := range answering(inv.pools) {
		names = append(names, p.Name)
	}
	return names
}

// roots are the datasets below which to look: none if there are no pools.
func (w Want) roots(pools []zfs.Pool) []string {
	if w.Roots != nil {
		return w.Roots(pools)
	}
	var all []string
	for _, p := range pools {
		all = append(all, p.Name)
	}
	return all
}

// Know fails with an *UnknownError unless all the parts were seen; with a
// *RivalError where somebody else is at work.
func (inv *Inventory) Know(parts ...Part) error {
	for _, p := range parts {
		if err := inv.failed[p]; err != nil {
			if rival, there := errors.AsType[*RivalError](err); there {
				return rival
			}
			return &UnknownError{Part: p, Err: err}
		}
	}
	return nil
}

// Zones lists the zones, the global one included.
func (inv *Inventory) Zones() ([]zone.Zone, error) { return inv.zones, inv.Know(Zones) }

// Zone finds a zone by name. As with all that is found by name, false means
// absent only if the part is known.
func (inv *Inventory) Zone(name string) (zone.Zone, bool) {
	return at(inv.zones, inv.index.zones, name)
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

// Links lists the datalinks, also those that zones have.
func (inv *Inventory) Links() ([]vnic.Link, error) { return inv.links, inv.Know(Links) }

// Link finds a link by name.
func (inv *Inventory) Link(name string) (vnic.Link, bool) {
	return at(inv.links, inv.index.links, name)
}

// Pools lists the imported pools.
func (inv *Inventory) Pools() ([]zfs.Pool, error) { return inv.pools, inv.Know(Pools) }

// Datasets lists file systems, volumes and snapshots.
func (inv *Inventory) Datasets() ([]zfs.Dataset, error) { return inv.datasets, inv.Know(Datasets) }

// Dataset finds a dataset by its full name.
func (inv *Inventory) Dataset(name string) (zfs.Dataset, bool) {
	return at(inv.datasets, inv.index.datasets, name)
}
