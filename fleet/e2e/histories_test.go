package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/node"
)

// A history is what may happen to a fleet, in an order and at times that are drawn: cut and slow
// networks, killed and paused processes, clocks that jump. A VM under a lease may end and be started
// elsewhere by it, and never has two copies. One under hold is not touched at all.

// histories is how many are played: SLEDCTL_FLEET_HISTORIES, or 25.
func histories(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SLEDCTL_FLEET_HISTORIES")
	if text == "" {
		return 25
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SLEDCTL_FLEET_HISTORIES=%s: want a number of histories", text)
	}
	return n
}

const twoVMs = `apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachine
metadata: {name: leased}
spec: {cpus: 1, memory: 1Gi, restart: lease}
---
apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachine
metadata: {name: held}
spec: {cpus: 1, memory: 1Gi}
`

// hasty is a fleet whose terms are tenths of seconds.
func hasty(t *testing.T) *Fleet {
	f := Begin(t)
	f.Install("--fence", "1s", "--halt", "2s", "--margin", "500ms", "--beat", "200ms", "--power-after", "1s", "--leader-elect=false")
	for number := 1; number <= 3; number++ {
		f.Join(number, node.Pace{Renew: 250 * time.Millisecond, Fence: time.Second})
	}
	f.Until("three sleds are Ready", f.Ready)
	f.Apply(twoVMs)
	f.Running("leased", "held")
	return f
}

func TestHistories(t *testing.T) {
	f := hasty(t)
	first := f.Must("get", "vm", "held", "-o", "jsonpath={.status.generation} {.status.sled}")
	w := f.watch("leased", "held")
	started := uint64(time.Now().UnixNano())
	if text := os.Getenv("SLEDCTL_FLEET_SEED"); text != "" {
		var err error
		started, err = strconv.ParseUint(text, 10, 64)
		f.ok(err)
	}
	begun, ends := time.Now(), 0
	for n := range histories(t) {
		seed := started + uint64(n)
		was := f.Must("get", "vm", "leased", "-o", "jsonpath={.status.generation}")
		told := f.history(rand.New(rand.NewPCG(seed, 0)), true)
		if found := w.found(); found != "" {
			t.Fatalf("history %d: %s\n%s", seed, found, told)
		}
		if now := f.Must("get", "vm", "held", "-o", "jsonpath={.status.generation} {.status.sled}"); now != first {
			t.Fatalf("history %d: the VM under hold was %s, and is %s\n%s", seed, first, now, told)
		}
		if f.Must("get", "vm", "leased", "-o", "jsonpath={.status.generation}") != was {
			ends++
		}
	}
	t.Logf("%d histories from seed %d in %v: %d times the VM under a lease was started again, %d looks found no two copies",
		histories(t), started, time.Since(begun).Round(time.Second), ends, w.stop())
	if ends == 0 {
		t.Error("the VM under a lease was never started again: nothing was shown")
	}
}

// Without guards the same histories have two copies.
func TestHistoriesWithoutGuards(t *testing.T) {
	f := hasty(t)
	for _, s := range f.sleds {
		s.End("guard")
	}
	w := f.watch("leased", "held")
	for n := range uint64(20) {
		told := f.history(rand.New(rand.NewPCG(n, 0)), false)
		if found := w.found(); found != "" {
			t.Logf("in history %d: %s\n%s", n, found, told)
			w.stop()
			return
		}
	}
	t.Error("20 histories without a guard, and never two copies")
}

