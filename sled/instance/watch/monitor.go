package watch

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// Observation is what an incarnation's machine was seen to be.
type Observation struct {
	instance.Status
	Migration propolis.Migrations
	// Generation is Propolis' own: where only it grows, the machine was in
	// another state in between, and nobody saw it there.
	Generation uint64
}

// Zones lists the sled's zones.
type Zones func(context.Context) ([]zone.Zone, error)

// SharedZones lists for many who ask at about the same time, as all monitors do
// when a sled is in trouble: one listing is good for as long as age.
func SharedZones(h host.Host, age time.Duration) Zones {
	var mu sync.Mutex
	var at time.Time
	var all []zone.Zone
	return func(ctx context.Context) ([]zone.Zone, error) {
		mu.Lock()
		defer mu.Unlock()
		if !at.IsZero() && time.Since(at) < age {
			return all, nil
		}
		begun := time.Now()
		fresh, err := zone.List(ctx, h)
		if err == nil {
			all, at = fresh, begun
		}
		return fresh, err
	}
}

// How a monitor asks: a state may stand for months, so that a silent Propolis
// is asked in between whether it is still there; one that cannot be reached is
// asked again soon, then less often.
const (
	quiet        = time.Minute
	firstRetry   = 50 * time.Millisecond
	longestRetry = time.Second
)

// Monitor returns a function that reports the VM of a record with an incarnation, each time
// that it changes, until it is final or its context ends. It changes nothing. A
// machine that is gone with its zone, or with its Propolis, is Failed, or
// destroyed if it was stopping; one that cannot be reached keeps its state, and
// the reason says so.
func Monitor(s instance.Settings, h host.Host, r record.Record, zones Zones, tell func(Observation)) func(context.Context) {
	r.Name = strings.Clone(r.Name) // which is part of the text of all of the record
	m := &monitor{
		client: propolis.Client{Host: h, Target: layout.TargetOf(s.Blueprint(), r)}, zone: strings.Clone(r.Incarnation.Zone),
		zones: zones, tell: tell, pause: firstRetry, patience: spread(r.Incarnation.PropolisID),
	}
	m.last.State = record.Unknown
	return m.watch
}

// spread is how long a machine may be silent for the first time: those of a sled,
// which are all asked when an agent starts, are not to be asked all at once again
// each time that they were quiet.
func spread(id string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return quiet/2 + quiet/2*time.Duration(h.Sum32()%1000)/1000
}

// watch is for a goroutine of its own, of which there may be ten thousand: it
// waits here, and all else lies on other stacks. One that has grown stays large.
func (m *monitor) watch(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		var poll *propolis.Poll
		var err error
		aside(func() { poll, err = m.ask(ctx) })
		if err == nil {
			poll.Await(ctx, m.patience)
		}
		aside(func() { more = m.hear(ctx, poll, err) })
	}
}

// aside does something on another stack.
func aside(do func()) {
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	<-done
}

// ask asks for the next generation.
func (m *monitor) ask(ctx context.Context) (*propolis.Poll, error) {
	asking, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	return m.client.Poll(asking, m.next)
}

// hear reports the answer to a poll, and whether to ask again. What cannot
// be reached is to be asked later.
func (m *monitor) hear(ctx context.Context, poll *propolis.Poll, err error) (more bool) {
	var status propolis.Status
	if err == nil {
		reading, cancel := context.WithTimeout(ctx, quiet)
		status, err = m.client.Polled(reading, poll)
		cancel()
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		m.patience = quiet
		if err = m.probe(ctx); err == nil {
			return true
		}
	}
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil:
		m.pause = firstRetry
		m.next = status.Generation + 1
		m.say(Observation{instance.Status{State: strings.ToLower(status.State)}, status.Migration, status.Generation})
		return !propolis.Final(status.State)
	case instance.IsNoInstance(err):
		m.end("Propolis restarted and lost the VM")
		return false
	case m.gone(ctx, err):
		return false
	}
	timer := time.NewTimer(m.pause)
	select {
	case <-timer.C:
	case <-ctx.Done():
		timer.Stop()
	}
	m.pause = min(2*m.pause, longestRetry)
	return true
}

// probe asks what has been silent for long whether it is still there.
func (m *monitor) probe(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, layout.AskTimeout)
	defer cancel()
	_, err := m.client.Get(asking)
	if err == nil {
		m.reachable()
	}
	return err
}

// monitor is one run that is watched.
type monitor struct {
	client   propolis.Client
	zone     string
	zones    Zones
	tell     func(Observation)
	next     uint64        // the generation that is waited for
	patience time.Duration // how long the machine may be silent
	pause    time.Duration // until it is asked again, if it cannot be reached
	last     Observation
}

// gone reports why a VM could not be asked; true if it will never answer
// again.
func (m *monitor) gone(ctx context.Context, why error) bool {
	all, err := m.zones(ctx)
	if err != nil {
		m.doubt("cannot determine whether its zone runs: " + err.Error())
		return false
	}
	i := slices.IndexFunc(all, func(z zone.Zone) bool { return z.Name == m.zone })
	switch {
	case i < 0:
		m.end("its zone " + m.zone + " is gone")
		return true
	case all[i].State != zone.Running:
		m.end("its zone is " + string(all[i].State) + ", not running")
		return true
	case errors.Is(why, context.DeadlineExceeded):
		m.doubt("Propolis does not answer")
	default:
		m.doubt("Propolis cannot be reached: " + innermost(why).Error())
	}
	return false
}

// innermost is what an error says at last: of one that comes again and again,
// each time by another request, the same.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// end tells that the machine is no more.
func (m *monitor) end(reason string) {
	if m.last.State == "stopping" || m.last.State == record.Stopped {
		m.say(Observation{instance.Status{State: "destroyed"}, m.last.Migration, m.last.Generation})
		return
	}
	m.say(Observation{instance.Status{State: record.Failed, Reason: reason}, m.last.Migration, m.last.Generation})
}

// doubt reports why nothing new is known.
func (m *monitor) doubt(reason string) {
	now := m.last
	now.Reason = reason
	m.say(now)
}

func (m *monitor) reachable() {
	now := m.last
	now.Reason = ""
	m.say(now)
}

func (m *monitor) say(now Observation) {
	if now.Status == m.last.Status && now.Generation == m.last.Generation &&
		sameMigration(now.Migration.In, m.last.Migration.In) && sameMigration(now.Migration.Out, m.last.Migration.Out) {
		return
	}
	m.last = now
	m.tell(now)
}

func sameMigration(a, b *propolis.Migration) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
