package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/sledctl/sledctl/sim/nexus"
	"github.com/sledctl/sledctl/sim/world"
)

// planeOfRack is the control plane that is near another sled and known by an address; nil: there
// is none.
func (s *Sled) planeOfRack(ctx context.Context, address string) (http.Handler, error) {
	near, err := s.world.Neighbours(ctx)
	for _, n := range near {
		there := false
		if err := n.World.View(ctx, func(tx *world.Tx) error {
			there = tx.State.Nexus != nil && tx.State.Nexus.Address == address
			return nil
		}); err == nil && there {
			return s.planeHandler(n.World), nil
		}
	}
	return nil, err
}

// planeHandler answers for the control plane in a world, and reports each request.
func (s *Sled) planeHandler(w *world.World) http.Handler { return s.observedAs(OfNexus, s.planeIn(w)) }

// NexusSled is a sled that the control plane knows.
type NexusSled struct {
	ID string
	world.NexusSled
}

// NexusSleds are the sleds that have made themselves known, by their ids. Errors: ErrNoNexus.
func (s *Sled) NexusSleds(ctx context.Context) (all []NexusSled, err error) {
	err = s.withNexus(ctx, func(n *world.Nexus) {
		for _, id := range slices.Sorted(maps.Keys(n.Registered)) {
			all = append(all, NexusSled{ID: id, NexusSled: *n.Registered[id]})
		}
	})
	return all, err
}

// DecommissionSled has the control plane take a sled out of service, for good. Errors:
// ErrNoNexus; ErrNoSled.
func (s *Sled) DecommissionSled(ctx context.Context, id string) error {
	return s.world.Update(ctx, func(tx *world.Tx) error {
		switch n := tx.State.Nexus; {
		case n == nil:
			return ErrNoNexus
		case n.Registered[id] == nil:
			return fmt.Errorf("%s: %w", id, ErrNoSled)
		}
		tx.TouchAround()
		tx.State.Nexus.Registered[id].Decommissioned = true
		return nil
	})
}

// ErrNoSled is a sled that the control plane does not know.
var ErrNoSled = errors.New("no such sled is known to the control plane")

// NexusInstance is an instance of the control plane's, and what it knows of its VM.
type NexusInstance struct {
	world.NexusInstance
	State string
}

// NexusInstances are those that the control plane runs, by their names. Errors: ErrNoNexus.
func (s *Sled) NexusInstances(ctx context.Context) (all []NexusInstance, err error) {
	err = s.withNexus(ctx, func(n *world.Nexus) {
		for _, name := range slices.Sorted(maps.Keys(n.Instances)) {
			i := NexusInstance{NexusInstance: *n.Instances[name]}
			if vm := n.VMs[i.VM]; vm != nil {
				i.State = vm.State
			}
			all = append(all, i)
		}
	})
	return all, err
}

// NexusVMWanted is how large an instance is.
type NexusVMWanted = nexus.Wanted

// PlaceInNexus has the control plane make an instance, on the sled that has most left. Errors: ErrNoNexus; those of nexus.Plane.Place.
func (s *Sled) PlaceInNexus(ctx context.Context, w NexusVMWanted) error {
	if err := s.withNexus(ctx, func(*world.Nexus) {}); err != nil {
		return err
	}
	return s.plane().Place(ctx, w)
}

// RemoveFromNexus has the control plane take an instance out of use, and waits until nothing of it is left. Errors: ErrNoNexus; those of nexus.Plane.Remove.
func (s *Sled) RemoveFromNexus(ctx context.Context, name string) error {
	if err := s.withNexus(ctx, func(*world.Nexus) {}); err != nil {
		return err
	}
	return s.plane().Remove(ctx, name)
}

// ReconcileNexus has the control plane tell its sleds once what they should have, and make VMs that have failed
// again. Errors: ErrNoNexus; those of nexus.Plane.Reconcile.
func (s *Sled) ReconcileNexus(ctx context.Context) error {
	if err := s.withNexus(ctx, func(*world.Nexus) {}); err != nil {
		return err
	}
	return s.plane().Reconcile(ctx)
}

// NexusItem is one thing that a sled told the control plane it has.
type NexusItem = nexus.Item

// NexusInventory has the control plane ask each of its sleds what it has. Errors: ErrNoNexus; those of nexus.Plane.Inventory.
func (s *Sled) NexusInventory(ctx context.Context) ([]NexusItem, error) {
	if err := s.withNexus(ctx, func(*world.Nexus) {}); err != nil {
		return nil, err
	}
	return s.plane().Inventory(ctx)
}

// MigrateInNexus has the control plane move the VM of an instance. Errors: ErrNoNexus; those of nexus.Plane.Migrate.
func (s *Sled) MigrateInNexus(ctx context.Context, name, sled string) error {
	if err := s.withNexus(ctx, func(*world.Nexus) {}); err != nil {
		return err
	}
	return s.plane().Migrate(ctx, name, sled)
}