// history plays one history, and has all well again afterwards.
func (f *Fleet) history(r *rand.Rand, guards bool) string {
	f.t.Helper()
	var told strings.Builder
	start := time.Now()
	tell := func(format string, args ...any) {
		fmt.Fprintf(&told, "%6.2f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	names := slices.Sorted(maps.Keys(f.sleds))
	for range 4 + r.IntN(6) {
		s := f.sleds[names[r.IntN(len(names))]]
		if leased := f.On("leased"); len(leased) > 0 && r.IntN(2) == 0 { // the one that matters most
			s = f.sleds[leased[0]]
		}
		f.happens(r, s, guards, tell)
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
	}
	tell("all is well again")
	f.heal(guards)
	tell("each VM runs once")
	if os.Getenv("SLEDCTL_STORIES") != "" {
		f.t.Log(told.String())
	}
	return told.String()
}

// happens is one thing that happens to a sled or to the controller.
func (f *Fleet) happens(r *rand.Rand, s *Sled, guards bool, tell func(string, ...any)) {
	part := "node"
	switch what := r.IntN(12); what {
	case 0, 1, 2:
		tell("sled %s is cut off", s.Name)
		s.cable.Cut()
		return
	case 3:
		tell("sled %s is connected", s.Name)
		s.cable.Join()
		return
	case 4:
		tell("what sled %s sends and receives is held up", s.Name)
		s.cable.Stall()
		return
	case 5:
		tell("what sled %s sends and receives flows again", s.Name)
		s.cable.Flow()
		return
	case 6:
		tell("the controller is killed")
		f.kill <- struct{}{}
		return
	case 7:
		tell("the controller is stopped or continued")
		f.toggle(r.IntN(2) == 0)
		return
	case 8:
		by := time.Duration(r.IntN(7200)-3600) * time.Second
		tell("the clock of the node of sled %s jumps by %v", s.Name, by)
		s.jump.Add(int64(by))
		return
	case 9:
		if !guards {
			return
		}
		tell("the guard of sled %s is killed, and restarted", s.Name)
		s.End("guard")
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		f.Run(s, "guard", s.Guard)
		return
	case 10:
		part = "agent"
	}
	if s.Has(part) {
		tell("the %s of sled %s is killed", part, s.Name)
		s.End(part)
		return
	}
	tell("the %s of sled %s is started", part, s.Name)
	f.begin(s, part)
}

// begin starts the node or the agent of a sled.
func (f *Fleet) begin(s *Sled, part string) {
	if part == "agent" {
		f.Run(s, part, s.Agent)
		return
	}
	f.Run(s, part, s.node)
}

// heal has all run and connected, and waits until each VM runs.
func (f *Fleet) heal(guards bool) {
	f.t.Helper()
	f.toggle(false)
	for _, s := range f.sleds {
		s.cable.Flow()
		s.cable.Join()
		for _, part := range []string{"agent", "node"} {
			if !s.Has(part) {
				f.begin(s, part)
			}
		}
	}
	f.Until("each VM runs once", func() bool {
		if len(f.On("leased")) != 1 || len(f.On("held")) != 1 {
			return !guards && len(f.On("leased")) > 1
		}
		said := f.Must("get", "vm", "--no-headers")
		return strings.Count(said, "Running") == 2
	})
}

// toggle stops the controller where it is, or has it continue.
func (f *Fleet) toggle(stop bool) {
	p := f.leader.Load()
	if stop {
		_ = p.Pause() // it may have ended
		return
	}
	_ = p.Resume()
}

// watcher looks at all sleds, again and again, for two copies of a VM.
type watcher struct {
	mu    sync.Mutex
	two   string
	looks int
	done  context.CancelFunc
	over  sync.WaitGroup
}

func (w *watcher) found() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.two
}

func (w *watcher) stop() int {
	w.done()
	w.over.Wait()
	return w.looks
}

// watch looks every 20 ms. The sleds are looked at one after the other, so that two copies are two only
// if what was seen first is seen again after the second.
func (f *Fleet) watch(vms ...string) *watcher {
	ctx, done := context.WithCancel(context.Background())
	w := &watcher{done: done}
	f.t.Cleanup(func() { w.stop() })
	w.over.Go(func() {
		for ctx.Err() == nil {
			for _, vm := range vms {
				first := f.copiesOf(ctx, vm)
				if len(first) > 1 {
					again := f.copiesOf(ctx, vm)
					w.mu.Lock()
					if both := slices.DeleteFunc(again, func(sled string) bool { return !slices.Contains(first, sled) }); len(both) > 1 && w.two == "" {
						w.two = fmt.Sprintf("%s runs on %v", vm, both)
					}
					w.mu.Unlock()
				}
			}
			w.looks++
			time.Sleep(20 * time.Millisecond)
		}
	})
	return w
}

// copiesOf are the sleds on which a VM runs.
func (f *Fleet) copiesOf(ctx context.Context, vm string) (on []string) {
	for name, s := range f.sleds {
		runs, err := s.Runs(ctx)
		if err == nil && slices.ContainsFunc(runs, func(run string) bool { return strings.HasPrefix(run, vm+".") }) {
			on = append(on, name)
		}
	}
	return on
}
