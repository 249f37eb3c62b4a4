package watch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// pretended is a Propolis and the zone that it is in.
type pretended struct {
	mu     sync.Mutex
	states []string // generation n is the n-th
	lost   bool     // it has restarted without its machine
	silent bool     // it takes connections and says nothing
	away   error    // nobody can be reached
	zone   zone.State
	zones  error
	change chan struct{}
}

func (p *pretended) do(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.change)
	p.change = make(chan struct{})
}

func (p *pretended) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Gen int }
	_ = json.NewDecoder(r.Body).Decode(&asked)
	_, _ = io.Copy(io.Discard, r.Body)
	for {
		p.mu.Lock()
		states, lost, silent, changed := p.states, p.lost, p.silent, p.change
		p.mu.Unlock()
		switch {
		case silent:
		case lost:
			w.WriteHeader(http.StatusFailedDependency)
			_, _ = io.WriteString(w, `{"request_id":"r","error_code":"NoInstance","message":"no instance"}`)
			return
		case r.URL.Path == "/instance":
			_, _ = io.WriteString(w, `{"instance":{"properties":{"id":"x"},"state":"Running"}}`)
			return
		case asked.Gen <= len(states):
			_ = json.NewEncoder(w).Encode(map[string]any{"gen": len(states), "state": states[len(states)-1], "migration": map[string]any{}})
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// What a monitor reports, however the VM, its Propolis and its
// zone, and whether it ends.
// monitored is an instance whose Propolis has a static address.
func monitored() (instance.Settings, record.Record) {
	s := instance.Settings{Propolis: layout.Propolis{Port: 12400, FMRI: "svc:/site/sledctl/propolis-server:default"}}
	return s, record.Record{
		ID: "8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e5f", Name: "web1", Wanted: record.WantedRunning,
		Spec: record.Spec{Address: record.Address{Mode: record.Static, Prefix: netip.MustParsePrefix("10.77.0.5/24")}},
		Incarnation: &record.Incarnation{
			PropolisID: "8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e60", Zone: "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e60",
			Zonepath: "/zone/web1", Control: record.VNIC{Name: "vnic_propolis0"}, Ensured: true,
		},
	}
}

func TestAMonitorTells(t *testing.T) {
	say := func(states ...string) func(*pretended) {
		return func(p *pretended) { p.states = append(p.states, states...) }
	}
	for name, c := range map[string]struct {
		acts []func(*pretended)
		want []string
		ends bool
	}{
		"states":                      {[]func(*pretended){say("Starting"), say("Running")}, []string{"starting", "running"}, false},
		"the last state only":         {[]func(*pretended){say("Rebooting", "Stopping")}, []string{"stopping"}, false},
		"the end":                     {[]func(*pretended){say("Stopping"), say("Stopped"), say("Destroyed")}, []string{"stopping", "stopped", "destroyed"}, true},
		"an end that nobody saw":      {[]func(*pretended){say("Stopping"), func(p *pretended) { p.away, p.zone = io.EOF, "" }}, []string{"stopping", "destroyed"}, true},
		"a Propolis that restarted":   {[]func(*pretended){func(p *pretended) { p.lost = true }}, []string{"failed: Propolis restarted and lost the VM"}, true},
		"a zone that was halted":      {[]func(*pretended){func(p *pretended) { p.away, p.zone = io.EOF, zone.Installed }}, []string{"failed: its zone is installed, not running"}, true},
		"a zone that vanished":        {[]func(*pretended){func(p *pretended) { p.away, p.zone = io.EOF, "" }}, []string{"failed: its zone ZONE is gone"}, true},
		"a Propolis that hangs":       {[]func(*pretended){func(p *pretended) { p.silent = true }, func(p *pretended) { p.silent = false }}, []string{"running: Propolis does not answer", "running"}, false},
		"a Propolis that is away":     {[]func(*pretended){func(p *pretended) { p.away = errors.New("refused") }, func(p *pretended) { p.away = nil }}, []string{"running: Propolis cannot be reached: refused", "running"}, false},
		"zones that cannot be listed": {[]func(*pretended){func(p *pretended) { p.away, p.zones = io.EOF, errors.New("zoneadm: hangs") }}, []string{"running: cannot determine whether its zone runs: zoneadm: hangs"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, r := monitored()
				p := &pretended{states: []string{"Running"}, zone: zone.Running, change: make(chan struct{})}
				h := exchangetest.Line{Serve: p, Refuse: func() error { p.mu.Lock(); defer p.mu.Unlock(); return p.away }}
				zones := func(context.Context) ([]zone.Zone, error) {
					p.mu.Lock()
					defer p.mu.Unlock()
					if p.zone == "" {
						return nil, p.zones
					}
					return []zone.Zone{{Name: r.Incarnation.Zone, State: p.zone}}, p.zones
				}
				var told []string
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					watch := Monitor(s, h, r, zones, func(o Observation) {
						text := o.State
						if o.Reason != "" {
							text += ": " + strings.ReplaceAll(o.Reason, r.Incarnation.Zone, "ZONE")
						}
						told = append(told, text)
					})
					watch(ctx)
				}()
				synctest.Wait()
				for _, act := range c.acts {
					p.do(func() { act(p) })
					time.Sleep(2*quiet + time.Second)
				}
				synctest.Wait()
				ended := false
				select {
				case <-done:
					ended = true
				default:
				}
				cancel()
				<-done
				if want := append([]string{"running"}, c.want...); !slices.Equal(told, want) || ended != c.ends {
					t.Errorf("told %q, ended: %v\nwant %q, %v", told, ended, want, c.ends)
				}
			})
		})
	}
}

// A monitor whose machine says nothing for months holds little meanwhile: there may
// be ten thousand.
func TestAMonitorThatWaitsTakesLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("with a race detector, all takes more")
	}
	const monitors, most = 500, 7 << 10
	s, r := monitored()
	var mute muteLine
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	before := inUse()
	for range monitors {
		watch := Monitor(s, &mute, r, nil, nil)
		group.Go(func() { watch(ctx) })
	}
	for mute.heard.Load() < monitors {
		time.Sleep(time.Millisecond)
	}
	each := (inUse() - before) / monitors
	cancel()
	group.Wait()
	if t.Logf("%d bytes each", each); each > most {
		t.Errorf("%d bytes each, want at most %d", each, most)
	}
}

// inUse is the memory of what is alive, in bytes: heap and stacks.
func inUse() int {
	runtime.GC()
	runtime.GC() // which shrinks what the first one has found to be large
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// muteLine is a host that has nothing but servers that never answer.
type muteLine struct {
	host.Host
	heard atomic.Int64 // that are waited for
}

func (l *muteLine) Dial(context.Context, string, string) (net.Conn, error) {
	return &muteConn{line: l, closed: make(chan struct{})}, nil
}

type muteConn struct {
	net.Conn
	line   *muteLine
	closed chan struct{}
	once   sync.Once
}

func (c *muteConn) Read([]byte) (int, error) {
	c.line.heard.Add(1)
	<-c.closed
	return 0, net.ErrClosed
}
func (c *muteConn) Write(p []byte) (int, error)     { return len(p), nil }
func (c *muteConn) SetReadDeadline(time.Time) error { return nil }
func (c *muteConn) Close() error                    { c.once.Do(func() { close(c.closed) }); return nil }
