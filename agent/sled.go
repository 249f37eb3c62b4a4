package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/figures"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/kstat"
	"github.com/sledctl/sledctl/sled/doctor"
	"github.com/sledctl/sledctl/sled/events"
	"github.com/sledctl/sledctl/sled/instance/keeper"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/localdisk"
	"github.com/sledctl/sledctl/sled/reap"
	"github.com/sledctl/sledctl/sled/status"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/zone"
)

// The sled as status and events show it.

// What those who ask for it cost at most: how often the sled is looked at, and how many
// operations are read.
const (
	lookEvery       = 2 * time.Second
	usualOperations = 50
	maxOperations   = 1000
	reapEvery       = time.Minute // how often it is judged what reap would remove
	// scrapeWait is how long a scrape waits for the sled; Prometheus itself waits ten seconds.
	scrapeWait = 5 * time.Second
)

// views are the looks at the sled that all clients share.
type views struct {
	status     shared[api.Status]
	operations shared[api.Events]
	usage      shared[kstat.Usage]
	zones      shared[[]zone.Zone]
	verdicts   shared[map[reap.Verdict]int]
	inventory  shared[api.Inventory]
	names      shared[api.Identifiers]
	capacity   shared[api.Capacity]
}

func (s Settings) views(ctx context.Context, group *sync.WaitGroup) *views {
	return &views{
		inventory: shared[api.Inventory]{look: s.Inventory, every: lookEvery, ctx: ctx, group: group},
		names:     shared[api.Identifiers]{look: s.Identifiers, every: lookEvery, ctx: ctx, group: group},
		status:    shared[api.Status]{look: s.Status, every: lookEvery, ctx: ctx, group: group},
		operations: shared[api.Events]{every: lookEvery, ctx: ctx, group: group, look: func(ctx context.Context) (api.Events, error) {
			return s.Operations(ctx, maxOperations)
		}},
		verdicts: shared[map[reap.Verdict]int]{look: s.Verdicts, every: reapEvery, ctx: ctx, group: group},
	}
}

// ofHost adds the looks at the host that figures alone need.
func (v *views) ofHost(h host.Host) *views {
	v.usage = shared[kstat.Usage]{every: lookEvery, ctx: v.status.ctx, group: v.status.group, look: func(ctx context.Context) (kstat.Usage, error) { return kstat.Query(ctx, h) }}
	v.zones = shared[[]zone.Zone]{every: lookEvery, ctx: v.status.ctx, group: v.status.group, look: func(ctx context.Context) ([]zone.Zone, error) { return zone.List(ctx, h) }}
	return v
}

// withSled adds their endpoints.
func withSled(all []endpoint) []endpoint {
	first, volumes, current := api.Version{Major: 1}, api.Version{Major: 17}, api.Version{Major: 48}
	return append(all,
		endpoint{method: http.MethodGet, path: "/inventory", id: "inventory", summary: "What the sled has, for a control plane", since: current, reply: api.Inventory{},
			serve: func(s *server, c call) (any, *api.Error) { return look(c, &s.views.inventory) }},
		endpoint{method: http.MethodGet, path: "/sled-identifiers", id: "sled_identifiers", summary: "The ids of the sled and of its board", since: first, reply: api.Identifiers{},
			serve: func(s *server, c call) (any, *api.Error) { return look(c, &s.views.names) }},
		endpoint{method: http.MethodGet, path: "/zones", id: "zones_list", summary: "The zones of VMs that run, by name", since: first, reply: []string{}, serve: (*server).zones},
		endpoint{method: http.MethodPut, path: "/omicron-config", id: "omicron_config_put", summary: "Have the sled's disks and datasets be as the control plane wants them", since: current,
			body: api.SledConfig{}, serve: (*server).putConfig},
		endpoint{method: http.MethodPost, path: "/local-storage", id: "local_storage_dataset_ensure", summary: "Create a volume that VMs can have as a disk", since: volumes,
			body: api.LocalStorageEnsure{}, serve: (*server).ensureLocalDisk},
		endpoint{method: http.MethodDelete, path: "/local-storage", id: "local_storage_dataset_delete", summary: "Delete such a volume and all data on it", since: volumes,
			body: api.LocalStorageDelete{}, serve: (*server).deleteLocalDisk},
		endpoint{method: http.MethodGet, path: "/capacity", id: "capacity", summary: "What the sled can hold, and what each keeper has on it", since: first, reply: api.Capacity{},
			serve: (*server).capacity},
		endpoint{method: http.MethodGet, path: "/keeper", id: "keeper_get", summary: "Who keeps the sled", since: first, reply: api.Keeper{}, serve: (*server).keeper},
		endpoint{method: http.MethodPut, path: "/keeper", id: "keeper_put", summary: "Hand the sled over to another keeper, as sled keeper", since: first, body: api.PutKeeper{},
			reply: api.Keeper{}, serve: (*server).putKeeper},
		endpoint{method: http.MethodGet, path: pagePath, id: "page", summary: "A page for browsers that shows the sled", stream: (*server).page, open: true},
		endpoint{method: http.MethodGet, path: "/status", id: "status", summary: "Whether the sled is well, as status -o json", reply: api.Status{},
			serve: (*server).status, open: true},
		endpoint{method: http.MethodGet, path: "/operations", id: "operation_list", summary: "The newest operations, as events -o json", reply: api.Events{},
			query: []string{"last"}, serve: (*server).operations, open: true},
		endpoint{method: http.MethodGet, path: "/operation-events", id: "operation_events", summary: "The same, and those that begin or end from then on, as server-sent events",
			since: api.Version{Major: 1}, reply: events.Event{}, query: []string{"last"}, stream: (*server).operationEvents},
	)
}

