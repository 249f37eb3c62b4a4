package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/comparison"
	"github.com/sledctl/sledctl/sled/instance/documents"
	"github.com/sledctl/sledctl/sled/instance/keeper"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

// Instances by their names, as commands have them: for sledctl on another
// machine. A failure is answered with what a command prints for it.

// withInstances adds their endpoints.
func withInstances(all []endpoint) []endpoint {
	first, one := api.Version{Major: 1}, "/instances/{instance}"
	return append(all,
		endpoint{method: http.MethodGet, path: "/instances", id: "instance_list", summary: "All instances, as instance list; with for, those that are waited for, as instance wait",
			since: first, reply: api.Instances{}, query: []string{"for", "instances", "last"}, serve: (*server).instances},
		endpoint{method: http.MethodGet, path: "/instance-events", id: "instance_events", summary: "What instances are and become, as server-sent events, as instance watch",
			since: first, reply: api.Instance{}, query: []string{"instances", "ids"}, stream: (*server).instanceEvents},
		endpoint{method: http.MethodPut, path: one, id: "instance_put", summary: "Create, repair or start an instance as described, as instance ensure",
			since: first, body: api.PutInstance{}, reply: api.Changed{}, query: []string{"wait", "recreate", "protect", "migrate_from", "migration_id"}, serve: (*server).ensureInstance},
		endpoint{method: http.MethodGet, path: one, id: "instance_get", summary: "One instance, by its name or id, as instance get", since: first, reply: api.Changed{},
			serve: (*server).instance},
		endpoint{method: http.MethodGet, path: one + "/differences", id: "instance_get_differences", summary: "In what an instance is not as wanted, as instance get --diff",
			since: first, reply: api.Differences{}, serve: (*server).differences},
		endpoint{method: http.MethodGet, path: one + "/document", id: "instance_get_document", summary: "What describes an instance, as instance get -o toml",
			since: first, reply: api.Document{}, serve: (*server).instanceDocument},
		endpoint{method: http.MethodPut, path: one + "/state", id: "instance_put_state", summary: "Have an instance run, stopped or reset, as instance start, stop, reboot",
			since: first, body: api.PutInstanceState{}, reply: api.Changed{}, query: []string{"wait"}, serve: (*server).changeInstance},
		endpoint{method: http.MethodDelete, path: one, id: "instance_delete", summary: "Remove an instance, as instance delete", since: first, reply: api.Changed{},
			query: []string{"wait", "migration_id"}, serve: (*server).deleteInstance},
		endpoint{method: http.MethodPut, path: one + "/migration", id: "instance_migrate", summary: "Move a running instance to another sled, as instance migrate", since: first,
			body: api.PutMigration{}, reply: api.Changed{}, query: []string{"wait"}, serve: (*server).migrate},
		endpoint{method: http.MethodPut, path: one + "/keeper", id: "instance_put_keeper", summary: "Hand an instance over to another keeper, as instance keeper", since: first,
			body: api.PutInstanceKeeper{}, reply: api.Changed{}, query: []string{"wait"}, serve: (*server).handOver},
		endpoint{method: http.MethodPut, path: "/instances/{instance_id}/registration", id: "instance_register", summary: "Make a VM of a keeper known, so that it can be run", since: first,
			body: api.PutRegistration{}, reply: api.VM{}, serve: (*server).registerInstance},
	)
}

// instances gives all of them; where the request waits for a state, those that it
// names, once they are in it. Last has the last operation on each with them.
func (s *server) instances(c call) (any, *api.Error) {
	all, err := s.work.list(c)
	if err != nil {
		return nil, failed(err)
	}
	answer := api.Instances{Items: make([]api.Instance, len(all)), Last: c.URL.Query().Get("last") == "true"}
	for i, one := range all {
		answer.Items[i] = api.InstanceOf(one)
	}
	if answer.Last {
		view, err := s.work.view(c.Context())
		if err != nil {
			return nil, failed(err)
		}
		api.AddLast(answer.Items, view)
	}
	return answer, nil
}

