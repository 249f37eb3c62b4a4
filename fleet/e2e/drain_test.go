package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// What a drain is held to: as many VMs leave a sled within that time, while as many of their moves fail.
const (
	leaving   = 40
	drainTime = 120 * time.Second
	failing   = leaving / 10
)

// aSledIsDrained: kubectl drain ends when every VM of the sled runs elsewhere. A tenth of the
// migrations fail, and are tried again.
func aSledIsDrained(t *testing.T, f *Fleet) {
	sled := f.sleds["sled1"]
	names := f.crowded(sled)
	f.slow(100)
	for name, s := range f.sleds { // half of them on each target: the scheduler spreads the VMs
		if name != sled.Name {
			f.ok(s.Arm(t.Context(), world.Fault{Name: world.FaultFail, Match: "propolis * migrate Device", Skip: 3, Times: failing / 2}))
		}
	}
	crowd, w := f.crowd(), f.watch(names...)
	start := time.Now()
	_, err := f.Within(2*drainTime, "drain", sled.Name)
	f.ok(err)
	took := time.Since(start)
	t.Logf("%d VMs have left sled %s after %v; there were %d looks for two copies", leaving, sled.Name, took, w.stop())
	if took > drainTime {
		t.Errorf("the drain took %v, more than %v", took, drainTime)
	}
	if found := w.found(); found != "" {
		t.Error(found)
	}
	most := crowd()
	t.Logf("at most as many moved at once: %v", most)
	for name, n := range most {
		if n > 2 || n == 0 && name == sled.Name {
			t.Errorf("%d VMs moved from or to sled %s at once", n, name)
		}
	}
	if runs, err := sled.Runs(t.Context()); err != nil || len(runs) != 0 {
		t.Errorf("sled %s still runs %v, %v", sled.Name, runs, err)
	}
	f.Running(names...)
	f.unstopped(names...)
	phases := strings.Fields(f.Must("get", "vmm", "-o", "jsonpath={.items[*].status.phase}"))
	failed := len(slices.DeleteFunc(phases, func(phase string) bool { return phase != "Failed" }))
	t.Logf("%d migrations have failed", failed)
	if failed < failing {
		t.Errorf("%d migrations have failed, not %d: too few were tried again", failed, failing)
	}
	f.Must("uncordon", sled.Name)
	f.unslow()
	f.Must("delete", "vm", "--all", "--timeout=90s")
}

// crowded has VMs run on one sled alone: those of a drain.
func (f *Fleet) crowded(sled *Sled) []string {
	f.t.Helper()
	for name := range f.sleds {
		if name != sled.Name {
			f.Must("cordon", name)
		}
	}
	names := f.some("drained", leaving)
	for name := range f.sleds {
		f.Must("uncordon", name)
	}
	return names
}

// crowd counts, until it is stopped, how many VMs move at most at once from and to each sled.
func (f *Fleet) crowd() (stop func() map[string]int) {
	ctx, cancel := context.WithCancel(context.Background())
	most := make(chan map[string]int)
	go func() {
		n := map[string]int{}
		for ctx.Err() == nil {
			for name, s := range f.sleds {
				if moves, err := s.Moves(ctx); err == nil {
					n[name] = max(n[name], len(moves))
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		most <- n
	}()
	return func() map[string]int { cancel(); return <-most }
}
