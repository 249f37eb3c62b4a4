package sledtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
)

// NearNexus is a small sled that is prepared, with a control plane near it.
func NearNexus(t *testing.T, o sim.NexusOptions, more string) *Operator {
	t.Helper()
	s := New(t, Small(), TunedConfig+"[nexus]\nurl = \"http://"+PlaneAddress+"\"\n"+more)
	s.Lobby = &Lobby{}
	s.Agent = s.Lobby.Dial
	o.Address, o.Sleds = PlaneAddress, []string{"unix:/agent.sock"}
	if err := s.InitNexus(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.Run("bootstrap")
	return s
}

// Knows is what the control plane takes the VMs for, by their ids.
func (s *Operator) Knows() map[string]string {
	s.T.Helper()
	all, err := s.NexusVMs(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	known := map[string]string{}
	for _, vm := range all {
		known[vm.ID] = vm.State
	}
	return known
}

// Register registers a VM, the n-th.
func (r *Agent) Register(n int) (vm, instance string) {
	r.T.Helper()
	vm, instance = uuid.NewString(), uuid.NewString()
	if status, answer := r.Send("PUT", "/vmms/"+vm, LatestAPI, VMBody(r.T, 48, instance, n).Text(r.T)); status != 200 {
		r.T.Fatalf("register: %d %s", status, answer)
	}
	return vm, instance
}

// Starts registers a VM and has it run.
func (r *Agent) Starts(n int) (vm, instance string) {
	r.T.Helper()
	vm, instance = r.Register(n)
	if status, now := r.Want(vm, "running"); status != 200 {
		r.T.Fatalf("run: %d %s", status, now)
	}
	r.Eventually(vm, "running")
	return vm, instance
}

// Reason is why a VM is as it is.
func (r *Agent) Reason(vm string) string {
	r.T.Helper()
	_, body := r.Ask("GET", "/vmms?limit=10000", LatestAPI)
	var page struct {
		Items []struct {
			ID     string `json:"propolis_id"`
			Reason string
		}
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		r.T.Fatal(err)
	}
	for _, v := range page.Items {
		if v.ID == vm {
			return v.Reason
		}
	}
	return ""
}

// agentUnit is an agent that a service manager has started: a shell that execs
// the method, so that the process is the agent's.
type agentUnit struct {
	t   *testing.T
	Cmd *exec.Cmd
	Log *bytes.Buffer
}

func (p Programs) Unit(method string, variables ...string) *agentUnit {
	p.T.Helper()
	u := &agentUnit{t: p.T, Cmd: exec.CommandContext(p.T.Context(), "/bin/sh", "-c", "exec "+method), Log: &bytes.Buffer{}}
	u.Cmd.Env = append(append(os.Environ(), "SLEDCTL_HOST=sim:"+p.Dir, "SLEDCTL_CONFIG="), variables...)
	u.Cmd.Stderr = u.Log
	if err := u.Cmd.Start(); err != nil {
		p.T.Fatal(err)
	}
	return u
}

// Ends waits until it has ended by itself.
func (u *agentUnit) Ends() {
	u.t.Helper()
	if err := u.Cmd.Wait(); err != nil {
		u.t.Errorf("the agent ended: %v: %s", err, u.Log)
	}
}

// Agent is an agent of a sled, and a client of it.
type Agent struct {
	T      *testing.T
	Sled   *Operator
	Client *http.Client
	Keeper string // that requests are from; empty: they do not say
	// socket is where it listens.
	Socket string
	Stop   func() Answer // ends the agent, and gives what it came to
}

// StartAgent starts an agent and waits until it answers.
func (s *Operator) StartAgent(t *testing.T, h host.Host) *Agent {
	t.Helper()
	socket := "/agent.sock"
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Lobby.Dial(ctx, socket) }
	if s.Lobby == nil {
		socket = filepath.Join(t.TempDir(), "agent.sock")
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Answer, 1)
	go func() { done <- s.On(ctx, h, "agent --listen unix:"+socket) }()
	transport := &http.Transport{DialContext: dial}
	stop := sync.OnceValue(func() Answer {
		cancel()
		transport.CloseIdleConnections()
		return <-done
	})
	t.Cleanup(func() { stop() })
	r := &Agent{T: t, Sled: s, Socket: socket, Client: &http.Client{Transport: transport}, Stop: stop}
	for {
		if reply, err := r.Client.Get("http://sled/healthz"); err == nil {
			reply.Body.Close()
			return r
		}
		select {
		case a := <-done:
			t.Fatalf("the agent ended: exit %d: %s", a.Exit, a.Errs)
		case <-time.After(time.Millisecond):
		}
	}
}

// Ask sends a request with a version, and gives status and body.
func (r *Agent) Ask(method, path, version string) (int, string) {
	r.T.Helper()
	return r.Send(method, path, version, "")
}

// Send is ask with a body.
func (r *Agent) Send(method, path, version, body string) (int, string) {
	r.T.Helper()
	reply, err := r.send(method, path, version, body)
	if err != nil {
		r.T.Fatal(err)
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		r.T.Fatal(err)
	}
	var failed struct {
		RequestID string `json:"request_id"`
	}
	if reply.StatusCode >= 400 && (json.Unmarshal(data, &failed) != nil || failed.RequestID != reply.Header.Get("x-request-id") || failed.RequestID == "") {
		r.T.Errorf("%s %s: the id of the request is %q, in the body: %s", method, path, reply.Header.Get("x-request-id"), data)
	}
	return reply.StatusCode, string(data)
}

func (r *Agent) send(method, path, version, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(r.T.Context(), method, "http://sled"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if version != "" {
		request.Header.Set("api-version", version)
	}
	if r.Keeper != "" {
		request.Header.Set("sledctl-keeper", r.Keeper)
	}
	return r.Client.Do(request)
}

// State is what the control plane reads of a VM.
func (r *Agent) State(id string) (state string, gen uint64) {
	r.T.Helper()
	status, body := r.Ask("GET", "/vmms/"+id+"/state", "48.0.0")
	var v struct {
		VMM struct {
			State string `json:"state"`
			Gen   uint64 `json:"gen"`
		} `json:"vmm_state"`
	}
	if status != http.StatusOK {
		return fmt.Sprint(status), 0
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		r.T.Fatal(err)
	}
	return v.VMM.State, v.VMM.Gen
}

// Until waits for an event that says so, behind a generation.
func (r *Agent) Until(after uint64, want string) uint64 {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://sled/events?after=%d", after), nil)
	if err != nil {
		r.T.Fatal(err)
	}
	reply, err := r.Client.Do(request)
	if err != nil {
		r.T.Fatal(err)
	}
	defer reply.Body.Close()
	var seen []string
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Name, State string
			Generation  uint64
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			r.T.Fatal(err)
		}
		if seen = append(seen, e.Name+" "+e.State); seen[len(seen)-1] == want {
			return e.Generation
		}
	}
	r.T.Fatalf("no %q came, but %q", want, seen)
	return 0
}

