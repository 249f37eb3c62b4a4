package commands_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
)

// agentOf is an agent of a sled, and a client of it.
type agentOf struct {
	t    *testing.T
	sled *sled
	http *http.Client
	// socket is where it listens.
	socket string
	stop   func() answer // ends the agent, and gives what it came to
}

// agent starts an agent and waits until it answers.
func (s *sled) agent(t *testing.T, h host.Host) *agentOf {
	t.Helper()
	socket := "/agent.sock"
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return s.lobby.dial(ctx, socket) }
	if s.lobby == nil {
		socket = filepath.Join(t.TempDir(), "agent.sock")
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan answer, 1)
	go func() { done <- s.on(ctx, h, "agent --listen unix:"+socket) }()
	transport := &http.Transport{DialContext: dial}
	stop := sync.OnceValue(func() answer {
		cancel()
		transport.CloseIdleConnections()
		return <-done
	})
	t.Cleanup(func() { stop() })
	r := &agentOf{t: t, sled: s, socket: socket, http: &http.Client{Transport: transport}, stop: stop}
	for {
		if reply, err := r.http.Get("http://sled/healthz"); err == nil {
			reply.Body.Close()
			return r
		}
		select {
		case a := <-done:
			t.Fatalf("the agent ended: exit %d: %s", a.exit, a.errs)
		case <-time.After(time.Millisecond):
		}
	}
}

// ask sends a request with a version, and gives status and body.
func (r *agentOf) ask(method, path, version string) (int, string) {
	r.t.Helper()
	return r.send(method, path, version, "")
}

// send is ask with a body.
func (r *agentOf) send(method, path, version, body string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, "http://sled"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if version != "" {
		request.Header.Set("api-version", version)
	}
	reply, err := r.http.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var failed struct {
		RequestID string `json:"request_id"`
	}
	if reply.StatusCode >= 400 && (json.Unmarshal(data, &failed) != nil || failed.RequestID != reply.Header.Get("x-request-id") || failed.RequestID == "") {
		r.t.Errorf("%s %s: the id of the request is %q, in the body: %s", method, path, reply.Header.Get("x-request-id"), data)
	}
	return reply.StatusCode, string(data)
}

// state is what the control plane reads of a VM.
func (r *agentOf) state(id string) (state string, gen uint64) {
	r.t.Helper()
	status, body := r.ask("GET", "/vmms/"+id+"/state", "48.0.0")
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
		r.t.Fatal(err)
	}
	return v.VMM.State, v.VMM.Gen
}

// until waits for an event that says so, behind a generation.
func (r *agentOf) until(after uint64, want string) uint64 {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://sled/events?after=%d", after), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	reply, err := r.http.Do(request)
	if err != nil {
		r.t.Fatal(err)
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
			r.t.Fatal(err)
		}
		if seen = append(seen, e.Name+" "+e.State); seen[len(seen)-1] == want {
			return e.Generation
		}
	}
	r.t.Fatalf("no %q came, but %q", want, seen)
	return 0
}

func (s *sled) propolisID(name string) string {
	s.t.Helper()
	return s.value("instance list -H --columns propolis_id")
}

// What the agent says of VMs that commands make and end next to it, and what it
// knows after it was away.
func TestTheAgentSeesWhatCommandsDo(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	s.run("instance ensure web1")
	id := s.propolisID("web1")

	a := s.agent(t, s.Host())
	first := a.until(0, "web1 running")
	if state, gen := a.state(id); state != "running" || gen != first {
		t.Errorf("%s at %d, the event said %d", state, gen, first)
	}
	s.run("instance ensure web2")
	at := a.until(first, "web2 running")
	s.run("instance stop web2")
	at = a.until(at, "web2 destroyed")
	if end := a.stop(); end.exit != 0 {
		t.Errorf("the agent's end: exit %d: %s", end.exit, end.errs)
	}

	// While it is away, a VM ends. It is told, and no generation comes again.
	s.run("instance stop web1")
	b := s.agent(t, s.Host())
	state, gen := b.state(id)
	if state != "destroyed" || gen <= at {
		t.Errorf("web1 is %s at %d, after generation %d", state, gen, at)
	}
}

// There is one agent on a sled.
func TestASecondAgentIsRefused(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	s.agent(t, s.Host())
	if a := s.try("agent --listen unix:" + filepath.Join(t.TempDir(), "s")); a.exit != 6 {
		t.Errorf("exit %d: %s", a.exit, a.errs)
	}
}

// plane is a host from which a control plane can be reached.
type plane struct {
	host.Host
	serve http.Handler
}

const planeAddress = "10.99.0.1:12221"

func (p plane) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address == planeAddress {
		return exchangetest.Connect(p.serve), nil
	}
	return p.Host.Dial(ctx, network, address)
}

// A change rings at the control plane, which may come and ask from within the
// very request; an older one is told the state instead.
func TestAChangeRingsAtTheControlPlane(t *testing.T) {
	for _, older := range []bool{false, true} {
		t.Run(fmt.Sprint("older: ", older), func(t *testing.T) {
			s := newSled(t, small(), tuned+"\n[nexus]\nurl = \"http://"+planeAddress+"\"\n")
			s.run("bootstrap")
			told := make(chan string, 64)
			ready := make(chan *agentOf, 1)
			serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				id := strings.Split(r.URL.Path, "/")[2]
				switch {
				case r.Method == http.MethodPost && older:
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `{"request_id":"r","message":"server does not support this API version: 2.0.0"}`)
					return
				case r.Method == http.MethodPost:
					a := <-ready
					ready <- a
					state, _ := a.state(id)
					told <- state
				default:
					var v struct {
						VMM struct{ State string } `json:"vmm_state"`
					}
					if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
						t.Error(err)
					}
					told <- v.VMM.State
				}
				w.WriteHeader(http.StatusNoContent)
			})
			a := s.agent(t, plane{s.Host(), serve})
			ready <- a
			s.run("instance ensure web1")
			s.run("instance stop web1")
			for last := ""; last != "destroyed"; {
				select {
				case last = <-told:
				case <-time.After(time.Minute):
					t.Fatalf("the last that was told is %q", last)
				}
			}
		})
	}
}
