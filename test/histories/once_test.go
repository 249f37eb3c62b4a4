package histories

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// Histories in which a law was broken once. Where a verb is killed depends on
// what it does side by side: so it is killed at each point.
func TestHistoriesThatOnceBrokeALaw(t *testing.T) {
	if testing.Short() {
		t.Skip(unraced)
	}
	root := prepareOnce(t, plain())
	for name, c := range map[string]struct {
		first  []act
		killed verb
		points int
		then   []act
	}{
		// The outcome lies on one copy of the ledger, and the next reap rolls
		// it forward: it took the run for one that had ended while it looked.
		"a VNIC whose time is up is left": {killed: verb{word: "hold"}, points: 8},
		// zfs destroy was killed behind its unmount.
		"a dataset that is not mounted is in the way": {
			first:  []act{{verb: verb{word: "ensure", name: "b", crash: 6, how: host.CrashBefore}}},
			killed: verb{word: "delete", name: "b"}, points: 8,
			then: []act{{verb: verb{word: "ensure", name: "b"}}},
		},
		// zoneadm knows nothing of datasets: it lists the zone as installed.
		"an installed zone without a dataset is resumed": {
			killed: verb{word: "ensure", name: "a"}, points: 16,
			then: []act{{hand: "destroy", name: "a"}, {verb: verb{word: "ensure", name: "a"}}},
		},
		"what may not have come to be is taken for wanted": {
			killed: verb{word: "ensure", name: "c"}, points: 2,
			then: []act{{hand: "power"}, {verb: verb{word: "ensure --all"}}},
		},
		"what runs already is left as not finished": {
			killed: verb{word: "ensure", name: "a"}, points: 20,
			then: []act{{verb: verb{word: "ensure --all"}}, {verb: verb{word: "ensure", name: "a", cpus: 3}}, {hand: "restart", name: "a"}},
		},
		// The intent lies on one copy, and who looks first does not see it.
		"what does not exist yet is taken for missing": {
			killed: verb{word: "ensure", name: "b"}, points: 4,
			then: []act{{verb: verb{word: "stop", name: "b", dry: true}}, {verb: verb{word: "reap"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; n <= c.points; n++ {
				for _, how := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
					v := c.killed
					v.crash, v.how = n, how
					acts := slices.Concat(c.first, []act{{verb: v}}, c.then)
					if bad, log := root.replay(t, acts); bad != nil {
						t.Errorf("%v\n%s", bad.err, fmt.Sprint(log))
					}
				}
			}
		})
	}
}
