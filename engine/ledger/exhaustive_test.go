package ledger

import (
	"os"
	"runtime/debug"
	"testing"
	"time"
)

// TestEveryStateKeepsTheLaws goes through the states of small sleds, breadth
// first: processes that are killed at each of their changes, power cuts with
// torn and reordered writes, disks that vanish, return, return stale, are
// unmounted, fail, are full or replaced, members that continue alone on either
// side, join, leave, are given up, and rewrites of one copy only. By default it
// stops after so many; SLEDCTL_SOAK=1 goes on for much longer.
func TestEveryStateKeepsTheLaws(t *testing.T) {
	tests := []struct {
		name        string
		config      config
		bounds      bounds
		limit, soak int // states
	}{
		{"two copies", config{disks: 2}, bounds{lines: 4, asides: 1, stray: 1, faults: true}, 400, 60_000},
		{"two copies, few steps", config{disks: 2}, bounds{lines: 3, asides: 1, only: "read, update, alone, unmount, mount, join, power", kills: "update alone join"}, 300, 50_000},
		{"two copies, one given up", config{disks: 2}, bounds{lines: 4, asides: 1, only: "read, update, alone, unmount, mount, keep", kills: "update alone keep"}, 200, 20_000},
		{"three copies", config{disks: 3}, bounds{lines: 4, asides: 1, stray: 1, faults: true}, 60, 15_000},
		{"two copies, their index kept", config{disks: 2, kept: true}, bounds{lines: 4, asides: 1, stray: 1, faults: true}, 100, 15_000},
		{"a directory and a disk", config{disks: 1, plain: true}, bounds{lines: 4, asides: 1, stray: 1}, 100, 15_000},
		{"two copies and a spare disk", config{disks: 3, spares: 1}, bounds{lines: 4, asides: 1}, 60, 15_000},
	}
	soak := os.Getenv("SLEDCTL_SOAK") != ""
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	total := explored{}
	for _, test := range tests {
		limit := test.limit
		switch {
		case soak:
			limit = test.soak
		case testing.Short():
			limit /= 20
		}
		t.Run(test.name, func(t *testing.T) {
			from, err := newLab(test.config)
			try(t, err)
			start := time.Now()
			x, err := explore(from, test.bounds, limit)
			if err != nil {
				t.Error(err)
			}
			total.states, total.steps = total.states+x.states, total.steps+x.steps
			t.Logf("%d states, %d steps, all states %v, %d steps deep, %.1f s", x.states, x.steps, x.whole, x.depth, time.Since(start).Seconds())
		})
	}
	t.Logf("in all %d states, %d steps", total.states, total.steps)
}
