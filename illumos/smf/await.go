package smf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Await waits until an instance is in a state; zone "" is the global one. That
// the zone's svc.configd does not answer yet, or does not know the instance
// yet, is part of the wait. It ends with a *MaintenanceError if the instance
// goes to maintenance, with ErrNoZone, or with the context.
//
// Of a zone that boots, Root says where its root lies in the global zone. Then
// the wait runs no command until svc.configd answers.
type Await struct{ Zone, Root, FMRI, State string }

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
	w := waiter{Await: s, host: h, pause: firstPause, limit: maxClosed}
	if s.Root != "" {
		if done, err := w.boot(ctx); done || err != nil && ctx.Err() == nil {
			return err
		}
	}
	for {
		var done bool
		var err error
		if w.has {
			done, err = w.watch(ctx, lookSoon)
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

// repositoryDoor is where svc.configd answers, below a zone's root. svcprop -z opens
// this file (lowlevel.c in usr/src/lib/libscf/common). It lies in a file system
// that is new at each boot.
const repositoryDoor = "/etc/svc/volatile/repository_door"

// earlyImport has a state as soon as svc.configd answers, and is online when
// svc.startd begins with the other instances (fork_emi in
// usr/src/cmd/svc/startd/fork.c).
const earlyImport = "svc:/system/early-manifest-import:default"

// boot waits until the instance can be expected to have a state: until the door is
// there, and the early import is through.
func (w *waiter) boot(ctx context.Context) (done bool, err error) {
	waited, done, err := w.knock(ctx)
	if done || err != nil {
		return done, err
	}
	first := lookSoon
	if waited {
		first = importTime
	}
	early := waiter{Await: Await{Zone: w.Zone, FMRI: earlyImport, State: Online}, host: w.host, has: true}
	for early.has && !done && err == nil && ctx.Err() == nil {
		done, err = early.watch(ctx, first)
	}
	// Whatever its state: the instance itself is asked next, and decides.
	w.has, w.pause = true, firstPause
	return false, nil
}

// importTime is longer than the early import of a seeded repository. Behind a door
// that was seen to open, it has only just begun, and no look is needed before.
//
// Guess early-import-under-half-a-second: early-manifest-import of a seeded repository takes less
// than half a second; a zone whose door was seen to open is not looked at before that.
// Check: `svcprop -p restarter/state_timestamp svc:/system/early-manifest-import:default` in a
// fresh zone, next to the time of its `repository_door`
const importTime = 500 * time.Millisecond

// knock waits for the door, and says whether it had to. Where one cannot tell, and now
// and then, it asks.
func (w *waiter) knock(ctx context.Context) (waited, done bool, err error) {
	asked := time.Now()
	for ctx.Err() == nil {
		_, err := w.host.Files().Stat(w.Root + repositoryDoor)
		if !errors.Is(err, fs.ErrNotExist) {
			return waited, false, nil
		}
		_, err = w.host.Files().Stat(path.Dir(w.Root + repositoryDoor))
		if err != nil || time.Since(asked) >= lookRarely {
			if done, err := w.judge(State(ctx, w.host, w.Zone, w.FMRI)); done || err != nil || w.has {
				return waited, done, err
			}
			asked = time.Now()
		}
		w.sleep(ctx)
		waited = true
	}
	return waited, false, nil
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

// The looks at the state next to a svcprop -w that does not end. The first one
// starts behind it, and so reads behind it: a change before svcprop -w read the
// generation is in what this look reads, and a later one ends svcprop -w. The
// others guard against a missed event.
const (
	lookSoon   = 10 * time.Millisecond
	lookRarely = 2 * time.Second
)

// watch waits until there is reason to decide again: svcprop -w has ended, or a
// look at the state next to it decides, the first one after this long.
func (w *waiter) watch(ctx context.Context, first time.Duration) (done bool, err error) {
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
	for pause := first; ; pause = lookRarely {
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
