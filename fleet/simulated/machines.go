package simulated

import (
	"context"
	"encoding/json"

	"github.com/sledctl/sledctl/sim/world"
)

// Runs are the VMs whose guests run on the sled now, by what they are called there. It asks
// the machine, not the agent: a VM of which the fleet knows nothing is among them.
func (s *Sled) Runs(ctx context.Context) (names []string, err error) {
	err = s.Machine.World().View(ctx, func(tx *world.Tx) error {
		names = nil
		for _, p := range tx.State.Processes {
			if p.VM == nil || world.At(p.VM.Timeline, tx.Now).State != "Running" {
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
