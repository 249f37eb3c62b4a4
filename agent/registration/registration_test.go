package registration

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
	"github.com/sledctl/sledctl/peer/nexus"
)

var id = uuid.MustParse("5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11")

func sled() nexus.Sled {
	return nexus.Sled{
		Address: "[fd00:1122:3344:101::1]:12345", RepoDepotPort: 12348, Role: nexus.RoleGimlet, Baseboard: nexus.Baseboard{Part: "913-0000019", Serial: "BRM42220014", Revision: 6},
		Threads: 128, RAM: 1 << 40, Reservoir: 1 << 39, CPUFamily: "amd_milan",
	}
}

func TestWhatIsSent(t *testing.T) {
	at := func(generation uint64) nexus.Sled { s := sled(); s.Generation = generation; return s }
	grown := at(7)
	grown.Reservoir++
	gone := at(7)
	gone.Decommissioned = true
	for name, c := range map[string]struct {
		known nexus.Sled
		found bool
		want  nexus.Sled
		sent  bool
		err   error
	}{
		"nothing is known":       {nexus.Sled{}, false, at(1), true, nil},
		"it is known as it is":   {at(7), true, nexus.Sled{}, false, nil},
		"it is known otherwise":  {grown, true, at(8), true, nil},
		"it is taken out of use": {gone, true, nexus.Sled{}, false, ErrDecommissioned},
	} {
		next, sent, err := decide(c.known, c.found, sled())
		if next != c.want || sent != c.sent || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v, %v", name, next, sent, err)
		}
	}
}

// plane is a control plane that keeps one sled, and fails as often as it is told to.
type plane struct {
	mu    sync.Mutex
	known *nexus.Sled
	fails int
	sent  []nexus.Sled
}

func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.fails > 0:
		p.fails--
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"request_id":"r","error_code":"ServiceNotAvailable","message":"Service Unavailable"}`)
	case r.Method == http.MethodGet && p.known == nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"request_id":"r","error_code":"ObjectNotFound","message":"not found: sled"}`)
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(p.known)
	default:
		var is nexus.Sled
		if err := json.NewDecoder(r.Body).Decode(&is); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.known, p.sent = &is, append(p.sent, is)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (p *plane) change(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
}

// The control plane learns of the sled when it can, of each change, and again where it has
// forgotten it; it asks nothing more of a sled that it has decommissioned.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plane{fails: 3}
		var mu sync.Mutex
		is, warned := sled(), []string{}
		r := &Registration{Settings: Settings{
			ID: id, Client: nexus.Client{Host: exchangetest.Line{Serve: p}, URL: &url.URL{Scheme: "http", Host: "nexus:12221"}},
			Sled: func(context.Context) (nexus.Sled, error) { mu.Lock(); defer mu.Unlock(); return is, nil },
			Draw: func() float64 { return 0.5 }, Log: func(string, ...any) {}, Warn: func(err error) { mu.Lock(); defer mu.Unlock(); warned = append(warned, err.Error()) },
		}}
		ended := make(chan struct{})
		go func() { r.Run(t.Context()); close(ended) }()
		step := func(what string, wait time.Duration, sent int, generation uint64, known bool) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			p.change(func() {
				if len(p.sent) != sent || sent > 0 && p.sent[sent-1].Generation != generation || r.Known() != known {
					t.Errorf("%s: sent %+v, known %v", what, p.sent, r.Known())
				}
			})
		}
		step("it fails at first", 500*time.Millisecond, 0, 0, false)
		step("then it succeeds", 2*time.Second, 1, 1, true)
		step("nothing changes", 10*time.Minute, 1, 1, true)
		mu.Lock()
		is.Reservoir = 1 << 38
		mu.Unlock()
		step("the reservoir changes", lookEvery, 2, 2, true)
		p.change(func() { p.known = nil })
		step("it is forgotten", lookEvery, 3, 1, true)
		p.change(func() { p.known.Decommissioned = true })
		<-ended
		step("it is decommissioned", time.Hour, 3, 1, false)
		if len(warned) != 4 || !strings.Contains(warned[3], "decommissioned") {
			t.Errorf("%q", warned)
		}
	})
}

// What is sent, and what is asked for, is as Nexus' internal API has it.
func TestConforms(t *testing.T) {
	doc := dropshottest.Published(t, "nexus-internal-1.0.0.json")
	asked := 0
	l := exchangetest.Line{Serve: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if err := doc.Request(r); err != nil || r.Header.Get("api-version") != doc.Info.Version {
			t.Errorf("%s %s: version %q: %v", r.Method, r.URL, r.Header.Get("api-version"), err)
		}
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"request_id":"r","error_code":"ObjectNotFound","message":"not found: sled"}`)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})}
	r := Registration{Settings: Settings{
		ID: id, Client: nexus.Client{Host: l, URL: &url.URL{Scheme: "http", Host: "nexus:12221"}}, Log: func(string, ...any) {},
		Sled: func(context.Context) (nexus.Sled, error) { return sled(), nil },
	}}
	if err := r.once(t.Context()); err != nil || asked != 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// Wherever an agent is killed, the next one makes the sled known as it is, once: where the answer to
// the first was lost, nothing is sent again, and the generation does not rise.
func TestAnAgentThatIsKilledWhileItRegisters(t *testing.T) {
	for known, last := range map[*nexus.Sled]uint64{nil: 1, {Generation: 7}: 8} {
		for _, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
			killed := 0
			for n := 1; killed == n-1; n++ {
				p := &plane{known: known}
				line := exchangetest.Line{Serve: p}
				attempt := func(h host.Host) error {
					r := Registration{Settings: Settings{
						ID: id, Client: nexus.Client{Host: h, URL: &url.URL{Scheme: "http", Host: "nexus:12221"}}, Log: func(string, ...any) {},
						Sled: func(context.Context) (nexus.Sled, error) { return sled(), nil },
					}}
					return r.once(t.Context())
				}
				if err := attempt(host.Crash(line, n, mode)); err != nil {
					killed++
				}
				if err := attempt(line); err != nil {
					t.Fatalf("%v at %d: %v", mode, n, err)
				}
				if len(p.sent) != 1 || p.known.Generation != last {
					t.Errorf("%v at %d: sent %+v, want one of generation %d", mode, n, p.sent, last)
				}
			}
			if killed == 0 {
				t.Errorf("%v: it is killed nowhere", mode)
			}
		}
	}
}
