package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/bmc/bmctest"
	"github.com/sledctl/sledctl/fleet/node"
)

// A history is what may happen to a fleet, in an order and at times that are drawn: cut and slow
// networks, killed and paused processes, clocks that jump, BMCs that misbehave. A VM under a lease or
// power may end and be started elsewhere by it, and never has two copies; one under storage never has two that
// can write. One under hold is not touched
// at all: its sled is not powered off.

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

// threeVMs are those without a volume: the one under hold on the first sled, which is never powered off
// therefore, and the one under power on sleds whose label spare says what %[1]q is.
const threeVMs = `apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachine
metadata: {name: leased}
spec: {cpus: 1, memory: 1Gi, restart: lease}
---
apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachine
metadata: {name: held}
spec: {cpus: 1, memory: 1Gi, nodeSelector: {spare: "no"}}
---
apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachine
metadata: {name: powered}
spec: {cpus: 1, memory: 1Gi, restart: power, nodeSelector: {spare: %[1]q}}
`

// hasty is a fleet whose terms are tenths of seconds. Its VM under power is on a sled that may be powered
// off ("yes"), or next to the one under hold ("no").
func hasty(t *testing.T, powered string) (*Fleet, map[string]*bmctest.Sled) {
	f := Begin(t)
	f.Install("--fence", "1s", "--halt", "2s", "--margin", "500ms", "--beat", "200ms", "--power-after", "1s", "--settle", "1s", "--leader-elect=false")
	for number := 1; number <= 3; number++ {
		f.Join(number, node.Pace{Renew: 250 * time.Millisecond, Fence: time.Second})
	}
	f.Until("three sleds are Ready", f.Ready)
	boards := f.boards("redfish")
	f.Must("label", "nodes", "sled1", "spare=no")
	f.Must("label", "nodes", "sled2", "sled3", "spare=yes")
	f.Apply(fmt.Sprintf(threeVMs, powered) + "---\n" + stored)
	f.Running("leased", "held", "powered", "stored")
	return f, boards
}

func TestHistories(t *testing.T) {
	t.Parallel() // it waits most of the time
	f, boards := hasty(t, "yes")
	first := f.Must("get", "vm", "held", "-o", "jsonpath={.status.generation} {.status.sled}")
	w := f.watch("leased", "held", "powered", "stored")
	started := uint64(time.Now().UnixNano())
	if text := os.Getenv("SLEDCTL_FLEET_SEED"); text != "" {
		var err error
		started, err = strconv.ParseUint(text, 10, 64)
		f.ok(err)
	}
	begun, ends := time.Now(), map[string]int{}
	generation := func(vm string) string { return f.Must("get", "vm", vm, "-o", "jsonpath={.status.generation}") }
	for n := range histories(t) {
		seed := started + uint64(n)
		was := map[string]string{"leased": generation("leased"), "powered": generation("powered"), "stored": generation("stored")}
		told := f.history(rand.New(rand.NewPCG(seed, 0)), boards, true)
		if found := w.found(); found != "" {
			t.Fatalf("history %d: %s\n%s", seed, found, told)
		}
		if now := f.Must("get", "vm", "held", "-o", "jsonpath={.status.generation} {.status.sled}"); now != first {
			t.Fatalf("history %d: the VM under hold was %s, and is %s\n%s", seed, first, now, told)
		}
		for vm, before := range was {
			if generation(vm) != before {
				ends[vm]++
			}
		}
	}
	t.Logf("%d histories from seed %d in %v: by %v of them a VM was started again, %d looks found no two copies",
		histories(t), started, time.Since(begun).Round(time.Second), ends, w.stop())
	if ends["leased"] == 0 || ends["powered"] == 0 || ends["stored"] == 0 {
		t.Error("a VM was never started again: nothing was shown")
	}
}

