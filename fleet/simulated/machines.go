package simulated

import (
	"context"
	"encoding/json"

	"github.com/sledctl/sledctl/sim/propolis"
	"github.com/sledctl/sledctl/sim/world"
)

// Runs are the VMs whose guests run on the sled now, by what they are called there. It asks
// the machine, not the agent: a VM of which the fleet knows nothing is among them.
func (s *Sled) Runs(ctx context.Context) ([]string, error) { return s.are(ctx, "Running", nil) }

// Writes are those of Runs whose guests write to all their volumes in a Crucible when they are asked to.
func (s *Sled) Writes(ctx context.Context) ([]string, error) {
	return s.are(ctx, "Running", func(tx *world.Tx, vm *world.VM) bool { return propolis.Write(tx, vm) == nil })
}

// Moves are the VMs that leave the sled, or come to it.
func (s *Sled) Moves(ctx context.Context) ([]string, error) { return s.are(ctx, "Migrating", nil) }

// Arm has the machine fail, or be slow, in the way that a fault says.
func (s *Sled) Arm(ctx context.Context, f world.Fault) error {
	return s.Machine.World().Update(ctx, func(tx *world.Tx) error { tx.Arm(f); return nil })
}

// are lists the VMs in a state of which something holds; nil: whatever they do.
func (s *Sled) are(ctx context.Context, state string, holds func(*world.Tx, *world.VM) bool) (names []string, err error) {
	err = s.Machine.World().View(ctx, func(tx *world.Tx) error {
		names = nil
		for _, p := range tx.State.Processes {
			if p.VM == nil || world.At(p.VM.Timeline, tx.Now).State != state || holds != nil && !holds(tx, p.VM) {
				continue
			}
			var is struct{ Name string }
			if err := json.Unmarshal(p.VM.Properties, &is); err != nil {
				return err
			}
			names = append(names, is.Name)
		}
		return nil
	})
	return names, err
}