func (w *work) list(c call) ([]instance.Instance, error) {
	if goal := c.URL.Query().Get("for"); goal != "" {
		if !slices.Contains(watch.Goals(), goal) {
			return nil, &record.InputError{Field: "for", Value: goal, Want: strings.Join(watch.Goals(), ", ")}
		}
		return watch.Wait(c.Context(), w.instances, w.env, c.named("instances"), goal)
	}
	view, err := w.view(c.Context())
	if err != nil {
		return nil, err
	}
	return w.instances.List(c.Context(), w.env, view)
}

// named are the instances that a query names by a key, with commas between them.
func (c call) named(key string) []string {
	return strings.FieldsFunc(c.URL.Query().Get(key), func(r rune) bool { return r == ',' })
}

// instanceEvents streams the instances that the query names, of no names all, and
// each change. By ids it is whichever has one of them, now or later. Once all that
// are there were told, it says so. What ends it but the one who reads it, is its
// last event.
func (s *server) instanceEvents(w http.ResponseWriter, c call) *api.Error {
	view, err := s.work.view(c.Context())
	if err != nil {
		return failed(err)
	}
	pick, err := watch.Selector(s.work.instances, view, c.named("instances"))
	if err != nil {
		return failed(err)
	}
	if ids := c.named("ids"); len(ids) > 0 {
		pick = func(r record.Record) bool { return slices.Contains(ids, r.ID) }
	}
	send, refused := s.stream(w)
	if refused != nil {
		return refused
	}
	s.meter.streams.Add(1)
	defer s.meter.streams.Add(-1)
	err = watch.Watch(c.Context(), s.work.instances, s.work.env, pick, func(i instance.Instance) error {
		return send("event: instance\n", api.InstanceOf(i))
	}, func() error { return send("event: whole\n", struct{}{}) })
	if c.Context().Err() == nil {
		_ = send("event: failure\n", failed(err).Body(c.id))
	}
	return nil
}

func (s *server) instance(c call) (any, *api.Error) {
	view, err := s.work.view(c.Context())
	var one instance.Instance
	if err == nil {
		one, err = s.work.instances.Get(c.Context(), s.work.env, view, c.params["instance"])
	}
	if err != nil {
		return nil, failed(err)
	}
	shown := api.InstanceOf(one)
	shown.PropolisAddress = s.work.serverOf(c.Context(), one)
	return api.Changed{Instance: &shown}, nil
}

// serverOf is where the Propolis of an instance listens; empty: it does not, or that is not known.
func (w *work) serverOf(ctx context.Context, i instance.Instance) string {
	if i.Incarnation == nil || !i.Incarnation.Ensured {
		return ""
	}
	t := w.instances.Target(i.Record)
	if at := t.Address; at.IsValid() || t.Find == nil {
		return at.String()
	}
	at, err := t.Find(ctx, w.env.Host)
	if err != nil {
		return ""
	}
	return at.String()
}

func (s *server) differences(c call) (any, *api.Error) {
	view, err := s.work.view(c.Context())
	var seen comparison.Comparison
	if err == nil {
		seen, err = comparison.Look(c.Context(), s.work.instances, s.work.env, view, c.params["instance"])
	}
	if err != nil {
		return nil, failed(err)
	}
	return api.Differences{Items: append([]comparison.Row{}, seen.Differing()...)}, nil
}

func (s *server) instanceDocument(c call) (any, *api.Error) {
	view, err := s.work.view(c.Context())
	if err != nil {
		return nil, failed(err)
	}
	text, _, err := documents.Of(s.work.instances, view, c.params["instance"])
	if err != nil {
		return nil, failed(err)
	}
	return api.Document{Text: text}, nil
}

// changeInstance does what a command does, and ends when who asked goes away.
func (s *server) changeInstance(c call) (any, *api.Error) {
	var body api.PutInstanceState
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	ref, w := c.params["instance"], s.work
	switch body.State {
	case api.WantRunning:
		return w.command(c, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
			return s.Ensure(ctx, env, instance.EnsureRequest{Verb: "instance start", Wanted: instance.Wanted{Ref: ref}, Known: true})
		})
	case api.WantStopped:
		return w.command(c, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
			return s.Stop(ctx, env, instance.StopRequest{Verb: "instance stop", Ref: ref})
		})
	case api.WantReboot:
		return w.command(c, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
			return s.Reboot(ctx, env, instance.PowerRequest{Verb: "instance reboot", Ref: ref})
		})
	}
	return nil, api.BadRequest("state: want running, stopped or reboot")
}

