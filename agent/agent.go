// Package agent watches the VMs of a sled as long as it runs, serves their state
// over HTTP, and notifies the control plane when one changes. It keeps no second
// record: the ledger names the VMs, and Propolis knows the state of each. No VM
// ends because the agent does.
//
// follow.go reads from the ledger which VMs exist; a monitor per VM
// (instance.Monitor) reports its state; table.go holds the current state of all;
// server.go answers from the table, work.go carries out requests, and notify.go
// notifies the control plane. The last state of an ended VM is in its tombstone,
// until a client has read it (receipts.go).
package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/figures"
	"github.com/sledctl/sledctl/agent/reconciler"
	"github.com/sledctl/sledctl/agent/registration"
	"github.com/sledctl/sledctl/agent/vpcs"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/peer/nexus"
	"github.com/sledctl/sledctl/sled/events"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/watch"
	"github.com/sledctl/sledctl/sled/reap"
)

// Settings are those of one agent.
type Settings struct {
	Instance instance.Settings
	// Document reads an instance document, as commands do.
	Document func(context.Context, []byte) (instance.Wanted, error)
	// Registration makes the sled known to the control plane; nil: nobody does.
	Registration *registration.Registration
	// Reconciler has the sled's disks and datasets be as the control plane wants them; nil: it is
	// in none.
	Reconciler *reconciler.Reconciler
	// Inventory is what the sled has, and Identifiers name it, for the control plane; nil: it
	// is in none.
	Inventory   func(context.Context) (api.Inventory, error)
	Identifiers func(context.Context) (api.Identifiers, error)
	Nexus       *url.URL // the control plane; nil: none is notified
	Mode        string   // how it is notified: ModeDoorbell, ModeUpcall, ModeAuto, ModeOff
	// TombstoneTTL is how long an ended VM can be read, if the control
	// plane does not read it before.
	TombstoneTTL time.Duration
	// Status looks at the sled, and Operations lists the newest operations, at most so
	// many.
	Status     func(context.Context) (api.Status, error)
	Operations func(context.Context, int) (api.Events, error)
	// Target are the words that run the sledctl of another sled, by its name, and Remote runs them.
	Target func(sled string) ([]string, error)
	Remote migration.Remote
	// Capacity is what the sled can hold.
	Capacity func(context.Context, ledger.View) (api.Capacity, error)
	// Follow passes on the same, and those that begin or end until the context ends.
	Follow  Follow
	Logs    Logs
	LogData LogData
	NICs    *NICs // their records in NAPI; nil: they are not synced
	// Verdicts counts the objects on the sled as reap judges them.
	Verdicts func(context.Context) (map[reap.Verdict]int, error)
	// SparePools lists the pools with a base; nil: no spares are made.
	SparePools func(ledger.View) []string
	// FlatNetwork lets VMs in that have NICs in VPCs: they are put on the guest
	// link as they are, without what a VPC is.
	FlatNetwork bool
	Listen      []Address
	Listener    func(context.Context, Address) (net.Listener, error) // opens each; nil: Listen does
	TLS         *tls.Config                                          // asks clients on TCP for a certificate; nil: no TLS
	Access      Access                                               // which clients may ask over TCP, and for what
	Log         *slog.Logger
}

// Follow passes on the newest operations, at most so many, and then those that begin or end,
// until the context ends.
type Follow func(ctx context.Context, n int, tell func([]events.Event) error) error

// How often the agent looks.
const (
	followEvery = 100 * time.Millisecond // at the ledger
	sweepEvery  = 10 * time.Minute       // for VMs whose last state was not delivered
	expireEvery = time.Minute            // for tombstones whose time is up
	resumeEvery = time.Minute            // for what the control plane asked for and could not be done
	zonesAge    = 100 * time.Millisecond // how old a listing of the zones may be
)

// subject is what an agent locks: there is one on a sled.
const subject = "agent"

