package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sim/world"
)

// waits measures how long after something was ready a wait for it ended, at
// the pace of a real sled. The sled knows from when each thing is so.
func (b bench) waits(ctx context.Context) ([]row, error) {
	const atOnce, rounds = 4, 3 // few at once: the simulated sled shares the machine
	s, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.slow(ctx); err != nil {
		return nil, err
	}
	heard := make([]listener, atOnce*rounds)
	errs := make([]error, len(heard))
	for round := range rounds {
		var all sync.WaitGroup
		for i := round * atOnce; i < (round+1)*atOnce; i++ {
			all.Go(func() { _, errs[i] = s.run(ctx, heard[i].observe, web1(fmt.Sprintf("web%d", i))...) })
		}
		all.Wait()
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var late times
	if err := s.World().View(ctx, func(tx *world.Tx) error {
		for i := range heard {
			late = append(late, heard[i].late(tx)...)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if len(late) < 4*len(heard) {
		return nil, fmt.Errorf("of %d instances only %d waits are known", len(heard), len(late))
	}
	return []row{timed("from ready to noticed, per wait: p99", 20*time.Millisecond, late.percentile(99),
		fmt.Sprintf("(p50 %s, n=%d, %d instances at once)", millis(late.median()), len(late), atOnce))}, nil
}

// listener keeps the waits of one run.
type listener struct {
	zone  string
	waits []wait
}

type wait struct {
	step         plan.Step
	begun, ended time.Time
}

func (l *listener) observe(e plan.Event) {
	if e.Kind != plan.Finished || e.Action.Change != plan.Wait {
		return
	}
	if s, ok := e.Action.Step.(smf.Await); ok {
		l.zone = s.Zone
	}
	now := time.Now()
	l.waits = append(l.waits, wait{step: e.Action.Step, begun: now.Add(-e.Elapsed), ended: now})
}

// late is how long each wait lasted once it could have ended.
func (l *listener) late(tx *world.Tx) times {
	var late times
	for _, w := range l.waits {
		ready, known := l.ready(tx, w.step)
		if !known {
			continue
		}
		if ready.Before(w.begun) {
			ready = w.begun
		}
		late = append(late, w.ended.Sub(ready))
	}
	return late
}

// ready is from when the sled was as the step waits for.
func (l *listener) ready(tx *world.Tx, step plan.Step) (time.Time, bool) {
	switch s := step.(type) {
	case smf.Await:
		if repository := tx.State.Services[l.zone]; repository != nil {
			if svc := repository.Instances[s.FMRI]; svc != nil {
				return from(svc.Timeline, s.State)
			}
		}
	case ipadm.AwaitAddress:
		if stack := tx.State.Stacks[l.zone]; stack != nil {
			for _, a := range stack.Addresses {
				if a.Object == s.Object {
					return from(a.Timeline, "ok")
				}
			}
		}
	case propolis.AwaitHTTP:
		if p := l.server(tx); p != nil {
			return p.Started, true
		}
	case propolis.AwaitState:
		if p := l.server(tx); p != nil && p.VM != nil {
			return from(p.VM.Timeline, s.States...)
		}
	}
	return time.Time{}, false
}

func (l *listener) server(tx *world.Tx) *world.Process {
	for _, p := range tx.State.Processes {
		if p.Zone == l.zone && p.Listen != "" {
			return p
		}
	}
	return nil
}

// from is when a timeline came to one of the states.
func from(timeline []world.Timepoint, states ...string) (time.Time, bool) {
	for _, point := range timeline {
		state, _, _ := strings.Cut(point.State, ">")
		if slices.Contains(states, state) && !strings.Contains(point.State, ">") {
			return point.From, true
		}
	}
	return time.Time{}, false
}
