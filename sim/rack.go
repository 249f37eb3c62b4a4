package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

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
			return s.planeIn(n.World), nil
		}
	}
	return nil, err
}

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
