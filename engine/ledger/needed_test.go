package ledger

import "testing"

// TestEachRuleIsNeeded goes through what can happen to a small sled, with a few kinds
// of steps, and keeps the laws. It is as far as it must go to break one of them without
// the rule that the row is named by: test/mutants leaves each out, and says which law
// breaks.
func TestEachRuleIsNeeded(t *testing.T) {
	tests := []struct {
		rule   string
		states int
		config config
		bounds bounds
	}{
		{"present: mounted", 89, config{disks: 2}, bounds{lines: 5, only: "unmount 1, mount 1, alone, join 1, update, power"}},
		{"present: never recreated", 60, config{disks: 2, unseen: true}, bounds{lines: 5, stray: 1, only: "update, unmount 0, mount 0, alone, replace 1"}},
		{"present: one copy once", 1008, config{disks: 2, unseen: true}, bounds{lines: 5, stray: 1, only: "update, unmount, alone, mount, twin, read"}},

		{"append: one line", 30, config{disks: 2}, bounds{lines: 5, only: "update, read", kills: "update"}},

		{"open: a torn end", 104, config{disks: 2}, bounds{lines: 4, only: "update, power", kills: "update"}},
		{"open: a torn end is cut", 368, config{disks: 2}, bounds{lines: 4, only: "update, power", kills: "update"}},
		{"open: the longest", 176, config{disks: 2}, bounds{lines: 4, only: "update, power", kills: "update"}},
		{"open: an earlier state", 18, config{disks: 2}, bounds{lines: 4, only: "update, read", kills: "update"}},
		{"open: epochs before lines", 2162, config{disks: 2}, bounds{lines: 4, only: "update, alone, unmount 0, mount 0, read", kills: "update alone"}},
		{"open: what a rewrite left out", 90, config{disks: 2}, bounds{lines: 5, only: "update, alone, unmount 1, mount 1, tidy 0, read"}},
		{"open: a dead tail", 632, config{disks: 2}, bounds{lines: 4, only: "update, alone, unmount 0, mount 0, read", kills: "update"}},
		{"open: flushed before it is believed", 114, config{disks: 2}, bounds{lines: 2, only: "update, read, power", kills: "update"}},
		{"open: a reader warns", 6, config{disks: 2}, bounds{lines: 4, only: "read, unmount"}},
		{"open: a writer refuses", 10, config{disks: 2}, bounds{lines: 4, only: "update, read, unmount, mount"}},
		{"open: shorter members are brought up", 19, config{disks: 2}, bounds{lines: 4, only: "update, read", kills: "update"}},
		{"open: brought up by a new file", 448, config{disks: 2}, bounds{lines: 5, faults: true, only: "update, read, power", kills: "update"}},

		{"append: on what is there", 1, config{disks: 2, unseen: true}, bounds{lines: 4, only: "late"}},
		{"append: to all members", 2, config{disks: 2}, bounds{lines: 4, only: "update, read"}},
		{"append: flushed", 20, config{disks: 2}, bounds{lines: 4, only: "update, read, power"}},
		{"append: an error is one", 3, config{disks: 2}, bounds{lines: 4, faults: true, only: "update, read, fail"}},
		{"append: not tried again in place", 7, config{disks: 2}, bounds{lines: 4, faults: true, only: "update, half"}},
		{"append: the handle is dead", 2, config{disks: 2}, bounds{lines: 4, faults: true, only: "update, fail"}},

		{"alone: members only", 2878, config{disks: 2, spares: 1, unseen: true},
			bounds{lines: 3, only: "update, alone, join 1, unmount 0", kills: "join"}},
		{"alone: the witness is asked", 71, config{disks: 2, unseen: true}, bounds{lines: 5, only: "update, alone, unmount, mount"}},
		{"alone: the epoch line first", 6, config{disks: 2}, bounds{lines: 4, only: "alone, read, unmount, mount"}},
		{"alone: the epoch line is on disk before the witness hears of it", 851, config{disks: 2},
			bounds{lines: 4, only: "alone, power, unmount 1, mount 1, read", kills: "alone"}},

		{"join: on disk before it counts", 692, config{disks: 2, spares: 1}, bounds{lines: 3, only: "update, join 1, power", kills: "join"}},
		{"join: set aside", 21, config{disks: 2}, bounds{lines: 5, only: "alone, unmount, mount, join"}},
		{"join: the old members first", 2795, config{disks: 2, spares: 1}, bounds{lines: 3, only: "update, unmount 1, mount 1, join 1", kills: "join"}},

		{"witness: asked behind an epoch line", 1840, config{disks: 2, unseen: true},
			bounds{lines: 4, only: "update, alone, unmount, mount", kills: "alone"}},
		{"witness: told", 60, config{disks: 2, unseen: true}, bounds{lines: 5, only: "update, alone, unmount, mount"}},
		{"witness: readers too", 4000, config{disks: 2, unseen: true}, bounds{lines: 4, only: "read, alone, unmount, mount 1", kills: "alone"}},

		{"rewrite: all are equal", 4000, config{disks: 2}, bounds{lines: 4, only: "update, alone, unmount 0, mount 0, tidy 0", kills: "update"}},
		{"rewrite: what is live stays", 9, config{disks: 2}, bounds{lines: 4, only: "update, tidy, read"}},
		{"rewrite: epoch lines stay", 18, config{disks: 2}, bounds{lines: 5, only: "alone, unmount 1, mount 1, tidy 0, read"}},
		{"rewrite: a new file", 47, config{disks: 2}, bounds{lines: 4, only: "update, tidy 0, read", kills: "tidy"}},
		{"rewrite: history first", 9, config{disks: 2}, bounds{lines: 4, only: "update, tidy"}},

		{"create: no file", 1, config{disks: 2, blind: true}, bounds{lines: 4, only: "create"}},
		{"create: no witness", 2, config{disks: 1}, bounds{lines: 4, stray: 1, only: "create, replace"}},
		{"create: all places", 10, config{disks: 2, blind: true}, bounds{lines: 4, stray: 1, only: "create, replace, unmount"}},

		{"lock", 1, config{disks: 2}, bounds{lines: 4, only: "two"}},

		{"keep: the epoch line", 1, config{disks: 2}, bounds{lines: 4, only: "keep"}},
		{"keep: the epoch line first", 32, config{disks: 2}, bounds{lines: 4, only: "keep, update", kills: "keep"}},
		{"keep: the others set aside", 24, config{disks: 2}, bounds{lines: 5, only: "update, alone, unmount, mount, keep", kills: "alone"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			from, err := newLab(test.config)
			try(t, err)
			states := test.states
			if testing.Short() {
				states = 1 + states/90
			}
			x, err := explore(from, test.bounds, states)
			if err != nil {
				t.Errorf("in %d states, %d deep, whole %v: %v", x.states, x.depth, x.whole, err)
			}
		})
	}
}
