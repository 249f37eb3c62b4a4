package commands_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// vmms is the sled of a control plane that registers VMs.
func vmms(t *testing.T) *sledtest.Operator {
	t.Helper()
	return sledtest.NearNexus(t, sim.NexusOptions{Era: "both"}, "[agent]\nflat_network = true\n")
}

// A reboot of the sled ends the control plane's VMs, in whatever state they were: the
// next agent reports that, and removes what is left of them.
func TestARebootOfTheSledLosesTheControlPlanesVMs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vmms(t)
		s.Run("instance ensure mine")
		a := s.StartAgent(t, s.Host())
		idle, _ := a.Register(1)
		running, _ := a.Starts(2)
		ending, _ := a.Starts(3)
		faults(s, func(tx *world.Tx) { tx.State.Latency = "helios2021" })
		rising, _ := a.Register(4)
		a.Want(rising, "running")
		time.Sleep(2 * time.Second) // its zone is being made
		a.Want(ending, "stopped")
		a.Stop()
		if err := s.Reboot(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Run("bootstrap")
		b := s.StartAgent(t, s.Host())
		time.Sleep(30 * time.Second)
		known := s.Knows()
		for name, vm := range map[string]string{"registered": idle, "running": running, "being made": rising} {
			if state, _ := b.State(vm); state != "failed" || b.Reason(vm) != "the sled was rebooted" || known[vm] != "failed" {
				t.Errorf("the VM that was %s is %s: %s; the control plane knows it as %s", name, state, b.Reason(vm), known[vm])
			}
		}
		if state, _ := b.State(ending); state != "destroyed" || known[ending] != "destroyed" {
			t.Errorf("the VM that was to end is %s, and known as %s", state, known[ending])
		}
		if list := s.Run("instance list -o name"); list != "mine\n" {
			t.Errorf("there are %q", list)
		}
		for _, name := range s.Zones() {
			if strings.HasPrefix(name, "propolis_instance_") && !strings.Contains(s.Run("instance get mine -o json"), name) {
				t.Errorf("zone %s is left", name)
			}
		}
	})
}

// If the creation of a VM was killed where it cannot be resumed, with its zone
// incomplete, the agent creates the VM again under the id that the control plane chose.
func TestAVMThatIsHalfMadeIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vmms(t)
		s.Arm(world.Fault{Name: world.FaultKilled, Match: "zoneadm clone", Times: 1})
		dying := host.Crash(s.Host(), 0, host.CrashBefore).Kill(s.Lobby.Vanish)
		a := s.StartAgent(t, host.Trace(dying, func(e host.Event) {
			if strings.Contains(e.Line.Text, " clone ") {
				dying.Die()
			}
		}))
		vm, instance := a.Register(1)
		a.WantOfDying(vm, "running")
		for !dying.Crashed() {
			time.Sleep(time.Millisecond)
		}
		a.Stop()
		dying.Wait()
		if state := zoneOf(s, vm); state != world.ZoneIncomplete {
			t.Fatalf("its zone is %q", state)
		}
		b := s.StartAgent(t, s.Host())
		b.Eventually(vm, "running")
		if got := s.Value("instance get " + instance + " -H --columns propolis_id,state"); got != vm+"\trunning" {
			t.Errorf("it is %q", got)
		}
		time.Sleep(time.Second) // until the control plane has been told
		if s.Knows()[vm] != "running" {
			t.Errorf("the control plane knows %v", s.Knows())
		}
		neverMissing(s)
	})
}

// A guest that powers itself off is the end of its VM, as if it had been asked for:
// the control plane hears that it stops, and that it is destroyed once nothing is
// left of it but its tombstone.
func TestAGuestThatPowersItselfOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vmms(t)
		a := s.StartAgent(t, s.Host())
		vm, instance := a.Starts(1)
		faults(s, func(tx *world.Tx) { tx.State.Latency = "helios2021" })
		powersItselfOff(s, instance)
		a.Until(0, "vm-"+instance+" destroyed")
		if a := s.Try("instance get " + instance); a.Exit != 4 {
			t.Errorf("its instance: %+v", a)
		}
		noVMs(s)
		if stones := s.Run("ledger show tombstone/"); !strings.Contains(stones, vm) {
			t.Errorf("there is no tombstone: %s", stones)
		}
		time.Sleep(time.Second)
		var heard []string
		for _, c := range news(s, vm) {
			heard = append(heard, c.State)
		}
		if got := strings.Join(heard, " "); !strings.HasSuffix(got, "running stopping destroyed") {
			t.Errorf("the control plane has heard %s", got)
		}
		time.Sleep(5 * time.Minute)
		if state, _ := a.State(vm); state != "404" || strings.Contains(s.Run("ledger show tombstone/"), vm) {
			t.Errorf("it was read, and is still %s", state)
		}
		if s.Knows()[vm] != "destroyed" {
			t.Errorf("the control plane knows %v", s.Knows())
		}
	})
}

// news is all that the control plane came to know of a VM.
func news(s *sledtest.Operator, vm string) (all []*world.NexusChange) {
	s.T.Helper()
	err := s.World().View(s.T.Context(), func(tx *world.Tx) error {
		for _, c := range tx.State.Nexus.News {
			if c.ID == vm {
				all = append(all, c)
			}
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return all
}

// zoneOf is the state of a VM's zone; empty: there is none.
func zoneOf(s *sledtest.Operator, vm string) (state string) {
	s.T.Helper()
	err := s.World().View(s.T.Context(), func(tx *world.Tx) error {
		for _, z := range tx.State.Zones {
			if strings.HasSuffix(z.Name, vm) {
				state = z.State
			}
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return state
}

// powersItselfOff has the guest of an instance do that. The console may be cut off
// over it.
func powersItselfOff(s *sledtest.Operator, instance string) {
	s.Answers(s.T.Context(), s.Host(), []string{"instance", "console", instance}, []byte("root\rpoweroff\r"))
}

// An agent ends when what it is asked for has: who asked is hung up on, and what was
// done for him is taken back before.
func TestAnAgentThatEndsTakesBackWhatItWasDoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vmms(t)
		faults(s, func(tx *world.Tx) { tx.State.Latency = "helios2021" })
		before := s.Comparable()
		a := s.StartAgent(t, s.Host())
		asked := make(chan error, 1)
		go func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://sled/instances/web1", strings.NewReader("{}"))
			if err == nil {
				request.Header.Set("api-version", sledtest.LatestAPI)
				var reply *http.Response
				if reply, err = a.Client.Do(request); err == nil {
					reply.Body.Close()
				}
			}
			asked <- err
		}()
		time.Sleep(2500 * time.Millisecond) // its zone boots
		if s.Comparable() == before {
			t.Fatal("nothing was done yet")
		}
		a.Stop()
		if err := <-asked; err == nil {
			t.Error("who asked was answered")
		}
		noVMs(s)
		if list := s.Run("instance list -o name"); list != "" {
			t.Errorf("there are %q", list)
		}
	})
}
