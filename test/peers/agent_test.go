package peers_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/peers"
	"github.com/sledctl/sledctl/test/sledtest"
)

// While a peer of an agent at work misbehaves, in whatever way, readers are answered
// at once, no more is taken of an answer than it may be, and nothing piles up. Once
// the peer is well the control plane comes to know how each VM is.
func TestPeersOfAnAgentThatMisbehave(t *testing.T) {
	for _, peer := range []peers.Peer{peers.Nexus, peers.Propolis} {
		for i, w := range peers.Of(peer) {
			if testing.Short() && i%6 != 0 {
				continue
			}
			t.Run(fmt.Sprint(peer, " ", w.Name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { misleadAgent(t, peer, w) })
			})
		}
	}
}

func misleadAgent(t *testing.T, peer peers.Peer, w peers.Way) {
	s := sledtest.NearNexus(t, sim.NexusOptions{Era: "both"}, "")
	s.Run("instance ensure web1")
	id := s.Value("instance get web1 -H --columns propolis_id")
	h := &peers.Host{Host: s.Host(), Way: w, Ours: []string{id}, Limit: 65 << 20, Is: func(address string) bool {
		return (address == sledtest.PlaneAddress) == (peer == peers.Nexus)
	}}
	a := s.StartAgent(t, h)
	time.Sleep(time.Minute)
	before := runtime.NumGoroutine()
	for range 2 {
		s.Run("instance reboot web1")
		time.Sleep(time.Minute)
		asked := time.Now()
		if state, _ := a.State(id); peer == peers.Nexus && state != "running" {
			t.Errorf("the agent says that web1 is %s", state)
		}
		if took := time.Since(asked); took > 0 {
			t.Errorf("who asks the agent waits for %s", took)
		}
	}
	if now := runtime.NumGoroutine(); now > before+16 {
		t.Errorf("%d goroutines, two minutes ago %d", now, before)
	}
	if h.Asked() == 0 {
		t.Error("the peer was not asked")
	}
	if err := h.Fault(); err != nil {
		t.Error(err)
	}
	h.Cure()
	time.Sleep(10 * time.Minute) // the next sweep repeats what was refused
	if state, _ := a.State(id); state != "running" {
		t.Errorf("when the peer is well again, the agent says that web1 is %s", state)
	}
	if got := s.Knows()[id]; got != "running" {
		t.Errorf("when the peer is well again, the control plane knows web1 as %q", got)
	}
	s.Run("instance stop web1")
	time.Sleep(time.Minute)
	if got := s.Knows()[id]; got != "destroyed" {
		t.Errorf("the control plane knows web1 as %q after its end", got)
	}
}

// A control plane that takes this sled for another one asks for VMs that are not
// here, and registers one with the address of another sled. Nothing on the sled
// changes by it.
func TestAControlPlaneWithAnotherSledsData(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.Flat)
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	a := s.StartAgent(t, s.Host())
	before := s.Comparable()
	other := uuid.NewString()
	if state, _ := a.State(other); state != "404" {
		t.Errorf("a VM of another sled is %s", state)
	}
	for _, want := range []string{"running", "stopped", "reboot"} {
		if status, now := a.Want(other, want); status != 404 {
			t.Errorf("a VM of another sled is to be %s: %d %s", want, status, now)
		}
	}
	if status, answer := a.Send("DELETE", "/vmms/"+other, sledtest.LatestAPI, ""); status != 200 || strings.Contains(answer, "state\":\"") {
		t.Errorf("a VM of another sled is unregistered: %d %s", status, answer)
	}
	body := sledtest.VMBody(t, 48, uuid.NewString(), 5)
	body["propolis_addr"] = "10.78.3.5:12400"
	if status, answer := a.Send("PUT", "/vmms/"+other, sledtest.LatestAPI, body.Text(t)); status < 400 {
		t.Errorf("a VM at an address of another sled is registered: %d %s", status, answer)
	}
	id := s.Value("instance get web1 -H --columns propolis_id")
	body = sledtest.VMBody(t, 48, uuid.NewString(), 6)
	if status, answer := a.Send("PUT", "/vmms/"+id, sledtest.LatestAPI, body.Text(t)); status < 400 {
		t.Errorf("web1's VM is registered as another instance's: %d %s", status, answer)
	}
	s.Same(before, "a control plane with another sled's data")
	if state, _ := a.State(id); state != "running" {
		t.Errorf("web1 is %s", state)
	}
}