// Run watches and answers until ctx ends. Ready is called once requests are
// answered: when all that is recorded has been inspected; earlier requests
// wait. Errors: *operation.LockedError where another agent runs; *ExposedError;
// the ledger's.
//
// Guess contract-of-ended-agent: svc.startd abandons the contract of an agent that has ended, and
// does not end the host commands in it (illumos issue 13511 would have that changed).
// Check: `kill -9` of the agent while it boots a zone; `ptree -c`
func (s Settings) Run(ctx context.Context, env operation.Env, ready func()) error {
	release, err := operation.Hold(ctx, env, "agent", subject)
	if err != nil {
		return err
	}
	defer release()
	listeners, err := s.listen(ctx)
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	if err != nil {
		return err
	}
	epoch, err := countStart(ctx, env)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	a := s.agent(ctx, env, epoch)
	defer func() { // also if it fails before it answers
		cancel()
		a.inflight.drain()
		a.looks.Wait()
		a.monitors.Wait()
		a.work.group.Wait()
		a.notifier.Wait() // all of those notify
	}()
	if err := a.begin(ctx); err != nil {
		return err
	}
	a.work.resume(ctx)
	group.Go(func() error { a.follow(ctx); return nil })
	group.Go(func() error { a.every(ctx, resumeEvery, func() { a.work.resume(ctx) }); return nil })
	group.Go(func() error { a.every(ctx, sweepEvery, func() { a.notifier.Sweep(ctx) }); return nil })
	group.Go(func() error { a.every(ctx, expireEvery, func() { a.expireRead(ctx, time.Now()) }); return nil })
	group.Go(func() error { a.nics(ctx); return nil })
	group.Go(func() error { a.spares(ctx); return nil })
	group.Go(func() error { a.every(ctx, trimEvery, func() { a.trimBundles(ctx) }); return nil })
	if a.Registration != nil {
		group.Go(func() error { a.Registration.Run(ctx); return nil })
	}
	if a.Reconciler != nil {
		group.Go(func() error { a.Reconciler.Run(ctx); return nil })
	}
	for _, l := range listeners {
		server, hangUp := a.http(ctx)
		context.AfterFunc(ctx, hangUp)
		group.Go(func() error {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve on %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	ready()
	return group.Wait()
}

// listen gives the listeners, also those before one that could not be opened.
func (s Settings) listen(ctx context.Context) (all []net.Listener, err error) {
	open := s.Listener
	if open == nil {
		open = func(ctx context.Context, at Address) (net.Listener, error) { return Listen(ctx, at, s.TLS, s.Access) }
	}
	for _, at := range s.Listen {
		l, err := open(ctx, at)
		if err != nil {
			return all, fmt.Errorf("listen on %s: %w", at, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// agent is one start of it.
type agent struct {
	Settings
	env      operation.Env
	table    *vmTable
	notifier *notifier
	work     *work
	zones    watch.Zones
	receipts readReceipts
	meter    meter
	// durations are those of the operations that have ended since.
	durations *figures.Durations
	inflight  inflight
	views     *views
	routes    vpcs.Routes
	looks     sync.WaitGroup

	seq      uint64 // of the ledger, as far as it was followed
	followed bool   // the last look at it succeeded
	monitors sync.WaitGroup

	mu      sync.Mutex // held to write watched, which one goroutine does, or to read it in another
	watched map[uuid.UUID]*watched
}

func (s Settings) agent(ctx context.Context, env operation.Env, epoch uint64) *agent {
	a := &agent{
		Settings: s, env: env, table: newTable(epoch), zones: watch.SharedZones(env.Host, zonesAge),
		watched: map[uuid.UUID]*watched{},
	}
	a.notifier = newNotifier(a.table, a.teller(), rand.Float64, func(err error) { s.Log.Warn("the control plane was not notified", "cause", err) })
	a.work = a.worker(ctx)
	a.views = s.views(ctx, &a.looks).ofHost(env.Host)
	a.views.capacity = shared[api.Capacity]{every: lookEvery, ctx: ctx, group: &a.looks, look: a.capacity}
	a.durations = figures.NewDurations(time.Now())
	a.meter.more, a.meter.host = a.measure, a.measureHost
	return a
}

// worker carries out requests. It waits for commands that hold a VM's lock.
func (a *agent) worker(ctx context.Context) *work {
	env, instances := a.env, a.Instance
	instances.Asks = "" // what is asked for is checked when it comes
	env.Wait, env.Observe = true, nil
	env.Warn = func(err error) { a.Log.Warn("working on a VM", "cause", err) }
	return &work{
		instances: instances, document: a.Document, target: a.Target, remote: a.Remote, env: env, table: a.table, log: a.Log, ctx: ctx, lanes: map[uuid.UUID]*lane{},
		say: func(r record.Record, id uuid.UUID, o watch.Observation) { a.say(ctx, ownerOf(r), id, o) },
	}
}

// teller returns how the control plane is notified of one VM.
func (a *agent) teller() func(context.Context, VM) error {
	if a.Nexus == nil || a.Mode == ModeOff {
		return func(context.Context, VM) error { return nil }
	}
	r := &messenger{client: nexus.Client{Host: a.env.Host, URL: a.Nexus}, mode: a.Mode, body: func(v VM) ([]byte, error) { return json.Marshal(v.wire()) }}
	return r.Tell
}

// countStart counts this start in the ledger.
func countStart(ctx context.Context, env operation.Env) (epoch uint64, err error) {
	book, err := env.Ledger(ctx)
	if err != nil {
		return 0, err
	}
	_, err = book.Update(ctx, func(view ledger.View) ([]ledger.Fact, error) {
		if value, ok := view.Get(instance.KeyEpoch); ok {
			if err := json.Unmarshal(value, &epoch); err != nil {
				return nil, fmt.Errorf("%s in the ledger: %w", instance.KeyEpoch, err)
			}
		}
		if epoch++; epoch > maxEpoch {
			return nil, fmt.Errorf("%s in the ledger is %d: no generation can be above it", instance.KeyEpoch, epoch-1)
		}
		return []ledger.Fact{{Key: instance.KeyEpoch, Value: json.RawMessage(strconv.FormatUint(epoch, 10))}}, nil
	})
	return epoch, err
}

// http is a server whose clients cannot hold it up. HangUp ends it, and all
// requests in flight: the connections first, so that no client takes a cut-off
// reply for an answer.
func (a *agent) http(ctx context.Context) (s *http.Server, hangUp func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answers := &server{endpoints: endpoints(), access: a.Access, table: a.table, work: a.work, routes: &a.routes, views: a.views, reconciler: a.Reconciler, names: a.Instance.Names, flat: a.FlatNetwork, logs: a.Logs, logData: a.LogData, following: a.Follow, readers: make(chan struct{}, logReaders), read: a.receipts.note, meter: &a.meter, log: a.Log, draw: uuid.NewString}
	s = &http.Server{
		Handler:           a.inflight.before(answers),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug),
	}
	return s, func() {
		_ = s.Close()
		cancel()
	}
}

// every does something again and again until ctx ends.
func (a *agent) every(ctx context.Context, pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-ctx.Done():
			return
		}
	}
}