// capacity answers with what the sled can hold: one look for all who ask.
func (s *server) capacity(c call) (any, *api.Error) {
	seen, err := s.views.capacity.get(c.Context())
	if err != nil {
		return nil, failed(err)
	}
	return seen, nil
}

// capacity looks at what the sled can hold.
func (a *agent) capacity(ctx context.Context) (api.Capacity, error) {
	view, err := a.work.view(ctx)
	if err != nil {
		return api.Capacity{}, err
	}
	return a.Capacity(ctx, view)
}

func (s *server) keeper(c call) (any, *api.Error) {
	view, err := s.work.view(c.Context())
	var k record.SledKeeper
	if err == nil {
		k, _, err = record.KeeperOf(view)
	}
	if err != nil {
		return nil, failed(err)
	}
	return api.KeeperOf(k), nil
}

// putKeeper writes down who keeps the sled from now on.
func (s *server) putKeeper(c call) (any, *api.Error) {
	asks, refused := c.asks()
	var body api.PutKeeper
	if refused == nil {
		refused = c.decode(&body)
	}
	if refused != nil {
		return nil, refused
	}
	to, err := record.ParseKeeper(string(body.Keeper))
	if err == nil {
		_, err = record.ParseKeeper(string(body.From))
	}
	if err != nil {
		return nil, failed(err)
	}
	now, report, err := keeper.HandOverSled(c.Context(), s.work.env, keeper.SledRequest{
		Verb: "sled keeper", To: to, From: body.From, Asks: cmp.Or(asks, record.Operator),
	})
	if err != nil {
		return nil, failed(err, report)
	}
	return api.KeeperOf(now), nil
}

var errNoSled = errors.New("nexus.sled_id is not set: the sled is in no control plane")

// look answers with what a control plane wants to know of a sled, which must be one of its own.
func look[T any](c call, at *shared[T]) (any, *api.Error) {
	if at.look == nil {
		return nil, api.StatusOnly(http.StatusNotFound, "", errNoSled)
	}
	seen, err := at.get(c.Context())
	if err != nil {
		return nil, api.Internal(err)
	}
	return seen, nil
}

