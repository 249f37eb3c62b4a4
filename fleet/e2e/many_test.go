package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/node"
	"github.com/sledctl/sledctl/fleet/plane"
	"github.com/sledctl/sledctl/fleet/simulated"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

// What many sleds are held to.
const (
	allReady  = 30 * time.Second
	renewing  = 60 * time.Second
	renewalAt = 100 * time.Millisecond // the 99th of 100 renewals
	allPlaced = 10 * time.Minute
)

// number is what a variable says, or what is played without it.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s: want a number, or 0 for none", variable, text)
	}
	return n
}

// alone reports whether this test has the machine for itself: next to others, it is slow now and then.
func alone() bool { return os.Getenv("SLEDCTL_FLEET_SLEDS") != "" }

// Many sleds of one process, each with the real agent and node: all become Ready, and renew their
// leases. Then VMs are placed on them.
func TestManySleds(t *testing.T) {
	t.Parallel()
	count := number(t, "SLEDCTL_FLEET_SLEDS", 50)
	f := beginWith(t, map[plane.Server][]string{plane.APIServer: {"GOGC=200"}}) // a tenth of its time is spent on garbage otherwise
	f.Install()                                                                 // as in production
	m := f.many(count)
	begun := time.Now()
	m.join()
	m.until("all sleds are Ready", 10*allReady, m.ready)
	took := time.Since(begun)
	t.Logf("%d sleds are Ready after %v", count, took)
	if took > allReady {
		t.Errorf("that took more than %v", allReady)
	}
	m.renewals(min(renewing, time.Duration(count)*200*time.Millisecond))
	if vms := number(t, "SLEDCTL_FLEET_VMS", 2*count); vms > 0 {
		m.place(vms)
		m.rests(min(renewing/2, time.Duration(count)*100*time.Millisecond))
	}
}

// many are sleds of one process.
type many struct {
	*Fleet
	count  int
	client client.Client
	sleds  []*simulated.Sled
	warned atomic.Int64 // what nodes have warned of
	timed  timed
	ctx    context.Context
}

// many prepares sleds, as an operator has before they join: one is set up, and the others are
// copies of its machine.
func (f *Fleet) many(count int) *many {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	f.t.Cleanup(func() { stop(); parts.Wait() })
	m := &many{Fleet: f, count: count, ctx: ctx}
	// What all of them have is looked at by each collection, which takes seconds of both cores: a
	// sled has a process of its own, and waits for none but its own.
	percent, limit := debug.SetGCPercent(800), debug.SetMemoryLimit(12<<30)
	f.t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
	config, err := f.Config("admin", "system:masters")
	f.ok(err)
	config.QPS, config.Burst = 2000, 4000
	m.client, err = client.New(config, client.Options{Scheme: f.scheme})
	f.ok(err)
	log := slog.New(warnings{f.log.Handler(), &m.warned})
	machine := sim.New(sim.Options{Seed: 1, M2: 1, U2: 1}, hosttest.Files)
	f.ok((&simulated.Sled{Name: "first", Machine: machine, Host: machine.Host(), Log: log}).Prepare(f.t.Context(), 1))
	before := resident()
	begun := time.Now()
	for n := range count {
		s := &simulated.Sled{Name: fmt.Sprintf("sled%d", n+1), Machine: machine.Clone(), Dir: filepath.Join(f.dir, strconv.Itoa(n+1)), Log: log}
		s.Host = s.Machine.Host()
		f.ok(os.Mkdir(s.Dir, 0o700))
		m.sleds = append(m.sleds, s)
		parts.Go(func() { f.ended(ctx, s, "agent", s.Agent(ctx)) })
	}
	for _, s := range m.sleds {
		f.ok(s.Answers(f.t.Context()))
	}
	f.t.Logf("%d agents answer after %v, with %d KiB each", count, time.Since(begun), (resident()-before)/count)
	return m
}

func (f *Fleet) ended(ctx context.Context, s *simulated.Sled, part string, err error) {
	if err != nil && ctx.Err() == nil {
		f.t.Errorf("the %s of sled %s has ended: %v", part, s.Name, err)
	}
}

// join starts the nodes of all sleds.
func (m *many) join() {
	m.t.Helper()
	var parts sync.WaitGroup
	ctx, stop := context.WithCancel(m.ctx)
	m.t.Cleanup(func() { stop(); parts.Wait() })
	for _, s := range m.sleds {
		config, err := m.Config("system:node:"+s.Name, "system:nodes")
		m.ok(err)
		config.Wrap(m.timed.through)
		parts.Go(func() {
			m.ended(ctx, s, "node", s.Node(ctx, config, m.scheme, node.Pace{Renew: 5 * time.Second, Fence: 15 * time.Second}))
		})
	}
}

func (m *many) until(what string, within time.Duration, is func() bool) {
	m.t.Helper()
	for begun := time.Now(); !is(); time.Sleep(250 * time.Millisecond) {
		if time.Since(begun) > within {
			m.t.Fatalf("not within %v: %s", within, what)
		}
	}
}

func (m *many) ready() bool {
	var nodes corev1.NodeList
	m.ok(m.client.List(m.t.Context(), &nodes))
	ready := 0
	for _, n := range nodes.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready == m.count
}