// ensureInstance makes an instance be as the document says, which is called what
// the path says.
func (s *server) ensureInstance(c call) (any, *api.Error) {
	data, refused := c.read()
	if refused != nil {
		return nil, refused
	}
	wanted, err := s.work.document(c.Context(), data)
	if err != nil {
		return nil, failed(err)
	}
	change := instance.EnsureRequest{Verb: "instance ensure", Wanted: instance.Wanted{Ref: c.params["instance"]}.Over(wanted)}
	if err := sameID(c.params["instance"], wanted.Ref); err != nil {
		return nil, failed(err)
	}
	if change.From, refused = c.migrates(); refused != nil {
		return nil, refused
	}
	query := c.URL.Query()
	change.Recreate = query.Get("recreate") == "true"
	switch protect := query.Get("protect"); protect {
	case "true", "false":
		on := protect == "true"
		change.Protect = &on
	case "":
	default:
		return nil, api.BadRequest(fmt.Sprintf("protect %q: want true or false", protect))
	}
	return s.work.command(c, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
		return s.Ensure(ctx, env, change)
	})
}

func (s *server) deleteInstance(c call) (any, *api.Error) {
	arrival, refused := c.migration()
	if refused != nil {
		return nil, refused
	}
	return s.work.command(c, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
		return s.Delete(ctx, env, instance.DeleteRequest{Verb: "instance delete", Ref: c.params["instance"], Arrival: arrival})
	})
}

// migrate has another sled take the VM of an instance.
func (s *server) migrate(c call) (any, *api.Error) {
	var body api.PutMigration
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	there, refused := s.work.Migrate(c, body)
	if refused != nil {
		return nil, refused
	}
	return api.Changed{Instance: there}, nil
}

// handOver writes down who keeps an instance from now on.
func (s *server) handOver(c call) (any, *api.Error) {
	var body api.PutInstanceKeeper
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	to, err := record.ParseKeeper(string(body.Keeper))
	if err != nil {
		return nil, failed(err)
	}
	return s.work.command(c, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
		return keeper.HandOver(ctx, s, env, keeper.Request{
			Verb: "instance keeper", Ref: c.params["instance"], To: to, Generation: body.Generation, Asks: s.Asks,
		})
	})
}

// command does a verb, and gives the instance as it is then.
func (w *work) command(c call, verb func(context.Context, instance.Settings, operation.Env) (instance.Result, error)) (any, *api.Error) {
	asks, refused := c.asks()
	if refused != nil {
		return nil, refused
	}
	env, as := w.env, w.instances
	as.Asks = cmp.Or(asks, record.Operator)
	env.Wait = c.URL.Query().Get("wait") == "true"
	result, err := verb(c.Context(), as, env)
	if err != nil {
		return nil, failed(err, result.Report)
	}
	if result.Record.ID == "" {
		return api.Changed{}, nil
	}
	view, err := w.view(c.Context())
	var now instance.Instance
	if err == nil {
		now, err = w.instances.Summary(c.Context(), env, view, result.Record.ID)
	}
	if err != nil {
		return nil, failed(err)
	}
	shown := api.InstanceOf(now)
	return api.Changed{Instance: &shown}, nil
}

// What the Propolis servers have logged, as instance logs prints it.

// logReaders is how many requests read logs at once: each may read some megabytes.
const logReaders = 4

// Logs reads logs. It passes on the lines that are meant, at least once and the oldest
// first, and what is to be said next to them. If it follows, it also passes on what comes, until
// the context ends.
type Logs func(ctx context.Context, q api.LogQuery, follow bool, tell func(lines []api.LogLine, cut bool) error, note func(string)) error

// LogData reads one log. It passes on its last lines that are meant, as they are, and, if it
// follows, what comes, until the context ends.
type LogData func(ctx context.Context, q api.LogQuery, follow bool, tell func([]byte) error, note func(string)) error

