package commands_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
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
	const web1 = "instance ensure web1 --nic over=net0 --nic over=net1,vlan=7"
	return []crossing{
		{name: "ensure, then delete", line: web1, then: []string{"instance delete web1"}},
		{name: "ensure, then stop, start", line: web1, then: []string{"instance stop web1", "instance start web1", "instance delete web1"}},
		{name: "ensure, then another description", line: web1, then: []string{"instance ensure web1 --cpus 4 --nic over=net1 --recreate", "instance delete web1"}},
		{name: "ensure, then reap", line: web1, then: []string{"reap", "instance ensure web1", "instance delete web1"}},
		{name: "ensure, then all", line: web1, then: []string{"instance ensure --all", "instance stop --all", "instance delete web1"}},
		{name: "delete, then ensure", ready: []string{web1}, line: "instance delete web1", then: []string{web1, "instance delete web1"}},
		{name: "stop, then ensure", ready: []string{web1}, line: "instance stop web1", then: []string{web1, "instance delete web1"}},
		{name: "recreate, then delete", ready: []string{web1}, line: "instance ensure web1 --cpus 4 --recreate", then: []string{"instance delete web1"}},
		{name: "recreate, then stop", ready: []string{web1}, line: "instance ensure web1 --cpus 4 --recreate", then: []string{"instance stop web1", "instance delete web1"}},
		{name: "start, then reap", ready: []string{web1, "instance stop web1"}, line: "instance start web1", then: []string{"reap", "instance delete web1"}},
		{name: "reboot, then reboot", ready: []string{web1}, line: "instance reboot web1", then: []string{"instance reboot web1", "instance delete web1"}},
		{name: "reboot, then stop", ready: []string{web1}, line: "instance reboot web1", then: []string{"instance stop web1", "instance delete web1"}},
		{name: "power-off, then ensure", ready: []string{web1}, line: "propolis stop --instance web1", then: []string{web1, "instance delete web1"}},
		{name: "power-off, then power-off", ready: []string{web1}, line: "propolis stop --instance web1", then: []string{"propolis stop --instance web1", "instance delete web1"}},
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
			points := 0
			synctest.Test(t, func(t *testing.T) {
				s := c.scene(t)
				count := host.Crash(s.Host(), 0, host.CrashBefore)
				if a := s.on(t.Context(), count, c.line); a.exit != 0 {
					t.Fatalf("exit %d: %s", a.exit, a.errs)
				}
				points = count.Points()
			})
			cases := 0
			for n := 1; n <= points; n++ {
				for m, mode := range modes {
					if n%len(modes) != m || testing.Short() && n%2 == 0 {
						continue // a point is cut in one way, the ways in turn
					}
					cases++
					synctest.Test(t, func(t *testing.T) { c.cross(t, fmt.Sprintf("killed in way %d at %d of %d", m, n, points), n, mode) })
				}
			}
			t.Logf("%d points, %d cases", points, cases)
		})
	}
}

func (c crossing) scene(t *testing.T) *scene {
	return interruption{name: c.name, ready: c.ready, line: c.line}.scene(t)
}

func (c crossing) cross(t *testing.T, point string, n int, mode host.CrashMode) {
	s := c.scene(t)
	dying := host.Crash(s.Host(), n, mode)
	s.on(t.Context(), dying, c.line)
	dying.Wait()
	for _, line := range c.then {
		a := s.try(line)
		early := a.exit == 4 && strings.HasPrefix(line, "instance st") // nothing was begun yet
		if a.exit != 0 && !early {
			t.Fatalf("%s: sledctl %s: exit %d: %s", point, line, a.exit, a.errs)
		}
	}
	s.run("reap")
	s.same(s.first, point+": in the end")
	if diff := cmp.Diff(s.keys, slices.Sorted(maps.Keys(s.ledger()))); diff != "" {
		t.Errorf("%s: in the end, the ledger (-first +now):\n%s", point, diff)
	}
}
