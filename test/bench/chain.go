package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sledctl/sledctl/engine/plan"
)

// longestChain compares an ensure at the pace of a real sled with the longest
// chain of its steps: all else is overhead.
func (b bench) longestChain(ctx context.Context) ([]row, error) {
	const n, budget = 3, 1.05
	s, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.slow(ctx); err != nil {
		return nil, err
	}
	var ratio float64
	var wall, chain times
	for i := range n {
		var c chainOf
		r, err := s.run(ctx, c.observe, web1(fmt.Sprintf("web%d", i))...)
		if err != nil {
			return nil, err
		}
		wall, chain = append(wall, r.wall), append(chain, c.longest())
	}
	ratio = float64(wall.median()) / float64(chain.median())
	return []row{{
		What: "instance ensure with --latency helios2021, against its longest chain of steps", Budget: fmt.Sprintf("≤ %.2f", budget),
		Measured: fmt.Sprintf("%.3f (%s / %s, n=%d)", ratio, millis(wall.median()), millis(chain.median()), n), Judged: true, Over: ratio > budget,
	}}, nil
}

// chainOf adds up the steps of a plan along its order.
type chainOf struct {
	mu   sync.Mutex
	took map[string]time.Duration // an action, and the longest chain before it
	most time.Duration
}

// observe hears of an action after those that it comes after.
func (c *chainOf) observe(e plan.Event) {
	if e.Kind != plan.Finished {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := time.Duration(0)
	for _, id := range e.Action.After {
		before = max(before, c.took[id])
	}
	if c.took == nil {
		c.took = map[string]time.Duration{}
	}
	c.took[e.Action.ID] = before + e.Elapsed
	c.most = max(c.most, before+e.Elapsed)
}

func (c *chainOf) longest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}
