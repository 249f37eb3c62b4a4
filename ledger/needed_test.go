package ledger

import (
	"strings"
	"testing"
)

// TestEachRuleIsNeeded leaves out one rule after the other. Each time a few
// kinds of steps are enough for the laws to be broken, and with the rule they
// are not.
func TestEachRuleIsNeeded(t *testing.T) {
	tests := []struct {
		rule   string
		config config
		bounds bounds
		breaks string // what the broken law says
	}{
		{"present: mounted", config{disks: 2, without: ruleMounted},
			bounds{lines: 5, only: "unmount 1, mount 1, alone, join 1, update, power"}, "healthy disks are refused"},
		{"present: never made anew", config{disks: 2, repairs: true, beside: ruleHeard, unseen: true},
			bounds{lines: 5, stray: 1, only: "update, unmount 0, mount 0, alone, replace 1"}, "were shown, now"},
		{"present: one copy once", config{disks: 2, without: ruleTwins, unseen: true},
			bounds{lines: 5, stray: 1, only: "update, unmount, alone, mount, twin, read"}, "were shown, now"},

		{"append: one line", config{disks: 2, without: ruleOneLine}, bounds{lines: 5, only: "update, read", kills: "update"}, "appends"},

		{"open: a torn end", config{disks: 2, without: ruleTorn},
			bounds{lines: 4, only: "update, power", kills: "update"}, "healthy disks are refused"},
		{"open: a torn end is cut", config{disks: 2, without: ruleCut},
			bounds{lines: 4, only: "update, power", kills: "update"}, "healthy disks are refused"},
		{"open: the longest", config{disks: 2, without: ruleLongest},
			bounds{lines: 4, only: "update, power", kills: "update"}, "healthy disks are refused"},
		{"open: an earlier state", config{disks: 2, without: ruleBehind},
			bounds{lines: 4, only: "update, read", kills: "update"}, "healthy disks are refused"},
		{"open: epochs before lines", config{disks: 2, without: ruleEpochs},
			bounds{lines: 4, only: "update, alone, unmount 0, mount 0, read", kills: "update alone"}, "healthy disks are refused"},
		{"open: what a rewrite left out", config{disks: 2, without: ruleBase},
			bounds{lines: 5, only: "update, alone, unmount 1, mount 1, tidy 0, read"}, "healthy disks are refused"},
		{"open: a dead tail", config{disks: 2, without: ruleTail},
			bounds{lines: 4, only: "update, alone, unmount 0, mount 0, read", kills: "update"}, "healthy disks are refused"},
		{"open: flushed before it is believed", config{disks: 2, without: ruleFlush},
			bounds{lines: 2, only: "update, read, power", kills: "update"}, "were shown, now"},
		{"open: a reader warns", config{disks: 2, without: ruleWarn}, bounds{lines: 4, only: "read, unmount"}, "warned"},
		{"open: a writer refuses", config{disks: 2, without: ruleRefuse},
			bounds{lines: 4, only: "update, read, unmount, mount"}, "was acknowledged"},
		{"open: shorter members are brought up", config{disks: 2, without: ruleRaise},
			bounds{lines: 4, only: "update, read", kills: "update"}, "healthy disks are doubted"},

		{"open: brought up by a new file", config{disks: 2, without: ruleRaised},
			bounds{lines: 5, faults: true, only: "update, read, power", kills: "update"}, "healthy disks are refused"},

		{"append: on what is there", config{disks: 2, without: ruleAgain, beside: ruleSeen, unseen: true}, bounds{lines: 4, only: "late"}, "were shown, now"},
		{"append: to all members", config{disks: 2, without: ruleEvery}, bounds{lines: 4, only: "update, read"}, "was acknowledged"},
		{"append: flushed", config{disks: 2, without: ruleSync}, bounds{lines: 4, only: "update, read, power"}, "were shown, now"},
		{"append: an error is one", config{disks: 2, without: ruleFailed},
			bounds{lines: 4, faults: true, only: "update, read, fail"}, "was acknowledged"},

		{"append: not tried again in place", config{disks: 2, without: ruleOnce},
			bounds{lines: 4, faults: true, only: "update, half"}, "healthy disks are refused"},
		{"append: the handle is dead", config{disks: 2, without: ruleDead},
			bounds{lines: 4, faults: true, only: "update, fail"}, "a process goes on"},

		{"alone: members only", config{disks: 2, spares: 1, without: ruleMember, unseen: true},
			bounds{lines: 3, only: "update, alone, join 1, unmount 0", kills: "join"}, "were shown, now"},
		{"alone: the witness is asked", config{disks: 2, without: ruleAsk, beside: ruleHeard, unseen: true},
			bounds{lines: 5, only: "update, alone, unmount, mount"}, "witnessed as"},
		{"alone: the epoch line first", config{disks: 2, without: ruleAlone},
			bounds{lines: 4, only: "alone, read, unmount, mount"}, "was acknowledged"},

		{"alone: the epoch line is on disk before the witness hears of it", config{disks: 2, without: ruleSure},
			bounds{lines: 4, only: "alone, power, unmount 1, mount 1, read", kills: "alone"}, "healthy disks are refused"},

		{"join: on disk before it counts", config{disks: 2, spares: 1, without: rulePlanted},
			bounds{lines: 3, only: "update, join 1, power", kills: "join"}, "healthy disks are refused"},
		{"join: set aside", config{disks: 2, without: ruleAside}, bounds{lines: 5, only: "alone, unmount, mount, join"}, "is gone"},
		{"join: the old members first", config{disks: 2, spares: 1, without: ruleOld},
			bounds{lines: 3, only: "update, unmount 1, mount 1, join 1", kills: "join"}, "healthy disks are refused"},

		{"witness: asked behind an epoch line", config{disks: 2, without: ruleConfirm, unseen: true},
			bounds{lines: 4, only: "update, alone, unmount, mount", kills: "alone"}, "were shown, now"},
		{"witness: told", config{disks: 2, without: ruleTell, unseen: true}, bounds{lines: 5, only: "update, alone, unmount, mount"}, "were shown, now"},

		{"witness: readers too", config{disks: 2, without: ruleDoubt, unseen: true},
			bounds{lines: 4, only: "read, alone, unmount, mount 1", kills: "alone"}, "was shown, now"},

		{"rewrite: all are equal", config{disks: 2, without: ruleLevel},
			bounds{lines: 4, only: "update, alone, unmount 0, mount 0, tidy 0", kills: "update"}, "healthy disks are refused"},
		{"rewrite: what is live stays", config{disks: 2, without: ruleKeep}, bounds{lines: 4, only: "update, tidy, read"}, "healthy disks are refused"},
		{"rewrite: epoch lines stay", config{disks: 2, without: ruleStay},
			bounds{lines: 5, only: "alone, unmount 1, mount 1, tidy 0, read"}, "history"},
		{"rewrite: a new file", config{disks: 2, without: ruleWhole},
			bounds{lines: 4, only: "update, tidy 0, read", kills: "tidy"}, "healthy disks are refused"},
		{"rewrite: history first", config{disks: 2, without: ruleHistory}, bounds{lines: 4, only: "update, tidy"}, "history"},

		{"create: no file", config{disks: 2, blind: true, without: ruleNoFile}, bounds{lines: 4, only: "create"}, "second ledger"},
		{"create: no witness", config{disks: 1, without: ruleNoMark}, bounds{lines: 4, stray: 1, only: "create, replace"}, "second ledger"},
		{"create: all places", config{disks: 2, blind: true, without: ruleAllPlaces},
			bounds{lines: 4, stray: 1, only: "create, replace, unmount"}, "second ledger"},

		{"lock", config{disks: 2, without: ruleLock}, bounds{lines: 4, only: "two"}, "two processes write at once"},

		{"keep: the epoch line", config{disks: 2, without: ruleEpochLine}, bounds{lines: 4, only: "keep"}, "after keep"},
		{"keep: the epoch line first", config{disks: 2, without: ruleFirst}, bounds{lines: 4, only: "keep, update", kills: "keep"}, "healthy disks are refused"},
		{"keep: the others set aside", config{disks: 2, without: ruleGivenUp},
			bounds{lines: 5, only: "update, alone, unmount, mount, keep", kills: "alone"}, "disagree"},
	}
	var tried rule
	for _, test := range tests {
		tried |= test.config.without
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			from, err := newLab(test.config)
			try(t, err)
			x, err := explore(from, test.bounds, 4000)
			if err == nil || !strings.Contains(err.Error(), test.breaks) {
				t.Fatalf("without it, in %d states, %d deep, whole %v: %v", x.states, x.depth, x.whole, err)
			}
			t.Logf("%d steps: %.300v", x.steps, err)
			if testing.Short() {
				return
			}
			test.config.without, test.config.repairs = 0, false
			from, err = newLab(test.config)
			try(t, err)
			y, err := explore(from, test.bounds, max(x.states, 1))
			if err != nil {
				t.Errorf("with it: %v", err)
			}
			t.Logf("with it: %d states, %d steps", y.states, y.steps)
		})
	}
	for _, counter := range counters() {
		tried |= counter.without // needed where disks lie, which they do not here
	}
	if tried != 1<<allRules-1 {
		t.Errorf("not all rules were left out: %b", tried)
	}
}
