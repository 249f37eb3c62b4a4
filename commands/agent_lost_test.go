package commands_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
)

// vmms is the sled of a control plane that registers VMs.
func vmms(t *testing.T) *sled {
	t.Helper()
	return nearNexus(t, sim.NexusOptions{Era: "both"}, "[agent]\nflat_network = true\n")
}

// register registers a VM, the n-th.
func (r *agentOf) register(n int) (vm, instance string) {
	r.t.Helper()
	vm, instance = uuid.NewString(), uuid.NewString()
	if status, answer := r.send("PUT", "/vmms/"+vm, latest, vmBody(r.t, 48, instance, n).text(r.t)); status != 200 {
		r.t.Fatalf("register: %d %s", status, answer)
	}
	return vm, instance
}

// starts registers a VM and has it run.
func (r *agentOf) starts(n int) (vm, instance string) {
	r.t.Helper()
	vm, instance = r.register(n)
	if status, now := r.want(vm, "running"); status != 200 {
		r.t.Fatalf("run: %d %s", status, now)
	}
	r.eventually(vm, "running")
	return vm, instance
}

// reason is why a VM is as it is.
func (r *agentOf) reason(vm string) string {
	r.t.Helper()
	_, body := r.ask("GET", "/vmms?limit=10000", latest)
	var page struct {
		Items []struct {
			ID     string `json:"propolis_id"`
			Reason string
		}
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		r.t.Fatal(err)
	}
	for _, v := range page.Items {
		if v.ID == vm {
			return v.Reason
		}
	}
	return ""
}

// A reboot of the sled is the end of the control plane's VMs, in whatever state
// they were: the next agent says so, and takes away what is left of them.
func TestARebootOfTheSledLosesTheControlPlanesVMs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vmms(t)
		s.run("instance ensure mine")
		a := s.agent(t, s.Host())
		idle, _ := a.register(1)
		running, _ := a.starts(2)
		ending, _ := a.starts(3)
		s.faults(func(tx *world.Tx) { tx.State.Latency = "helios2021" })
		rising, _ := a.register(4)
		a.want(rising, "running")
		time.Sleep(2 * time.Second) // its zone is being made
		a.want(ending, "stopped")
		a.stop()
		if err := s.Reboot(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.run("bootstrap")
		b := s.agent(t, s.Host())
		time.Sleep(30 * time.Second)
		known := s.knows()
		for name, vm := range map[string]string{"registered": idle, "running": running, "being made": rising} {
			if state, _ := b.state(vm); state != "failed" || b.reason(vm) != "the sled was rebooted" || known[vm] != "failed" {
				t.Errorf("the VM that was %s is %s: %s; the control plane knows it as %s", name, state, b.reason(vm), known[vm])
			}
		}
		if state, _ := b.state(ending); state != "destroyed" || known[ending] != "destroyed" {
			t.Errorf("the VM that was to end is %s, and known as %s", state, known[ending])
		}
		if list := s.run("instance list -o name"); list != "mine\n" {
			t.Errorf("there are %q", list)
		}
		for _, name := range s.zones() {
			if strings.HasPrefix(name, "propolis_instance_") && !strings.Contains(s.run("instance get mine -o json"), name) {
				t.Errorf("zone %s is left", name)
			}
		}
	})
}

// A VM whose making was cut short where it cannot be gone on with, its zone
// incomplete, is made again under the id that the control plane has chosen.
func TestAVMThatIsHalfMadeIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vmms(t)
		s.arm(world.Fault{Name: world.FaultKilled, Match: "zoneadm clone", Times: 1})
		var dying *host.Crashing
		dying = host.Crash(host.Trace(s.Host(), func(e host.Event) {
			if strings.Contains(e.Line.Text, " clone ") {
				dying.Die()
			}
		}), 0, host.CrashBefore).Kill(s.lobby.vanish)
		a := s.agent(t, dying)
		vm, instance := a.register(1)
		a.want(vm, "running")
		for !dying.Crashed() {
			time.Sleep(time.Millisecond)
		}
		a.stop()
		dying.Wait()
		if state := s.zoneOf(vm); state != world.ZoneIncomplete {
			t.Fatalf("its zone is %q", state)
		}
		b := s.agent(t, s.Host())
		b.eventually(vm, "running")
		if got := s.value("instance get " + instance + " -H --columns propolis_id,state"); got != vm+"\trunning" {
			t.Errorf("it is %q", got)
		}
		if s.knows()[vm] != "running" {
			t.Errorf("the control plane knows %v", s.knows())
		}
		s.neverMissing()
	})
}

