// Package agent watches the VMs of a sled as long as it runs, answers over HTTP
// what they are, and tells the control plane when one changes. It keeps no
// second truth: what exists is in the state file, and what it is, its Propolis
// says. No VM ends because the agent does.
//
// follow.go reads from the state file which VMs there are; a monitor of each
// (instance.Monitor) says what becomes of it; board.go is what all of them are
// now; server.go answers from the board, work.go does what is asked for, and
// bells.go tell the control plane that it should ask. What a VM that is gone was
// at last, its tombstone says, until it has been read (graves.go).
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

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/peer/nexus"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

// Settings are those of one agent.
type Settings struct {
	Instance instance.Settings
	// Up brings an instance up, with what it needs: instance.Settings.Ensure, and
	// a base zone where there is none.
	Up func(context.Context, operation.Env, instance.EnsureRequest) (instance.Result, error)
	// Failure is what a command says of an error: a status, a code, and the body
	// that it prints.
	Failure func(error, ...operation.Report) (status int, code string, said json.RawMessage)
	// Document reads an instance document, as commands do.
	Document func([]byte) (instance.Wanted, error)
	Nexus    *url.URL // the control plane; nil: nobody is told
	Mode     string   // how it is told: ModeDoorbell, ModeUpcall, ModeAuto, ModeOff
	// TombstoneTTL is how long a VM that is gone can be read, if the control
	// plane does not read it before.
	TombstoneTTL time.Duration
	NICs         *NICs // their records in NAPI; nil: they are not looked after
	// FlatNetwork lets VMs in that have NICs in VPCs: they are put on the guest
	// link as they are, without what a VPC is.
	FlatNetwork bool
	Listen      []Address
	Listener    func(context.Context, Address) (net.Listener, error) // opens each; nil: Listen does
	TLS         *tls.Config                                          // asks clients on TCP for a certificate; nil: no TLS
	Access      Access                                               // who may ask over TCP, and for what
	Log         *slog.Logger
}

// How often the agent looks.
const (
	followEvery = 100 * time.Millisecond // at the state file
	sweepEvery  = 10 * time.Minute       // for VMs of which the control plane should have heard
	buryEvery   = time.Minute            // for tombstones whose time is up
	resumeEvery = time.Minute            // for what is owed to the control plane and could not be done
	zonesAge    = 100 * time.Millisecond // how old a listing of the zones may be
)

// subject is what an agent locks: there is one on a sled.
const subject = "agent"

// Run watches and answers until ctx ends. Ready is called once requests are
// answered: when all that is recorded has been looked at; who comes before
// waits. Errors: *operation.LockedError where another agent runs; *ExposedError;
// the ledger's.
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
	epoch, err := raise(ctx, env)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	a := s.agent(ctx, env, epoch)
	defer func() { // also where it does not come to answering
		cancel()
		a.door.shut()
		a.monitors.Wait()
		a.bells.Wait()
		a.work.group.Wait()
	}()
	if err := a.begin(ctx); err != nil {
		return err
	}
	a.work.resume(ctx)
	group.Go(func() error { a.follow(ctx); return nil })
	group.Go(func() error { a.every(ctx, resumeEvery, func() { a.work.resume(ctx) }); return nil })
	group.Go(func() error { a.every(ctx, sweepEvery, func() { a.bells.Sweep(ctx) }); return nil })
	group.Go(func() error { a.every(ctx, buryEvery, func() { a.expire(ctx, time.Now()) }); return nil })
	group.Go(func() error { a.nics(ctx); return nil })
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
	env    operation.Env
	board  *board
	bells  *bells
	work   *work
	zones  watch.Zones
	graves graves
	meter  meter
	door   door

	seq      uint64 // of the state file, as far as it was followed
	followed bool   // the last look at it succeeded
	monitors sync.WaitGroup

	mu      sync.Mutex // of those who write watched, which is one, or read it next to him
	watched map[uuid.UUID]*watched
}

func (s Settings) agent(ctx context.Context, env operation.Env, epoch uint64) *agent {
	a := &agent{
		Settings: s, env: env, board: newBoard(epoch), zones: watch.SharedZones(env.Host, zonesAge),
		watched: map[uuid.UUID]*watched{},
	}
	a.bells = newBells(a.board, a.teller(), rand.Float64, func(err error) { s.Log.Warn("the control plane was not told", "cause", err) })
	a.work = a.worker(ctx)
	a.meter.more = a.measure
	return a
}

// worker does what is asked of VMs. It waits where commands are at work on them.
func (a *agent) worker(ctx context.Context) *work {
	env := a.env
	env.Wait, env.Observe = true, nil
	env.Warn = func(err error) { a.Log.Warn("at work on a VM", "cause", err) }
	return &work{
		instances: a.Instance, up: a.Up, failure: a.Failure, document: a.Document, env: env, board: a.board, log: a.Log, ctx: ctx, lanes: map[uuid.UUID]*lane{},
		say: func(r record.Record, id uuid.UUID, o watch.Observation) { a.say(ctx, ownerOf(r), id, o) },
	}
}

// teller is how the control plane is told of one VM.
func (a *agent) teller() func(context.Context, VM) error {
	if a.Nexus == nil || a.Mode == ModeOff {
		return func(context.Context, VM) error { return nil }
	}
	r := &ringer{client: nexus.Client{Host: a.env.Host, URL: a.Nexus}, mode: a.Mode, body: func(v VM) ([]byte, error) { return json.Marshal(v.wire()) }}
	return r.Tell
}

// raise counts this start in the state file.
func raise(ctx context.Context, env operation.Env) (epoch uint64, err error) {
	book, err := env.Ledger(ctx)
	if err != nil {
		return 0, err
	}
	_, err = book.Update(ctx, func(view ledger.View) ([]ledger.Fact, error) {
		if value, ok := view.Get(instance.KeyEpoch); ok {
			if err := json.Unmarshal(value, &epoch); err != nil {
				return nil, fmt.Errorf("%s in the state file: %w", instance.KeyEpoch, err)
			}
		}
		if epoch++; epoch > maxEpoch {
			return nil, fmt.Errorf("%s in the state file is %d: no generation can be above it", instance.KeyEpoch, epoch-1)
		}
		return []ledger.Fact{{Key: instance.KeyEpoch, Value: json.RawMessage(strconv.FormatUint(epoch, 10))}}, nil
	})
	return epoch, err
}

// http is a server whose clients cannot hold it up. HangUp ends it, and all that is
// being answered: the connections first, so that nobody takes what is cut short for
// an answer.
func (a *agent) http(ctx context.Context) (s *http.Server, hangUp func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answers := &server{endpoints: endpoints(), access: a.Access, board: a.board, work: a.work, flat: a.FlatNetwork, read: a.graves.note, meter: &a.meter, log: a.Log, draw: uuid.NewString}
	s = &http.Server{
		Handler:           a.door.before(answers),
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
