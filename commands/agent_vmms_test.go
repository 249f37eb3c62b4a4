package commands_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

const latest = "48.0.0"

// want asks for a state, and gives what the answer says of it.
func (r *agentOf) want(id, state string) (status int, now string) {
	r.t.Helper()
	status, body := r.send("PUT", "/vmms/"+id+"/state", latest, fmt.Sprintf(`{"state":{"type":%q}}`, state))
	return status, updated(r.t, body)
}

// updated is the state of an answer to a change; empty if it says none.
func updated(t *testing.T, body string) string {
	t.Helper()
	var v struct {
		Updated *struct {
			VMM struct {
				State string `json:"state"`
			} `json:"vmm_state"`
		} `json:"updated_runtime"`
		Code string `json:"error_code"`
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if v.Updated == nil {
		return v.Code
	}
	return v.Updated.VMM.State
}

// eventually waits until a VM is in a state.
func (r *agentOf) eventually(id, want string) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		state, _ := r.state(id)
		if state == want {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("VM %s is %s, and not yet %s", id, state, want)
		}
	}
}

// What the control plane asks of a VM that a command has made, is done as a
// command does it, and the record stays.
func TestTheControlPlaneChangesAVM(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	s.run("instance ensure web1")
	a := s.agent(t, s.Host())
	id := s.propolisID("web1")
	a.eventually(id, "running")

	if status, now := a.want(id, "running"); status != 200 || now != "" {
		t.Errorf("to run what runs: %d %q", status, now)
	}
	_, before := a.state(id)
	if status, now := a.want(id, "reboot"); status != 200 || now != "rebooting" && now != "running" {
		t.Errorf("reboot: %d %q", status, now)
	}
	if _, after := a.state(id); after <= before {
		t.Errorf("a reboot shows nothing: generation %d, and was %d", after, before)
	}
	a.eventually(id, "running")
	if status, now := a.want(id, "stopped"); status != 200 || now != "stopping" {
		t.Errorf("stop: %d %q", status, now)
	}
	at := a.until(0, "web1 destroyed")
	if state, gen := a.state(id); state != "destroyed" || gen < at {
		t.Errorf("%s at %d", state, gen)
	}
	s.run("instance stop web1 --wait") // until all of it is gone
	if got := s.value("instance list -H --columns state,wanted"); got != "stopped\tstopped" {
		t.Errorf("the instance is %q", got)
	}

	s.run("instance start web1")
	second := s.propolisID("web1")
	a.eventually(second, "running")
	if status, now := a.remove(second); status != 200 || now != "failed" {
		t.Errorf("unregister: %d %q", status, now)
	}
	if status, now := a.remove(uuid.NewString()); status != 200 || now != "" {
		t.Errorf("unregister what nobody knows: %d %q", status, now)
	}
	if got := s.value("instance list -H --columns state"); got != "stopped" {
		t.Errorf("the instance is %q", got)
	}
	for _, zone := range s.zones() {
		if strings.HasPrefix(zone, "propolis_instance_") {
			t.Errorf("zone %s is left", zone)
		}
	}
}

func (r *agentOf) remove(id string) (status int, now string) {
	r.t.Helper()
	status, body := r.send("DELETE", "/vmms/"+id, latest, "")
	return status, updated(r.t, body)
}

// A VM that is gone, and is still to be read, cannot be changed.
func TestAVMThatIsGoneCannotBeChanged(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	s.run("instance ensure web1")
	a := s.agent(t, s.Host())
	id := s.propolisID("web1")
	s.run("instance stop web1")
	a.until(0, "web1 destroyed")
	for _, state := range []string{"running", "stopped", "reboot"} {
		if status, code := a.want(id, state); status != http.StatusGone || code != "NO_SUCH_INSTANCE" {
			t.Errorf("%s: %d %q", state, status, code)
		}
	}
	if status, now := a.remove(id); status != 200 || now != "destroyed" {
		t.Errorf("unregister: %d %q", status, now)
	}
}
