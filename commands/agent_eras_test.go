package commands_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// The table of docs/nexus.md: how agents of each mode notify control planes of each
// era. The agent warns of the notifications that fail, and counts them; the control
// plane learns of these changes when it sweeps.
func TestAgentsAndControlPlanesOfTwoReleases(t *testing.T) {
	const rings, calls = "POST", "PUT"
	for _, c := range []struct {
		mode, era string
		// ways are the requests of the agent, and what they were answered, for the
		// first thing that it tells, and for one that comes more than ten minutes
		// later. For what comes between them it is the last one.
		ways []string
		by   string // what the control plane learns it by
		asks bool   // it does by asking
	}{
		{"upcall", "upcall", []string{calls + " 204"}, "upcall", false},
		{"upcall", "both", []string{calls + " 204"}, "upcall", true},
		{"upcall", "doorbell", []string{calls + " 404"}, "sweep", true},
		{"auto", "upcall", []string{rings + " 400", calls + " 204"}, "upcall", false},
		{"auto", "both", []string{rings + " 204"}, "doorbell", true},
		{"auto", "doorbell", []string{rings + " 204"}, "doorbell", true},
		{"doorbell", "upcall", []string{rings + " 400"}, "sweep", true},
		{"doorbell", "both", []string{rings + " 204"}, "doorbell", true},
		{"doorbell", "doorbell", []string{rings + " 204"}, "doorbell", true},
	} {
		t.Run(c.mode+" and "+c.era, func(t *testing.T) {
			sledtest.Sample(t, c.mode+c.era)
			synctest.Test(t, func(t *testing.T) {
				s := sledtest.NearNexus(t, sim.NexusOptions{Era: c.era}, fmt.Sprintf("mode = %q\n", c.mode))
				s.Run("instance ensure web1")
				id := propolisID(s, "web1")
				faults(s, func(tx *world.Tx) { // as one that has placed it there does
					tx.State.Nexus.VMs[id] = &world.NexusVM{Sled: "unix:/agent.sock", State: "starting", Gen: 1}
				})
				told, asked := &tellings{}, &atomic.Int64{}
				s.Agent = func(ctx context.Context, name string) (net.Conn, error) { asked.Add(1); return s.Lobby.Dial(ctx, name) }
				a := s.StartAgent(t, host.Trace(s.Host(), told.note))
				tells := func(what string, ways []string) {
					t.Helper()
					time.Sleep(5 * time.Second)
					if got := told.take(); !slices.Equal(slices.Compact(got), ways) {
						t.Errorf("%s: it was told by %q, want %q", what, got, ways)
					}
				}
				learns := func(state string) {
					t.Helper()
					tells(state, c.ways)
					last := knownBy(s, id)
					if c.by == "sweep" {
						if last.State == state {
							t.Errorf("%s: it was told nevertheless, by a %s", state, last.By)
						}
						if err := s.SweepNexus(t.Context()); err != nil {
							t.Fatal(err)
						}
						last = knownBy(s, id)
					}
					if last.State != state || last.By != c.by || last.Check != "success" {
						t.Errorf("the control plane knows it as %s by a %s: %s, want %s by a %s", last.State, last.By, last.Check, state, c.by)
					}
				}
				learns("running")
				time.Sleep(time.Minute)
				s.Run("instance reboot web1")
				tells("a reset", c.ways[len(c.ways)-1:])
				time.Sleep(11 * time.Minute)
				told.take()
				s.Run("instance stop web1")
				learns("destroyed")
				if n := asked.Load(); n > 0 != c.asks {
					t.Errorf("the control plane has asked %d times", n)
				}

				_, figures := a.Ask("GET", "/metrics", "")
				refused := !strings.Contains(figures, `sledctl_notifications_total{result="rejected"} 0`)
				end := a.Stop()
				warned := strings.Contains(end.Errs, `level=WARN msg="the control plane was not notified"`)
				if fails := c.by == "sweep"; refused != fails || warned != fails {
					t.Errorf("refused: %v, warned of: %v\n%s", refused, warned, end.Errs)
				}
			})
		})
	}
}

// tellings are requests by which an agent tells a control plane.
type tellings struct {
	mu  sync.Mutex
	all []string
}

func (s *tellings) note(e host.Event) {
	method, path, _ := strings.Cut(e.Line.Text, " ")
	if e.Line.Kind != host.LineRequest || !strings.HasPrefix(path, "/vmms/") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, fmt.Sprint(method, " ", e.Status))
}

func (s *tellings) take() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.all = s.all, nil
	return all
}

// knownBy is what the control plane knows of a VM, and by what.
func knownBy(s *sledtest.Operator, id string) sim.NexusVM {
	s.T.Helper()
	all, err := s.NexusVMs(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	i := slices.IndexFunc(all, func(vm sim.NexusVM) bool { return vm.ID == id })
	if i < 0 {
		return sim.NexusVM{}
	}
	return all[i]
}
