package agent

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/figures"
)

// meter counts what is not known otherwise, for GET /metrics.
type meter struct {
	requests sync.Map      // request -> *atomic.Uint64
	streams  atomic.Int64  // of events, that are open
	doubts   atomic.Uint64 // times that a Propolis was found not to answer
	// more are the figures of all others, and host those that the host is asked for.
	more func(*figures.Page)
	host func(context.Context, *figures.Page)
}

// request is what requests are counted by.
type request struct {
	endpoint, method string
	status           int
}

// count counts a request that was answered. Whatever has no endpoint counts as
// one.
func (m *meter) count(e endpoint, method string, status int) {
	if m == nil {
		return
	}
	r := request{cmp.Or(e.path, "none"), method, status}
	if e.path == "" {
		r.method = "any" // what a client chose is no label
	}
	n, ok := m.requests.Load(r)
	if !ok {
		n, _ = m.requests.LoadOrStore(r, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}

// metrics answers in Prometheus' text format 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats).
func (s *server) metrics(w http.ResponseWriter, c call) *api.Error {
	var out figures.Page
	states := map[api.VMState]int{}
	for _, state := range []api.VMState{api.Starting, api.Running, api.Stopping, api.Rebooting, api.Migrating, api.Failed, api.Destroyed} {
		states[state] = 0
	}
	for _, v := range s.table.List() {
		states[v.State]++
	}
	out.Family("sledctl_vms", "gauge", "VMs by state; failed and destroyed ones are kept until the control plane has read them.")
	for _, state := range slices.Sorted(maps.Keys(states)) {
		out.Sample("sledctl_vms", float64(states[state]), "state", string(state))
	}
	s.meter.write(&out)
	if s.views != nil {
		s.measureSled(c.Context(), &out)
	}
	if s.meter != nil && s.meter.host != nil {
		s.meter.host(c.Context(), &out)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(out.String()))
	return nil
}

func (m *meter) write(out *figures.Page) {
	counts := map[request]uint64{}
	m.requests.Range(func(k, n any) bool { counts[k.(request)] = n.(*atomic.Uint64).Load(); return true })
	out.Family("sledctl_http_requests_total", "counter", "Requests that were answered, by endpoint, method and status.")
	for _, r := range slices.SortedFunc(maps.Keys(counts), func(a, b request) int {
		return cmp.Or(cmp.Compare(a.endpoint, b.endpoint), cmp.Compare(a.method, b.method), cmp.Compare(a.status, b.status))
	}) {
		out.Sample("sledctl_http_requests_total", float64(counts[r]), "endpoint", r.endpoint, "method", r.method, "status", strconv.Itoa(r.status))
	}
	out.One("sledctl_event_streams", "gauge", "Streams of events that are open.", float64(m.streams.Load()))
	out.One("sledctl_propolis_unreachable_total", "counter", "Times that the Propolis of a VM was found not to answer, its zone running.", float64(m.doubts.Load()))
	if m.more != nil {
		m.more(out)
	}
}

// measure gives the figures of the agent's other parts.
func (a *agent) measure(out *figures.Page) {
	a.mu.Lock()
	monitors := 0
	for _, w := range a.watched {
		if w.cancel != nil {
			monitors++
		}
	}
	a.mu.Unlock()
	out.One("sledctl_monitors", "gauge", "VMs whose Propolis is watched.", float64(monitors))
	out.One("sledctl_operations_running", "gauge", "VMs to which something is being done because the control plane asked for it.", float64(a.work.running()))
	if a.Registration != nil {
		out.One("sledctl_registered", "gauge", "Whether the control plane knew the sled as it is when it was last asked: 1, else 0.", figure(a.Registration.Known()))
	}
	b := a.notifier
	delivered, failed, rejected := float64(b.delivered.Load()), float64(b.failed.Load()), float64(b.rejected.Load())
	out.Family("sledctl_notifications_total", "counter", "Attempts to notify the control plane: delivered, failed (retried), rejected.")
	out.Sample("sledctl_notifications_total", delivered, "result", "delivered")
	out.Sample("sledctl_notifications_total", failed, "result", "failed")
	out.Sample("sledctl_notifications_total", rejected, "result", "rejected")
	pending, age := b.pending(time.Now())
	out.One("sledctl_notifications_pending", "gauge", "VMs with changes that the control plane has not received.", float64(pending))
	out.One("sledctl_notifications_pending_age_seconds", "gauge", "Age of the oldest change that the control plane has not received.", age.Seconds())

	// The same under the names that these figures had before.
	out.Family("sledctl_doorbells_total", "counter", "Earlier name of sledctl_notifications_total.")
	out.Sample("sledctl_doorbells_total", delivered, "result", "heard")
	out.Sample("sledctl_doorbells_total", failed, "result", "lost")
	out.Sample("sledctl_doorbells_total", rejected, "result", "refused")
	out.One("sledctl_doorbells_pending", "gauge", "Earlier name of sledctl_notifications_pending.", float64(pending))
	out.One("sledctl_doorbells_pending_age_seconds", "gauge", "Earlier name of sledctl_notifications_pending_age_seconds.", age.Seconds())
}

// running is to how many VMs something is being done.
func (w *work) running() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lanes {
		if l.job != nil {
			n++
		}
	}
	return n
}
