package histories

import (
	"fmt"
	"testing"
)

// Histories in which a law was broken once. Where a verb is killed depends on
// what it does side by side: so it is killed at each point.
func TestHistoriesThatOnceBrokeALaw(t *testing.T) {
	root := prepareOnce(t)
	for name, c := range map[string]struct {
		killed verb
		points int
		then   []act
	}{
		// The outcome lies on one copy of the state file, and the next reap rolls
		// it forward: it took the run for one that had ended while it looked.
		"a VNIC whose time is up is left": {killed: verb{word: "hold"}, points: 8},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; n <= c.points; n++ {
				for _, before := range []bool{true, false} {
					v := c.killed
					v.crash, v.before = n, before
					acts := append([]act{{verb: v}}, c.then...)
					if bad, log := root.replay(t, acts); bad != nil {
						t.Errorf("%v\n%s", bad.err, fmt.Sprint(log))
					}
				}
			}
		})
	}
}
