package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// A limit that passed is named: the operator's own, or one that is built in and
// that no --timeout changes.
func TestTheLimitThatPassedIsNamed(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"instance ensure web1":               {"(smf.await may take 3m0s)", "--timeout does not change the limit of 3m0s for smf.await"},
		"instance ensure web1 --timeout 1h":  {"(smf.await may take 3m0s)", "--timeout does not change the limit of 3m0s for smf.await"},
		"instance ensure web1 --timeout 10s": {"deadline of 10s passed", "with a longer --timeout if it was too short"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := sledtest.New(t, sledtest.Small(), "")
			s.Run("bootstrap")
			faults(s, func(tx *world.Tx) {
				tx.Arm(world.Fault{Name: world.FaultSlowMilestone, Match: "propolis_instance_*", Delay: 240 * time.Hour})
			})
			a := s.Try(line)
			if a.Exit != 7 || !strings.Contains(a.Errs, want[0]) || !strings.Contains(a.Errs, want[1]) {
				t.Errorf("%s: exit %d: %s", line, a.Exit, a.Errs)
			}
			if other := strings.Contains(a.Errs, "deadline of"); other != strings.Contains(line, "10s") {
				t.Errorf("%s: %s", line, a.Errs)
			}
		})
	}
}