// withLogs adds their endpoints.
func withLogs(all []endpoint) []endpoint {
	first, keys := api.Version{Major: 1}, []string{"instances", "service", "previous", "since", "last"}
	return append(all,
		endpoint{method: http.MethodGet, path: "/instance-logs", id: "instance_logs", summary: "What the Propolis servers of instances have logged, as instance logs",
			since: first, reply: api.Logs{}, query: keys, serve: (*server).instanceLogs},
		endpoint{method: http.MethodGet, path: "/instance-log-events", id: "instance_log_events", summary: "The same, and what they log from then on, as server-sent events",
			since: first, reply: api.LogLine{}, query: keys, stream: (*server).instanceLogEvents},
		endpoint{method: http.MethodGet, path: "/instance-log-data", id: "instance_log_data", summary: "One log as it is, and with follow what comes, as server-sent events, as instance logs --raw",
			since: first, reply: api.LogData{}, query: []string{"instances", "service", "previous", "last", "follow"}, stream: (*server).instanceLogData},
	)
}

func (s *server) instanceLogs(c call) (any, *api.Error) {
	q, err := api.ParseLogQuery(c.URL.Query())
	if err != nil {
		return nil, api.BadRequest(err.Error())
	}
	leave, refused := s.readLogs(c)
	if refused != nil {
		return nil, refused
	}
	defer leave()
	all := api.Logs{Items: []api.LogLine{}, Notes: []string{}}
	err = s.logs(c.Context(), q, false, func(lines []api.LogLine, cut bool) error {
		all.Items, all.Cut = append(all.Items, lines...), all.Cut || cut
		return nil
	}, func(text string) { all.Notes = append(all.Notes, text) })
	if err != nil {
		return nil, failed(err)
	}
	return all, nil
}

// readLogs waits for its turn to read logs.
func (s *server) readLogs(c call) (leave func(), refused *api.Error) {
	select {
	case s.readers <- struct{}{}:
		return func() { <-s.readers }, nil
	case <-c.Context().Done():
		return nil, failed(context.Cause(c.Context()))
	}
}

// instanceLogEvents sends the lines of logs, and those that come: behind those that come
// together stands a whole.
func (s *server) instanceLogEvents(w http.ResponseWriter, c call) *api.Error {
	q, leave, refused := s.follows(c)
	if refused != nil {
		return refused
	}
	defer leave()
	if q.Previous {
		return api.BadRequest("previous: a bundle does not grow")
	}
	var notes []string // that go before the next lines
	return s.follow(w, c, func(out *eventStream) error {
		return s.logs(c.Context(), q, true, func(lines []api.LogLine, cut bool) error {
			leave() // from here on it reads what is added
			if err := sendEach(out, "note", notes); err != nil {
				return err
			}
			notes = nil
			return cmp.Or(sendEach(out, "line", lines), out.send("whole", api.LogsWhole{Cut: cut}))
		}, func(text string) { notes = append(notes, text) })
	})
}

// instanceLogData sends a log as it is. What does not follow ends with an event.
func (s *server) instanceLogData(w http.ResponseWriter, c call) *api.Error {
	q, leave, refused := s.follows(c)
	if refused != nil {
		return refused
	}
	defer leave()
	follow := c.URL.Query().Get("follow") == "true"
	return s.follow(w, c, func(out *eventStream) error {
		var notes []string
		err := s.logData(c.Context(), q, follow, func(data []byte) error {
			leave()
			err := sendEach(out, "note", notes)
			notes = nil
			return cmp.Or(err, out.send("data", api.LogData{Data: data}))
		}, func(text string) { notes = append(notes, text) })
		if err != nil || follow {
			return err
		}
		return out.send("end", struct{}{})
	})
}

// follows is what is asked for, and the turn to read logs.
func (s *server) follows(c call) (q api.LogQuery, leave func(), refused *api.Error) {
	q, err := api.ParseLogQuery(c.URL.Query())
	if err != nil {
		return q, nil, api.BadRequest(err.Error())
	}
	leave, refused = s.readLogs(c)
	if refused != nil {
		return q, nil, refused
	}
	return q, sync.OnceFunc(leave), nil
}
