package matrix

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// crossing is a verb that is killed, and another one on the same instance that
// is run instead of it.
type crossing struct {
	name  string
	ready []string
	line  string   // is killed
	then  []string // the first of them finds its intent
}

func crossings() []crossing {
	return []crossing{
		{name: "ensure, then delete", line: sledtest.Web1, then: []string{"instance delete web1"}},
		{name: "ensure, then stop, start", line: sledtest.Web1, then: []string{"instance stop web1", "instance start web1", "instance delete web1"}},
		{name: "ensure, then another description", line: sledtest.Web1, then: []string{"instance ensure web1 --cpus 4 --nic over=net1 --recreate", "instance delete web1"}},
		{name: "ensure, then reap", line: sledtest.Web1, then: []string{"reap", "instance ensure web1", "instance delete web1"}},
		{name: "ensure, then all", line: sledtest.Web1, then: []string{"instance ensure --all", "instance stop --all", "instance delete web1"}},
		{name: "delete, then ensure", ready: []string{sledtest.Web1}, line: "instance delete web1", then: []string{sledtest.Web1, "instance delete web1"}},
		{name: "stop, then ensure", ready: []string{sledtest.Web1}, line: "instance stop web1", then: []string{sledtest.Web1, "instance delete web1"}},
		{name: "recreate, then delete", ready: []string{sledtest.Web1}, line: "instance ensure web1 --cpus 4 --recreate", then: []string{"instance delete web1"}},
		{name: "recreate, then stop", ready: []string{sledtest.Web1}, line: "instance ensure web1 --cpus 4 --recreate", then: []string{"instance stop web1", "instance delete web1"}},
		{name: "start, then reap", ready: []string{sledtest.Web1, "instance stop web1"}, line: "instance start web1", then: []string{"reap", "instance delete web1"}},
		{name: "reboot, then reboot", ready: []string{sledtest.Web1}, line: "instance reboot web1", then: []string{"instance reboot web1", "instance delete web1"}},
		{name: "reboot, then stop", ready: []string{sledtest.Web1}, line: "instance reboot web1", then: []string{"instance stop web1", "instance delete web1"}},
		{name: "power-off, then ensure", ready: []string{sledtest.Web1}, line: "propolis stop --instance web1", then: []string{sledtest.Web1, "instance delete web1"}},
		{name: "power-off, then power-off", ready: []string{sledtest.Web1}, line: "propolis stop --instance web1", then: []string{"propolis stop --instance web1", "instance delete web1"}},
	}
}

// Whatever verb comes after one that was killed answers for what that left: it
// succeeds, and in the end nothing is on the sled, nor in the ledger, that was
// not there at first.
func TestAVerbThatIsKilledIsAnsweredForByAnother(t *testing.T) {
	modes := []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring}
	for _, c := range crossings() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var g *stage
			files := t.TempDir()
			synctest.Test(t, func(t *testing.T) { g = row{name: c.name, ready: c.ready, line: c.line}.stage(t, files) })
			cases := 0
			for n := 1; n <= g.points[sledtest.AtChange]; n++ {
				for m, mode := range modes {
					if !sledtest.Soak() && (n%len(modes) != m || testing.Short() && n%4 != 0 || sledtest.Quick() && n%16 != 0) {
						continue // a point is cut in one way, the ways in turn
					}
					cases++
					synctest.Test(t, func(t *testing.T) { g.open(t).cross(c, n, mode) })
				}
			}
			t.Logf("%d points, %d cases", g.points[sledtest.AtChange], cases)
		})
	}
}

func (s *scene) cross(c crossing, n int, mode host.CrashMode) {
	at, _ := s.kill(n, mode)
	for _, line := range c.then {
		a := s.Try(line)
		early := a.Exit == 4 && strings.HasPrefix(line, "instance st") // nothing was begun yet
		if a.Exit != 0 && !early {
			s.T.Fatalf("%s: sledctl %s: exit %d: %s", at, line, a.Exit, a.Errs)
		}
	}
	s.Run("reap")
	s.same(s.first, at+": in the end")
	if diff := cmp.Diff(s.firstKeys, slices.Sorted(maps.Keys(s.Ledger()))); diff != "" {
		s.T.Errorf("%s: in the end, the ledger (-first +now):\n%s", at, diff)
	}
	s.foreign(at + ": in the end")
}
