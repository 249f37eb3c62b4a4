package commands_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

func faults(s *sledtest.Operator, change func(tx *world.Tx)) {
	s.T.Helper()
	if err := s.World().Update(s.T.Context(), func(tx *world.Tx) error { change(tx); return nil }); err != nil {
		s.T.Fatal(err)
	}
}

// If the control plane is unreachable for an hour, in whatever way, readers do not
// wait and no goroutines pile up. When it is back, it learns of all VMs, and of those
// that ended meanwhile as ended, not as missing.
func TestTheControlPlaneIsAwayForAnHour(t *testing.T) {
	for name, c := range map[string]struct {
		fault world.Fault
		nexus sim.NexusOptions
	}{
		"it calls back from within the doorbell, and nothing is wrong": {world.Fault{}, sim.NexusOptions{Era: "both"}},
		"it calls back later, and nothing is wrong":                    {world.Fault{}, sim.NexusOptions{Era: "both", Later: true}},
		"it is down":                {world.Fault{Name: world.FaultNexusDown}, sim.NexusOptions{Era: "both"}},
		"it is slow":                {world.Fault{Name: world.FaultNexusSlow, Delay: 10 * time.Second}, sim.NexusOptions{Era: "both"}},
		"it is slower than we wait": {world.Fault{Name: world.FaultNexusSlow, Delay: time.Minute}, sim.NexusOptions{Era: "both"}},
		"it answers 500":            {world.Fault{Name: world.FaultNexusFail, Exit: 500, Text: "Internal Server Error"}, sim.NexusOptions{Era: "doorbell"}},
		"it answers 404":            {world.Fault{Name: world.FaultNexusFail, Exit: 404, Text: "Not Found"}, sim.NexusOptions{Era: "both"}},
		"a proxy answers":           {world.Fault{Name: world.FaultNexusHTML}, sim.NexusOptions{Era: "both"}},
		"what answers is no HTTP":   {world.Fault{Name: world.FaultNexusTalk}, sim.NexusOptions{Era: "both"}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !strings.HasPrefix(name, "it calls back from") && !strings.HasPrefix(name, "it answers") {
				t.Skip("five seconds for each, which only passes the time")
			}
			synctest.Test(t, func(t *testing.T) { away(t, c.fault, c.nexus) })
		})
	}
}

func away(t *testing.T, fault world.Fault, o sim.NexusOptions) {
	s := sledtest.NearNexus(t, o, "")
	for _, name := range []string{"web1", "web2"} {
		s.Run("instance ensure " + name)
	}
	ids := map[string]string{}
	for _, name := range []string{"web1", "web2"} {
		ids[name] = s.Value("instance get " + name + " -H --columns propolis_id")
	}
	a := s.StartAgent(t, s.Host())
	time.Sleep(time.Second)
	if fault.Name != "" {
		fault.Match = "nexus"
		faults(s, func(tx *world.Tx) { tx.Arm(fault) })
	}
	before := runtime.NumGoroutine()
	s.Run("instance stop web1")
	s.Run("instance ensure web3")
	ids["web3"] = s.Value("instance get web3 -H --columns propolis_id")
	time.Sleep(time.Second) // until the agent has seen what was done
	hears := fault.Name == "" || fault.Name == world.FaultNexusSlow && fault.Delay < 15*time.Second
	for hour := time.Now().Add(time.Hour); time.Now().Before(hour); time.Sleep(10 * time.Minute) {
		s.Run("instance reboot web2")
		time.Sleep(time.Second)
		asked := time.Now()
		for name, want := range map[string]string{"web2": "running", "web3": "running"} {
			if state, _ := a.State(ids[name]); state != want {
				t.Fatalf("%s is %s", name, state)
			}
		}
		if state, _ := a.State(ids["web1"]); !hears && state != "destroyed" {
			t.Fatalf("web1 is %s, although the control plane has not heard of its end", state)
		}
		if took := time.Since(asked); took > 0 {
			t.Fatalf("who asks waited for %s", took)
		}
	}
	// One for each of the two VMs with unsent changes, with a request and its server.
	if now := runtime.NumGoroutine(); now > before+3+2*8 {
		t.Errorf("%d goroutines, an hour ago %d", now, before)
	}
	faults(s, func(tx *world.Tx) { tx.State.Faults = nil })
	time.Sleep(15 * time.Minute)
	want := fmt.Sprint(map[string]string{ids["web1"]: "destroyed", ids["web2"]: "running", ids["web3"]: "running"})
	if got := fmt.Sprint(s.Knows()); got != want {
		t.Errorf("the control plane knows %s, want %s", got, want)
	}
	neverMissing(s)
	if state, _ := a.State(ids["web1"]); state != "404" {
		t.Errorf("web1 is still %s, although the control plane has read its end", state)
	}
}

// neverMissing fails the test if the control plane ever took a VM for lost.
func neverMissing(s *sledtest.Operator) {
	s.T.Helper()
	err := s.World().View(s.T.Context(), func(tx *world.Tx) error {
		for _, c := range tx.State.Nexus.News {
			if c.Check == "no_such_instance" || c.State == "failed" {
				return fmt.Errorf("of VM %s the control plane heard that it is %s: %s, by a %s", c.ID, c.State, c.Check, c.By)
			}
		}
		return nil
	})
	if err != nil {
		s.T.Error(err)
	}
}

// The agent tells apart what ended a VM: if an operation removed its zone, the VM was
// stopped, although no monitor saw it stop; if another program halted the zone, the VM
// failed.
func TestAZoneThatIsTakenAwayIsNoFailure(t *testing.T) {
	for end, want := range map[string]string{"instance stop web1": "destroyed", "instance delete web1": "destroyed", "": "failed"} {
		synctest.Test(t, func(t *testing.T) {
			s := sledtest.NearNexus(t, sim.NexusOptions{Era: "both"}, "")
			s.Run("instance ensure web1")
			id := s.Value("instance get web1 -H --columns propolis_id")
			zone := s.Value("instance get web1 -H --columns zone")
			faults(s, func(tx *world.Tx) {
				tx.State.Latency = "helios2021" // so that the zone is missing while it is being removed
				tx.Arm(world.Fault{Name: world.FaultDrop, Match: "propolis " + zone + " GET instance state-monitor"})
			})
			a := s.StartAgent(t, s.Host())
			time.Sleep(time.Second)
			if end == "" {
				s.Command("zoneadm -z " + zone + " halt")
			} else {
				s.Run(end)
			}
			time.Sleep(30 * time.Second)
			if state, _ := a.State(id); state != want {
				t.Errorf("after %q it is %s, want %s", end, state, want)
			}
			if got := s.Knows()[id]; got != want {
				t.Errorf("after %q the control plane knows it as %s, want %s", end, got, want)
			}
		})
	}
}
