package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// A run was killed while its zone booted, and the zone's svc.configd never answers: it
// has no VM, so after a while sledctl replaces the zone, and asks no Propolis to stop a
// VM that never ran.
func TestAZoneThatNeverAnswersIsBuiltAnew(t *testing.T) {
	t.Parallel()
	const line = "instance ensure web1"
	boots := func(t *testing.T, s *sledtest.Operator) int {
		for n := 1; ; n++ {
			twin := &sledtest.Operator{Sled: s.Clone(), T: t}
			dying := host.Crash(twin.Host(), n, host.CrashAfter)
			twin.On(t.Context(), dying, line)
			dying.Wait()
			twin.Close()
			if strings.HasSuffix(dying.Where(), " boot)") {
				return n
			}
			if !dying.Crashed() {
				t.Fatal("no zone was booted")
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		o := sledtest.Small()
		o.Latency = "helios2021"
		s := sledtest.New(t, o, "")
		s.Run("bootstrap")
		n := boots(t, s)
		s.Arm(world.Fault{Name: world.FaultSlowDoor, Match: "*", Times: 1, Delay: 24 * time.Hour})
		dying := host.Crash(s.Host(), n, host.CrashAfter)
		s.On(t.Context(), dying, line)
		dying.Wait()
		begun := time.Now()
		s.Run(line)
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		s.Run("instance delete web1")
		s.Run("reap")
	})
}