// A guest that powers itself off is the end of its VM, as if it had been asked for:
// the control plane hears that it stops, and that it is destroyed once nothing is
// left of it but its tombstone.
func TestAGuestThatPowersItselfOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vmms(t)
		a := s.agent(t, s.Host())
		vm, instance := a.starts(1)
		s.faults(func(tx *world.Tx) { tx.State.Latency = "helios2021" })
		s.powersItselfOff(instance)
		a.until(0, "vm-"+instance+" destroyed")
		if a := s.try("instance get " + instance); a.exit != 4 {
			t.Errorf("its instance: %+v", a)
		}
		s.noVMs()
		if stones := s.run("ledger show tombstone/"); !strings.Contains(stones, vm) {
			t.Errorf("there is no tombstone: %s", stones)
		}
		time.Sleep(time.Second)
		var heard []string
		for _, c := range s.news(vm) {
			heard = append(heard, c.State)
		}
		if got := strings.Join(heard, " "); !strings.HasSuffix(got, "running stopping destroyed") {
			t.Errorf("the control plane has heard %s", got)
		}
		time.Sleep(5 * time.Minute)
		if state, _ := a.state(vm); state != "404" || strings.Contains(s.run("ledger show tombstone/"), vm) {
			t.Errorf("it was read, and is still %s", state)
		}
		if s.knows()[vm] != "destroyed" {
			t.Errorf("the control plane knows %v", s.knows())
		}
	})
}

// news is all that the control plane came to know of a VM.
func (s *sled) news(vm string) (all []*world.NexusChange) {
	s.t.Helper()
	err := s.World().View(s.t.Context(), func(tx *world.Tx) error {
		for _, c := range tx.State.Nexus.News {
			if c.ID == vm {
				all = append(all, c)
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// zoneOf is the state of a VM's zone; empty: there is none.
func (s *sled) zoneOf(vm string) (state string) {
	s.t.Helper()
	err := s.World().View(s.t.Context(), func(tx *world.Tx) error {
		for _, z := range tx.State.Zones {
			if strings.HasSuffix(z.Name, vm) {
				state = z.State
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// powersItselfOff has the guest of an instance do that. The console may be cut off
// over it.
func (s *sled) powersItselfOff(instance string) {
	s.answers(s.t.Context(), s.Host(), []string{"instance", "console", instance}, []byte("root\rpoweroff\r"))
}

// An agent ends when what it is asked for has: who asked is hung up on, and what was
// done for him is taken back before.
func TestAnAgentThatEndsTakesBackWhatItWasDoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vmms(t)
		s.faults(func(tx *world.Tx) { tx.State.Latency = "helios2021" })
		before := s.world()
		a := s.agent(t, s.Host())
		asked := make(chan error, 1)
		go func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://sled/instances/web1", strings.NewReader("{}"))
			if err == nil {
				request.Header.Set("api-version", latest)
				var reply *http.Response
				if reply, err = a.http.Do(request); err == nil {
					reply.Body.Close()
				}
			}
			asked <- err
		}()
		time.Sleep(2500 * time.Millisecond) // its zone boots
		if s.world() == before {
			t.Fatal("nothing was done yet")
		}
		a.stop()
		if err := <-asked; err == nil {
			t.Error("who asked was answered")
		}
		s.noVMs()
		if list := s.run("instance list -o name"); list != "" {
			t.Errorf("there are %q", list)
		}
	})
}