// zones are those that run, of VMs. The sled agent lists those whose names begin with oxz_
// (omicron sled-agent/src/services.rs); sledctl's are called as names.zone_prefix says.
func (s *server) zones(c call) (any, *api.Error) {
	all, err := s.views.zones.get(c.Context())
	if err != nil {
		return nil, api.Internal(err)
	}
	names := []string{}
	for _, z := range all {
		if _, ours := s.names.ParseZoneName(z.Name); ours && z.State == zone.Running {
			names = append(names, z.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// putConfig keeps what the control plane wants of the sled. It is applied behind the answer.
func (s *server) putConfig(c call) (any, *api.Error) {
	if s.reconciler == nil {
		return nil, api.StatusOnly(http.StatusNotFound, "", errNoSled)
	}
	data, refused := c.read()
	if refused != nil {
		return nil, refused
	}
	config, refused := api.ParseSledConfig(data)
	if refused != nil {
		return nil, refused
	}
	err := s.reconciler.Put(c.Context(), config)
	s.views.inventory.outdate()
	if errors.As(err, new(*storage.OutdatedError)) || errors.As(err, new(*storage.ChangedError)) {
		return nil, api.BadRequest(err.Error())
	}
	if err != nil {
		return nil, answer(err)
	}
	return nil, nil
}

// ensureLocalDisk makes a volume.
func (s *server) ensureLocalDisk(c call) (any, *api.Error) {
	var body api.LocalStorageEnsure
	if refused := c.decode(&body); refused != nil {
		return nil, refused
	}
	_, _, err := s.work.localDisks().Ensure(c.Context(), s.work.env, body.Wanted(), false, false)
	s.views.inventory.outdate()
	return nil, ofLocalDisk(err)
}

// deleteLocalDisk removes one.
func (s *server) deleteLocalDisk(c call) (any, *api.Error) {
	var body api.LocalStorageDelete
	if refused := c.decode(&body); refused != nil {
		return nil, refused
	}
	_, _, err := s.work.localDisks().Delete(c.Context(), s.work.env, body.Place(), false)
	s.views.inventory.outdate()
	return nil, ofLocalDisk(err)
}

func (*work) localDisks() localdisk.Settings { return localdisk.Settings{User: record.DiskUser} }

// ofLocalDisk is the answer where a volume was not made or removed: 503 with the reason as the code
// where the pool cannot hold any now, else 500 (omicron sled-agent/src/sled_agent.rs).
func ofLocalDisk(err error) *api.Error {
	if unavailable, ok := errors.AsType[*localdisk.UnavailableError](err); ok {
		return api.StatusOnly(http.StatusServiceUnavailable, unavailable.Error(), err)
	}
	if err != nil {
		return answer(err)
	}
	return nil
}

func (s *server) status(c call) (any, *api.Error) {
	seen, err := s.views.status.get(c.Context())
	if err != nil {
		return nil, failed(err)
	}
	return seen, nil
}

func (s *server) operations(c call) (any, *api.Error) {
	n, refused := lastOf(c)
	if refused != nil {
		return nil, refused
	}
	all, err := s.views.operations.get(c.Context())
	if err != nil {
		return nil, failed(err)
	}
	all.Items = all.Items[max(len(all.Items)-n, 0):] // of a copy: others share it
	return all, nil
}

// lastOf is how many operations are asked for.
func lastOf(c call) (int, *api.Error) {
	said := c.URL.Query().Get("last")
	if said == "" {
		return usualOperations, nil
	}
	n, err := strconv.Atoi(said)
	if err != nil || n < 1 || n > maxOperations {
		return 0, api.BadRequest(fmt.Sprintf("last %q: want a number from 1 to %d", said, maxOperations))
	}
	return n, nil
}

// operationEvents sends the newest operations, then those that begin or end: behind those
// that come together stands a whole.
func (s *server) operationEvents(w http.ResponseWriter, c call) *api.Error {
	n, refused := lastOf(c)
	if refused != nil {
		return refused
	}
	return s.follow(w, c, func(out *eventStream) error {
		return s.following(c.Context(), n, func(all []events.Event) error {
			return cmp.Or(sendEach(out, "operation", all), out.send("whole", struct{}{}))
		})
	})
}

// measureSled gives the figures of the sled, from the look that all clients share. A sled
// that cannot be looked at in time has only the figure that says so.
func (s *server) measureSled(ctx context.Context, out *figures.Page) {
	ctx, cancel := context.WithTimeout(ctx, scrapeWait)
	defer cancel()
	seen, err := s.views.status.get(ctx)
	out.One("sledctl_status_success", "gauge", "Whether the sled could be looked at: 1, else 0 and its figures are absent.", figure(err == nil))
	if err != nil {
		return
	}
	sledFigures(out, seen.Status)
}

// measureHost gives what only the host tells. What it does not tell in time is absent.
func (a *agent) measureHost(ctx context.Context, out *figures.Page) {
	ctx, cancel := context.WithTimeout(ctx, scrapeWait)
	defer cancel()
	if u, err := a.views.usage.get(ctx); err == nil {
		figures.CPU(out, a.vmsOf(u))
	}
	if all, err := a.views.zones.get(ctx); err == nil {
		states := map[zone.State]int{}
		for _, z := range all {
			if z.Name != "global" {
				states[z.State]++
			}
		}
		figures.Counts(out, "sledctl_zones", "Zones of the sled by state, but for the global one.", "state", states)
	}
	if verdicts, err := a.views.verdicts.get(ctx); err == nil {
		figures.Counts(out, "sledctl_reap_objects", "Objects of sledctl on the sled, by the verdict of sledctl reap; it is judged once a minute.", "verdict", verdicts)
	}
	if last, err := doctor.Last(a.env.Host.Files(), a.env.RunDir); err == nil {
		figures.Doctor(out, last)
	}
	if newest, err := a.views.operations.get(ctx); err == nil {
		a.durations.Count(newest.Items)
	}
	a.durations.Write(out)
}

// vmsOf are the VMs whose zones run, with what they have used.
func (a *agent) vmsOf(u kstat.Usage) (all []figures.VM) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watched {
		if used, ok := u.CPU[w.zone]; ok && w.zone != "" {
			all = append(all, figures.VM{Instance: cmp.Or(w.name, w.id), CPU: used})
		}
	}
	slices.SortFunc(all, func(a, b figures.VM) int { return cmp.Compare(a.Instance, b.Instance) })
	return all
}

// figure is 1 if it is so, else 0.
func figure(so bool) float64 {
	if so {
		return 1
	}
	return 0
}

func sledFigures(out *figures.Page, s status.Status) {
	out.Family("sledctl_status_verdict", "gauge", "The verdict of sledctl status: 1 at the one that holds.")
	for _, v := range []status.Verdict{status.IsOK, status.IsAttention, status.IsTrouble, status.IsUnknown} {
		out.Sample("sledctl_status_verdict", figure(s.Verdict == v), "verdict", strings.ToLower(string(v)))
	}
	problemFigures(out, s.Problems)
	out.Family("sledctl_instances", "gauge", "Instances by state.")
	for _, state := range slices.Sorted(maps.Keys(s.Instances.ByState)) {
		out.Sample("sledctl_instances", float64(s.Instances.ByState[state]), "state", state)
	}
	out.One("sledctl_instances_wanted_up", "gauge", "Instances that are wanted up.", float64(s.Instances.WantedUp))
	out.One("sledctl_instances_up", "gauge", "Instances that are wanted up, and are.", float64(s.Instances.Up))
	out.One("sledctl_vcpus", "gauge", "Virtual CPUs of the VMs that are up.", float64(s.CPUs.VCPUs))
	out.Family("sledctl_vnics", "gauge", "VNICs of sledctl by kind.")
	out.Sample("sledctl_vnics", float64(s.Network.Control), "kind", "control")
	out.Sample("sledctl_vnics", float64(s.Network.Guest), "kind", "guest")
	poolFigures(out, s.Pools)
	out.One("sledctl_ledger_copies", "gauge", "Copies of the ledger that there should be.", float64(len(s.Ledger.Copies)))
	out.One("sledctl_ledger_copies_whole", "gauge", "Copies of the ledger that have everything that was written.", float64(s.Ledger.Sound()))
	if m := s.Memory; m != nil {
		out.One("sledctl_memory_limit_bytes", "gauge", "Memory that guests may have.", float64(m.Limit))
		out.One("sledctl_memory_reserved_bytes", "gauge", "Memory that is set aside for guests, in use or not.", float64(m.Reserved))
		out.One("sledctl_memory_used_bytes", "gauge", "Memory that guests have.", float64(m.Used))
	}
	if d := s.Doctor; d != nil {
		out.Family("sledctl_doctor_checks", "gauge", "Checks that failed or warned when doctor last ran.")
		out.Sample("sledctl_doctor_checks", float64(d.Failed), "result", "fail")
		out.Sample("sledctl_doctor_checks", float64(d.Warned), "result", "warn")
		out.One("sledctl_doctor_run_timestamp_seconds", "gauge", "When doctor last ran.", float64(d.Time.Unix()))
	}
}

// problemFigures counts problems by code and severity; a code says which command to type.
func problemFigures(out *figures.Page, problems []status.Problem) {
	type kind struct{ code, severity string }
	counts := map[kind]int{}
	for _, p := range problems {
		counts[kind{p.Code, string(p.Severity)}]++
	}
	out.Family("sledctl_problems", "gauge", "Problems that sledctl status shows, by code and severity.")
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.severity, b.severity))
	}) {
		out.Sample("sledctl_problems", float64(counts[k]), "code", k.code, "severity", k.severity)
	}
}

func poolFigures(out *figures.Page, pools []status.Pool) {
	for _, f := range []struct {
		name, help string
		value      func(status.Pool) float64
	}{
		{"sledctl_pool_size_bytes", "Size of a pool.", func(p status.Pool) float64 { return float64(p.Size) }},
		{"sledctl_pool_used_bytes", "What a pool has in use.", func(p status.Pool) float64 { return float64(p.Used) }},
		{"sledctl_pool_free_bytes", "What a pool has free.", func(p status.Pool) float64 { return float64(p.Free) }},
		{"sledctl_pool_working", "Whether a pool answers: 1, else 0.", func(p status.Pool) float64 { return figure(p.Works()) }},
	} {
		out.Family(f.name, "gauge", f.help)
		for _, p := range pools {
			out.Sample(f.name, f.value(p), "pool", p.Name)
		}
	}
}