// renewals has the sleds renew their leases for a while, without an error.
func (m *many) renewals(during time.Duration) {
	m.t.Helper()
	time.Sleep(10 * time.Second) // until what the start has left to do is done
	warned := m.warned.Load()
	m.timed.reset()
	m.rests(during)
	took := m.timed.reset()
	if warned = m.warned.Load() - warned; warned > 0 {
		m.t.Errorf("nodes have warned %d times in %v: see %s/sleds.log", warned, during, m.dir)
	}
	slices.Sort(took)
	if want := m.count * int(during/(5*time.Second)) * 9 / 10; len(took) < want {
		m.t.Fatalf("%d renewals in %v, not %d", len(took), during, want)
	}
	at := func(of100 int) time.Duration { return took[len(took)*of100/100] }
	m.t.Logf("%d renewals in %v: median %v, p99 %v, at most %v", len(took), during, at(50), at(99), took[len(took)-1])
	if alone() && at(99) > renewalAt {
		m.t.Errorf("the 99th of 100 renewals takes %v, more than %v", at(99), renewalAt)
	}
}

// rests logs what sleds take to which nothing is done.
func (m *many) rests(during time.Duration) {
	m.t.Helper()
	cpu, asked := m.spent(), m.requests()
	time.Sleep(during)
	used := m.spent().since(cpu)
	m.t.Logf("in %v: %s", during, m.per(m.count, asked))
	m.t.Logf("this process has %d MiB, %d KiB per sled; processor time per sled and second: %s", resident()>>10, resident()/m.count,
		used.per(during.Seconds()*float64(m.count)))
}

// apply creates VMs, several at once.
func (m *many) apply(count int) {
	m.t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for n := next.Add(1); n <= int64(count); n = next.Add(1) {
				if err := m.client.Create(m.t.Context(), &api.VirtualMachine{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("vm%d", n)},
					Spec:       api.VirtualMachineSpec{CPUs: 1, Memory: resource.MustParse("1Gi")},
				}); err != nil {
					m.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// place has as many VMs run.
func (m *many) place(count int) {
	m.t.Helper()
	debug.SetGCPercent(200) // a VM that starts leaves much garbage, and memory in pieces
	begun, cpu, asked := time.Now(), m.spent(), m.requests()
	m.apply(count)
	m.t.Logf("%d VMs are applied after %v", count, time.Since(begun))
	last, said, placed := 0, time.Now(), time.Duration(0)
	m.until("all VMs are Running", 2*allPlaced, func() bool {
		time.Sleep(min(time.Duration(count)*time.Millisecond, 5*time.Second)) // so that what looks takes little of the time
		var vms api.VirtualMachineList
		m.ok(m.client.List(m.t.Context(), &vms))
		running := 0
		for _, vm := range vms.Items {
			if vm.Status.Phase == api.PhaseRunning {
				running++
			}
		}
		bound := count
		if placed == 0 {
			if bound = m.requests()[binding] - asked[binding]; bound >= count {
				placed = time.Since(begun)
				m.t.Logf("%d VMs are placed on %d sleds after %v", count, m.count, placed)
			}
		}
		if time.Since(said) > 20*time.Second {
			m.t.Logf("%v: %d are placed, %d run, %.1f per second", time.Since(begun).Round(time.Second), bound, running, float64(running-last)/time.Since(said).Seconds())
			last, said = running, time.Now()
		}
		return running == count
	})
	took, used := time.Since(begun), m.spent().since(cpu)
	m.t.Logf("%d VMs are Running on %d sleds after %v; this process has %d MiB; processor time per VM: %s", count, m.count, took, resident()>>10, used.per(float64(count)))
	m.t.Log(m.per(count, asked))
	if took > allPlaced {
		m.t.Errorf("that took more than %v", allPlaced)
	}
}

// binding is the request by which the scheduler places a VM.
const binding = "POST pods binding"

// warnings counts what is warned of.
type warnings struct {
	slog.Handler
	n *atomic.Int64
}

// Handle is part of slog.Handler.
func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.n.Add(1)
	}
	return w.Handler.Handle(ctx, r)
}

// WithAttrs is part of slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs), w.n}
}

// timed has how long requests took that renew a lease.
type timed struct {
	mu   sync.Mutex
	took []time.Duration
}

func (t *timed) reset() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := t.took
	t.took = nil
	return took
}

// through is a transport that takes the time.
func (t *timed) through(next http.RoundTripper) http.RoundTripper { return &timing{next, t} }

type timing struct {
	next http.RoundTripper
	all  *timed
}

// RoundTrip is part of http.RoundTripper.
func (t *timing) RoundTrip(r *http.Request) (*http.Response, error) {
	begun := time.Now()
	reply, err := t.next.RoundTrip(r)
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/leases/") {
		t.all.mu.Lock()
		t.all.took = append(t.all.took, time.Since(begun))
		t.all.mu.Unlock()
	}
	return reply, err
}

// resident is the memory of this process in KiB, without garbage.
func resident() int {
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); words[0] == "VmRSS:" {
			kib, _ := strconv.Atoi(words[1])
			return kib
		}
	}
	return 0
}
