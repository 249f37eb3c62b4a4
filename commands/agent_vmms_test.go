package commands_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/test/sledtest"
)

// What the control plane asks of a VM that a command has made, is done as a
// command does it, and the record stays.
func TestTheControlPlaneChangesAVM(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	a := s.StartAgent(t, s.Host())
	id := propolisID(s, "web1")
	a.Eventually(id, "running")

	if status, now := a.Want(id, "running"); status != 200 || now != "" {
		t.Errorf("to run what runs: %d %q", status, now)
	}
	_, before := a.State(id)
	if status, now := a.Want(id, "reboot"); status != 200 || now != "rebooting" && now != "running" {
		t.Errorf("reboot: %d %q", status, now)
	}
	if _, after := a.State(id); after <= before {
		t.Errorf("a reboot shows nothing: generation %d, and was %d", after, before)
	}
	a.Eventually(id, "running")
	if status, now := a.Want(id, "stopped"); status != 200 || now != "stopping" {
		t.Errorf("stop: %d %q", status, now)
	}
	at := a.Until(0, "web1 destroyed")
	if state, gen := a.State(id); state != "destroyed" || gen < at {
		t.Errorf("%s at %d", state, gen)
	}
	s.Run("instance stop web1 --wait") // until all of it is gone
	if got := s.Value("instance list -H --columns state,wanted"); got != "stopped\tstopped" {
		t.Errorf("the instance is %q", got)
	}

	s.Run("instance start web1")
	second := propolisID(s, "web1")
	a.Eventually(second, "running")
	if status, now := a.Remove(second); status != 200 || now != "failed" {
		t.Errorf("unregister: %d %q", status, now)
	}
	if status, now := a.Remove(uuid.NewString()); status != 200 || now != "" {
		t.Errorf("unregister what nobody knows: %d %q", status, now)
	}
	if got := s.Value("instance list -H --columns state"); got != "stopped" {
		t.Errorf("the instance is %q", got)
	}
	for _, zone := range s.Zones() {
		if strings.HasPrefix(zone, "propolis_instance_") {
			t.Errorf("zone %s is left", zone)
		}
	}
}

// A VM that is gone, and is still to be read, cannot be changed.
func TestAVMThatIsGoneCannotBeChanged(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	a := s.StartAgent(t, s.Host())
	id := propolisID(s, "web1")
	s.Run("instance stop web1")
	a.Until(0, "web1 destroyed")
	for _, state := range []string{"running", "stopped", "reboot"} {
		if status, code := a.Want(id, state); status != http.StatusGone || code != "NO_SUCH_INSTANCE" {
			t.Errorf("%s: %d %q", state, status, code)
		}
	}
	if status, now := a.Remove(id); status != 200 || now != "destroyed" {
		t.Errorf("unregister: %d %q", status, now)
	}
}
