package memory

import (
	"errors"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/reservoir"
)

const gib = 1 << 30

func TestTheReservoirGetsTheSizeThatIsConfigured(t *testing.T) {
	for name, c := range map[string]struct {
		wanted  uint64
		seen    reservoir.State
		does    string // the step, or
		refused string // why not
	}{
		"not configured":       {0, reservoir.State{Free: gib, Limit: 9 * gib}, "", ""},
		"right":                {4 * gib, reservoir.State{Free: gib, Allocated: 3 * gib, Limit: 9 * gib}, "", ""},
		"none yet":             {4 * gib, reservoir.State{Limit: 9 * gib}, "rsrvrctl -s 4096", ""},
		"shrinks":              {3 * gib, reservoir.State{Free: 2 * gib, Allocated: 3 * gib, Limit: 9 * gib}, "rsrvrctl -s 3072", ""},
		"less than guests use": {2 * gib, reservoir.State{Free: gib, Allocated: 3 * gib, Limit: 9 * gib}, "", "cannot shrink to 2048 MiB: guests have taken 3072 MiB"},
		"more than is allowed": {8 * gib, reservoir.State{Transient: 2 * gib, Limit: 9 * gib}, "", "cannot grow to 8192 MiB: the kernel allows 9216 MiB, of which guests outside it have taken 2048 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Settings{Reservoir: c.wanted}.decide(Seen{Reservoir: c.seen})
			if c.refused != "" {
				if !errors.Is(err, host.ErrRefused) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v", err)
				}
				return
			}
			got := ""
			for _, a := range d.Plan.Actions {
				got += a.Step.Explain()[0].Text
			}
			if err != nil || got != c.does || (got != "") != (len(d.Intent.Changes) > 0) {
				t.Errorf("%q, %v, %v", got, d.Intent.Changes, err)
			}
		})
	}
}

func TestAnAutomaticSizeLeavesTheHostItsShare(t *testing.T) {
	for name, c := range map[string]struct {
		settings Settings
		memory   uint64
		seen     reservoir.State
		wanted   uint64 // MiB
		why      string
		refused  string
	}{
		"a rack's sled":               {Settings{Auto: true}, 1024 * gib, reservoir.State{Limit: 900 * gib}, 873106, "is 0 MiB, wanted 873106 MiB (auto) of the sled's 1048576 MiB; takes about 1m51s", ""},
		"a workstation":               {Settings{Auto: true}, 16 * gib, reservoir.State{Limit: 14 * gib}, 8422, "is 0 MiB, wanted 8422 MiB (auto) of the sled's 16384 MiB", ""},
		"the kernel allows less":      {Settings{Auto: true}, 64 * gib, reservoir.State{Limit: 40 * gib, Transient: gib}, 39 * 1024, "is 0 MiB, wanted 39936 MiB (auto) of the sled's 65536 MiB; takes about 5s", ""},
		"guests have more than that":  {Settings{Auto: true}, 16 * gib, reservoir.State{Allocated: 12 * gib, Free: gib, Limit: 14 * gib}, 12 * 1024, "is 13312 MiB, wanted 12288 MiB (auto) of the sled's 16384 MiB", ""},
		"nothing to spare":            {Settings{Auto: true}, 6 * gib, reservoir.State{Limit: 5 * gib}, 0, "", "the sled has 6144 MiB of memory: of the 6144 MiB that it keeps for itself, nothing is left for VMs"},
		"a part":                      {Settings{Percent: 50}, 64 * gib, reservoir.State{Limit: 60 * gib}, 32766, "is 0 MiB, wanted 32766 MiB (50%) of the sled's 65536 MiB", ""},
		"a part that is not allowed":  {Settings{Percent: 99}, 64 * gib, reservoir.State{Limit: 60 * gib}, 0, "", "cannot grow to 64880 MiB: the kernel allows 61440 MiB"},
		"a part that guests have had": {Settings{Percent: 1}, 64 * gib, reservoir.State{Allocated: gib, Limit: 60 * gib}, 0, "", "cannot shrink to 654 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := c.settings.decide(Seen{Reservoir: c.seen, Memory: c.memory})
			if c.refused != "" {
				if !errors.Is(err, host.ErrRefused) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || len(d.Plan.Actions) != 1 {
				t.Fatalf("%+v, %v", d, err)
			}
			if a := d.Plan.Actions[0]; a.Why != c.why || a.Step.(reservoir.Set).Size>>20 != c.wanted {
				t.Errorf("%q, %d MiB; want %q, %d MiB", a.Why, a.Step.(reservoir.Set).Size>>20, c.why, c.wanted)
			}
		})
	}
}
