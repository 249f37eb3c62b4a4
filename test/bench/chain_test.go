package main

import (
	"testing"
	"time"

	"github.com/sledctl/sledctl/engine/plan"
)

func TestLongestChainFollowsThePlansOrder(t *testing.T) {
	var c chainOf
	for _, e := range []struct {
		id      string
		after   []string
		elapsed time.Duration
	}{
		{"a", nil, 5},
		{"b", nil, 1},
		{"c", []string{"b"}, 6},
		{"d", []string{"a", "c"}, 2},
		{"aside", nil, 8},
	} {
		c.observe(plan.Event{Kind: plan.Started, Action: plan.Action{ID: e.id}, Elapsed: 100})
		c.observe(plan.Event{Kind: plan.Finished, Action: plan.Action{ID: e.id, After: e.after}, Elapsed: e.elapsed})
	}
	if got := c.longest(); got != 9 {
		t.Errorf("the longest chain takes %d, want b, c, d: 9", got)
	}
}