const PlaneAddress = "10.99.0.1:12221"

const LatestAPI = "48.0.0"

// Want asks for a state, and returns the state in the answer.
func (r *Agent) Want(id, state string) (status int, now string) {
	r.T.Helper()
	status, body := r.Send("PUT", "/vmms/"+id+"/state", LatestAPI, wanted(state))
	return status, updated(r.T, body)
}

func wanted(state string) string { return fmt.Sprintf(`{"state":{"type":%q}}`, state) }

// WantOfDying asks an agent for a state that may die before it answers.
func (r *Agent) WantOfDying(id, state string) {
	if reply, err := r.send("PUT", "/vmms/"+id+"/state", LatestAPI, wanted(state)); err == nil {
		reply.Body.Close()
	}
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

// Eventually waits until a VM is in a state.
func (r *Agent) Eventually(id, want string) {
	r.T.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		state, _ := r.State(id)
		if state == want {
			return
		}
		if time.Now().After(deadline) {
			r.T.Fatalf("VM %s is %s, and not yet %s", id, state, want)
		}
	}
}

func (r *Agent) Remove(id string) (status int, now string) {
	r.T.Helper()
	status, body := r.Send("DELETE", "/vmms/"+id, LatestAPI, "")
	return status, updated(r.T, body)
}
