package smf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Await waits until an instance is in a state; zone "" is the global one. That
// the zone's svc.configd does not answer yet, or does not know the instance
// yet, is part of the wait. It ends with a *MaintenanceError if the instance
// goes to maintenance, with ErrNoZone, or with the context.
type Await struct{ Zone, FMRI, State string }

// Verb names the step.
func (Await) Verb() string { return "smf.await" }

// Limit is more than twice the 70 s that single-user took under load (omicron#5318).
func (Await) Limit() (most time.Duration, waits bool) { return 3 * time.Minute, true }

// Explain is the wait.
func (s Await) Explain() []host.Line {
	where := "in zone " + s.Zone
	if s.Zone == "" {
		where = "in the global zone"
	}
	return []host.Line{host.WaitLine(fmt.Sprintf("%s %s is %s", s.FMRI, where, s.State))}
}

// Needs is what it looks and waits with.
func (Await) Needs() []string { return []string{"svcprop"} }

// Undo is nothing.
func (Await) Undo() any { return nil }

// The pauses of a wait while there is nothing to wait on: they double, up to
// maxClosed before the door of svc.configd is there. Once it answers, an
// instance that it does not know, or that has no state, is some way from being
// online, and may never come: up to maxUnknown.
const (
	firstPause = time.Millisecond
	maxClosed  = 10 * time.Millisecond
	maxUnknown = 80 * time.Millisecond
)

// Do waits.
func (s Await) Do(ctx context.Context, h host.Host) error {
	w := waiter{Await: s, host: h, pause: firstPause}
	for {
		var done bool
		var err error
		if w.has {
			done, err = w.watch(ctx)
		} else {
			done, err = w.judge(State(ctx, h, s.Zone, s.FMRI))
		}
		if ctx.Err() != nil && !done {
			return w.expired(ctx)
		}
		if done || err != nil {
			return err
		}
		if !w.has {
			w.sleep(ctx)
		}
	}
}

// waiter is a wait under way.
type waiter struct {
	Await
	host    host.Host
	has     bool          // the instance had a state when it was last looked at
	unknown bool          // it was not even there
	pause   time.Duration // the next one, while it has none
	limit   time.Duration // of the pauses
	last    string        // the state that was seen last
}

// judge decides on a state that was read, or on why it was not.
func (w *waiter) judge(state string, err error) (done bool, failed error) {
	switch {
	case errors.Is(err, ErrNoZone):
		return false, err
	case errors.Is(err, errNoState):
		w.has, w.unknown, w.limit = false, false, maxUnknown
		return false, nil
	case errors.Is(err, host.ErrTransient):
		w.has, w.unknown, w.limit = false, false, maxClosed
		return false, nil
	case errors.Is(err, host.ErrNotFound):
		w.has, w.unknown, w.limit = false, true, maxUnknown
		return false, nil
	case err != nil:
		return false, err
	}
	w.has, w.unknown, w.last = true, false, state
	if state == w.State {
		return true, nil
	}
	if state == Maintenance {
		return false, &MaintenanceError{Zone: w.Zone, FMRI: w.FMRI, Wanted: w.State}
	}
	return false, nil
}

// sleep pauses: there is no restarter group to wait on.
func (w *waiter) sleep(ctx context.Context) {
	timer := time.NewTimer(min(w.pause, w.limit))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	w.pause = min(2*w.pause, maxUnknown)
}

// The looks at the state next to a svcprop -w that does not end. The first ones
// come soon: a change can slip through while the process starts. The others
// guard against a missed event and end with lookRarely.
const (
	lookSoon   = 20 * time.Millisecond
	lookRarely = 2 * time.Second
)

// watch waits until there is reason to decide again: svcprop -w has ended, or a
// look at the state next to it decides. The first look follows the start of
// svcprop -w at once: a change before that start is in what is read, and a
// later one ends svcprop -w.
func (w *waiter) watch(ctx context.Context) (done bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	changed := make(chan answer, 1)
	go func() {
		state, err := ask(ctx, w.host, waitCommand(w.Zone, w.FMRI))
		changed <- answer{state, err}
	}()
	ended := false
	defer func() {
		stop()
		if !ended {
			<-changed // the process is gone before we are
		}
	}()
	for pause := time.Duration(0); ; pause = min(max(lookSoon, 2*pause), lookRarely) {
		timer := time.NewTimer(pause)
		select {
		case a := <-changed:
			timer.Stop()
			ended = true
			return w.judge(a.state, a.err)
		case <-ctx.Done():
			timer.Stop()
			return false, nil
		case <-timer.C:
		}
		if done, err := w.judge(State(ctx, w.host, w.Zone, w.FMRI)); done || err != nil || !w.has {
			return done, err
		}
	}
}

// answer is what a svcprop told.
type answer struct {
	state string
	err   error
}

// expired is the end of the context.
func (w *waiter) expired(ctx context.Context) error {
	last := w.last
	switch {
	case w.unknown:
		last = "unknown there"
	case last == "":
		last = "not there yet"
	}
	return fmt.Errorf("service %s in zone %q is %s, not %s: %w", w.FMRI, w.Zone, last, w.State, context.Cause(ctx))
}
