package devtree_test

import (
	"context"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/devtree"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

// counting counts commands.
type counting struct {
	host.Host
	asked int
}

func (c *counting) Run(ctx context.Context, command host.Command) (host.Result, error) {
	c.asked++
	return c.Host.Run(ctx, command)
}

// Two that look at a machine together ask for its tree once; the next look asks again.
func TestATreeIsAskedForOnce(t *testing.T) {
	s := sim.New(sim.Options{Seed: 1, U2: 1}, hosttest.Files)
	t.Cleanup(s.Close)
	h := &counting{Host: s.Host()}
	for looks := 1; looks <= 2; looks++ {
		known, err := devtree.Prefetch(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if nodes, err := devtree.Query(t.Context(), known); err != nil || len(nodes) == 0 {
				t.Errorf("%d nodes, %v", len(nodes), err)
			}
		}
		if h.asked != looks {
			t.Errorf("%d looks asked %d times", looks, h.asked)
		}
	}
}
