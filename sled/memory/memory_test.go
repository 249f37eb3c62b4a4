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
			d, err := Settings{Reservoir: c.wanted}.decide(c.seen)
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