// Without guards such histories have two copies: of the VM under a lease, since a guard halts no other. No
// sled is powered off in them, as that would end the first copy before the second one starts.
func TestHistoriesWithoutGuards(t *testing.T) {
	t.Parallel()
	f, boards := hasty(t, "no")
	for _, s := range f.sleds {
		s.End("guard")
	}
	w := f.watch("leased", "held", "powered", "stored")
	const most = 60 // in about two of five, the VM under a lease is started again
	for n := range uint64(most) {
		told := f.history(rand.New(rand.NewPCG(n, 0)), boards, false)
		if found := w.found(); found != "" {
			t.Logf("in history %d: %s\n%s", n, found, told)
			w.stop()
			return
		}
	}
	t.Errorf("%d histories without a guard, and never two copies", most)
}

// history plays one history, and has all well again afterwards.
func (f *Fleet) history(r *rand.Rand, boards map[string]*bmctest.Sled, guards bool) string {
	f.t.Helper()
	var told strings.Builder
	start := time.Now()
	tell := func(format string, args ...any) {
		fmt.Fprintf(&told, "%6.2f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	names := slices.Sorted(maps.Keys(f.sleds))
	for range 4 + r.IntN(6) {
		s := f.sleds[names[r.IntN(len(names))]]
		for _, vm := range []string{"leased", "powered", "stored"} {
			if on := f.On(vm); len(on) > 0 && r.IntN(3) == 0 { // the ones that matter most
				s = f.sleds[on[0]]
			}
		}
		f.happens(r, s, boards[s.Name], guards, tell)
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
	}
	if r.IntN(2) == 0 {
		tell("nothing happens for 5 s") // what is silent now is acted on
		time.Sleep(5 * time.Second)
	}
	tell("all is well again")
	f.heal(boards, guards)
	tell("each VM runs once")
	if os.Getenv("SLEDCTL_STORIES") != "" {
		f.t.Log(told.String())
	}
	return told.String()
}

// happens is one thing that happens to a sled or to the controller.
func (f *Fleet) happens(r *rand.Rand, s *Sled, board *bmctest.Sled, guards bool, tell func(string, ...any)) {
	part := "node"
	switch r.IntN(16) {
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
		faults := []bmctest.Faults{{Refuses: true}, {Gone: true}, {Ignores: true}, {Late: 500 * time.Millisecond}, {Slow: 300 * time.Millisecond}, {}}
		is := faults[r.IntN(len(faults))]
		tell("the BMC of sled %s has the faults %+v", s.Name, is)
		board.Fail(is)
		return
	case 11:
		if board.Off() {
			tell("sled %s is powered on", s.Name)
			f.press(s, board)
		}
		return
	case 12, 13:
		tell("nothing happens for 2 s")
		time.Sleep(2 * time.Second)
		return
	case 14:
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
func (f *Fleet) heal(boards map[string]*bmctest.Sled, guards bool) {
	f.t.Helper()
	f.toggle(false)
	for name, s := range f.sleds {
		boards[name].Fail(bmctest.Faults{})
		s.cable.Flow()
		s.cable.Join()
		for _, part := range []string{"agent", "node"} {
			if !s.Has(part) {
				f.begin(s, part)
			}
		}
	}
	f.Until("each VM runs once", func() bool {
		for name, s := range f.sleds { // it may be powered off as late as now
			if boards[name].Off() {
				f.press(s, boards[name])
			}
		}
		if !guards && len(f.On("leased")) > 1 {
			return true
		}
		return len(f.On("leased")) == 1 && len(f.On("held")) == 1 && len(f.On("powered")) == 1 && len(f.On("stored")) == 1 && strings.Count(f.Must("get", "vm", "--no-headers"), "Running") == 4
	})
}

// press powers a sled on.
func (f *Fleet) press(s *Sled, board *bmctest.Sled) {
	f.t.Helper()
	board.On()
	s.cable.Flow() // what it had sent is lost
	f.powerOn(s)
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
