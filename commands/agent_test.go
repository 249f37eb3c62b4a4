package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
	"github.com/sledctl/sledctl/test/sledtest"
)

func propolisID(s *sledtest.Operator, name string) string {
	s.T.Helper()
	return s.Value("instance list -H --columns propolis_id")
}

// The agent reports VMs that commands create and end next to it, also those that
// changed while it did not run.
func TestTheAgentSeesWhatCommandsDo(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	id := propolisID(s, "web1")

	a := s.StartAgent(t, s.Host())
	first := a.Until(0, "web1 running")
	if state, gen := a.State(id); state != "running" || gen != first {
		t.Errorf("%s at %d, the event said %d", state, gen, first)
	}
	s.Run("instance ensure web2")
	at := a.Until(first, "web2 running")
	s.Run("instance stop web2")
	at = a.Until(at, "web2 destroyed")
	if end := a.Stop(); end.Exit != 0 {
		t.Errorf("the agent's end: exit %d: %s", end.Exit, end.Errs)
	}

	// While no agent runs, a VM ends. The next one reports it, and reuses no generation.
	s.Run("instance stop web1")
	b := s.StartAgent(t, s.Host())
	state, gen := b.State(id)
	if state != "destroyed" || gen <= at {
		t.Errorf("web1 is %s at %d, after generation %d", state, gen, at)
	}
}

// There is one agent on a sled.
func TestASecondAgentIsRefused(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.StartAgent(t, s.Host())
	if a := s.Try("agent --listen unix:" + filepath.Join(t.TempDir(), "s")); a.Exit != 6 {
		t.Errorf("exit %d: %s", a.Exit, a.Errs)
	}
}

// plane is a host from which a control plane can be reached.
type plane struct {
	host.Host
	serve http.Handler
}

func (p plane) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address == sledtest.PlaneAddress {
		return exchangetest.Connect(p.serve), nil
	}
	return p.Host.Dial(ctx, network, address)
}

// A change rings at the control plane, which may come and ask from within the
// very request; an older one is told the state instead.
func TestAChangeRingsAtTheControlPlane(t *testing.T) {
	for _, older := range []bool{false, true} {
		t.Run(fmt.Sprint("older: ", older), func(t *testing.T) {
			s := sledtest.New(t, sledtest.Small(), sledtest.TunedConfig+"\n[nexus]\nurl = \"http://"+sledtest.PlaneAddress+"\"\n")
			s.Run("bootstrap")
			told := make(chan string, 64)
			ready := make(chan *sledtest.Agent, 1)
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
					state, _ := a.State(id)
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
			a := s.StartAgent(t, plane{s.Host(), serve})
			ready <- a
			s.Run("instance ensure web1")
			s.Run("instance stop web1")
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
