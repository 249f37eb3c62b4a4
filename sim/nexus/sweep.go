package nexus

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// Period is how often the instance watcher looks, and abreast how many VMs it
// asks for at once (omicron nexus/src/app/background/tasks/instance_watcher.rs).
const (
	Period  = 30 * time.Second
	abreast = 16
)

// Sweep asks the sleds for every VM that has not ended, once.
func (p Plane) Sweep(ctx context.Context) error {
	var ids []string
	err := p.view(ctx, func(_ *world.Tx, n *world.Nexus) error {
		for _, id := range slices.Sorted(maps.Keys(n.VMs)) {
			if !ended(n.VMs[id].State) {
				ids = append(ids, id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	turn := make(chan struct{}, abreast)
	for _, id := range ids {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			_ = p.pull(ctx, id, "sweep") // the result is noted with the VM
		})
	}
	all.Wait()
	return ctx.Err()
}

// Watch sweeps at once, and then every Period, until ctx ends.
func (p Plane) Watch(ctx context.Context) error {
	tick := time.NewTicker(Period)
	defer tick.Stop()
	for {
		if err := p.Sweep(ctx); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
