package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// A limit that passed is named: the operator's own, or one that is built in and
// that no --timeout changes.
func TestTheLimitThatPassedIsNamed(t *testing.T) {
	for line, want := range map[string][]string{
		"instance ensure web1":               {"(smf.await may take 3m0s)", "--timeout does not change the limit of 3m0s for smf.await"},
		"instance ensure web1 --timeout 1h":  {"(smf.await may take 3m0s)", "--timeout does not change the limit of 3m0s for smf.await"},
		"instance ensure web1 --timeout 10s": {"deadline of 10s passed", "with a longer --timeout if it was too short"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSled(t, small(), "")
			s.run("bootstrap")
			s.faults(func(tx *world.Tx) {
				tx.Arm(world.Fault{Name: world.FaultSlowMilestone, Match: "propolis_instance_*", Delay: 240 * time.Hour})
			})
			a := s.try(line)
			if a.exit != 7 || !strings.Contains(a.errs, want[0]) || !strings.Contains(a.errs, want[1]) {
				t.Errorf("%s: exit %d: %s", line, a.exit, a.errs)
			}
			if other := strings.Contains(a.errs, "deadline of"); other != strings.Contains(line, "10s") {
				t.Errorf("%s: %s", line, a.errs)
			}
		})
	}
}
