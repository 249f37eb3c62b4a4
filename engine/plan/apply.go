package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// Options say how a plan is applied.
type Options struct {
	Parallel int         // actions at once; 0 is 16
	Keep     bool        // leave what was made even if Policy is Undo
	Observe  func(Event) // called from one goroutine at a time; may be nil
}

// Event is one thing that happened to an action.
type Event struct {
	Kind   EventKind
	Action Action
	// Step counts from 1 what began, out of Steps: the plan's actions, or those that are
	// undone. Both are 0 where something ended.
	Step, Steps int
	Elapsed     time.Duration
	Err         error
}

// EventKind says what happened.
type EventKind string

// The kinds.
const (
	Started    EventKind = "started"
	Finished   EventKind = "finished"
	Failed     EventKind = "failed"
	Undoing    EventKind = "undoing"
	Undone     EventKind = "undone"
	UndoFailed EventKind = "undo failed"
	// Passed is a BestEffort action that failed.
	Passed EventKind = "passed"
)

// StepError is an action that failed.
type StepError struct {
	Action  Action
	Elapsed time.Duration
	Err     error
	Quote   Quote // of the log, with the reason; empty if no log has it
}

// Error says what was being done to which object, once: most causes name it.
func (e *StepError) Error() string {
	_, name, _ := strings.Cut(e.Action.Object, " ")
	if cause := e.Err.Error(); name != "" && strings.Contains(cause, name) {
		return e.Action.Step.Verb() + ": " + cause
	}
	return fmt.Sprintf("%s: %s: %v", e.Action.Step.Verb(), e.Action.Object, e.Err)
}

func (*StepError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// Outcome is the result of a plan.
type Outcome struct {
	Done   []Action     // in the order in which they were done, without those undone
	Undone []Action     // in the order in which they were undone
	Failed []*StepError // in the order in which they failed
	Passed []*StepError // best-effort actions that failed; the plan counts as done all the same
	Kept   []Action     // what was done for the evidence before the run was taken back
	// Leftovers names what the run made and did not take back, or should have
	// removed and did not: what the operator finds on the host.
	Leftovers []string
	// Interrupted is the context's cause when the run ended because of it.
	Interrupted error
}

// Err is nil if everything was done, else what went wrong.
func (o Outcome) Err() error {
	var errs []error
	for _, f := range o.Failed {
		errs = append(errs, f)
	}
	if o.Interrupted != nil && len(errs) == 0 {
		errs = append(errs, o.Interrupted)
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// Made lists the objects that the run made and that stay.
func (o Outcome) Made() []string {
	var made []string
	for _, a := range o.Done {
		if a.Change == Create && undoable(a) && !slices.Contains(made, a.Object) {
			made = append(made, a.Object)
		}
	}
	return made
}

// Apply does the plan's actions, each as soon as those it comes after are
// done. When ctx ends, no further action begins: waits are abandoned, and a step
// that changes the host still runs to its end, unless ctx has a deadline, which
// bounds it (the host then still runs it: host.ErrStillRunning).
func Apply(ctx context.Context, h host.Host, p Plan, o Options) (Outcome, error) {
	p, err := p.Sorted()
	if err != nil {
		return Outcome{}, err
	}
	r := run{h: h, plan: p, options: o, state: make(map[string]actionState, len(p.Actions)), half: map[string]bool{}}
	r.forward(ctx)
	r.outcome.Interrupted = r.interrupted
	if r.failed() {
		r.gather(ctx)
	}
	if r.takesBack() {
		r.backward(ctx)
	}
	r.outcome.Leftovers = r.left()
	return r.outcome, nil
}

type actionState int

const (
	waiting actionState = iota
	running
	done
	broken
	undone
)

type run struct {
	h           host.Host
	plan        Plan
	options     Options
	state       map[string]actionState
	outcome     Outcome
	interrupted error
	stillRuns   bool
	half        map[string]bool // ids of actions that failed and left something
	undoing     int             // how many actions were begun to be undone, of so many
	undos       int
	besides     []string // objects next to an action's that could not be removed
}

type ending struct {
	action  Action
	elapsed time.Duration
	err     error
}

// forward starts what can be started and collects what ends, until nothing
// more will.
func (r *run) forward(ctx context.Context) {
	waits, abandon := context.WithCancel(ctx)
	defer abandon()
	ends := make(chan ending)
	busy, begun := 0, 0
	parallel := r.options.Parallel
	if parallel <= 0 {
		parallel = 16
	}
	for {
		for _, a := range r.plan.Actions {
			if busy >= parallel || !r.startable(ctx, a) {
				continue
			}
			r.state[a.ID] = running
			begun++
			r.observe(Event{Kind: Started, Action: a, Step: begun, Steps: len(r.plan.Actions)})
			busy++
			go func() { ends <- r.do(ctx, waits, a) }()
		}
		if busy == 0 {
			break
		}
		e := <-ends
		busy--
		r.ended(e)
		if r.failed() && r.plan.Policy != Continue {
			abandon()
		}
	}
	if r.interrupted == nil && ctx.Err() != nil && slices.ContainsFunc(r.plan.Actions, func(a Action) bool { return r.state[a.ID] == waiting }) {
		r.interrupted = context.Cause(ctx)
	}
}

func (r *run) startable(ctx context.Context, a Action) bool {
	if r.state[a.ID] != waiting || ctx.Err() != nil || r.failed() && r.plan.Policy != Continue {
		return false
	}
	return !slices.ContainsFunc(a.After, func(id string) bool { return r.state[id] != done })
}

// do runs one step under its own deadline.
func (r *run) do(ctx, waits context.Context, a Action) ending {
	most, onlyWaits := limitOf(a.Step)
	parent := waits
	if !onlyWaits {
		parent = context.WithoutCancel(ctx)
		if deadline, ok := ctx.Deadline(); ok {
			var release context.CancelFunc
			parent, release = context.WithDeadline(parent, deadline)
			defer release()
		}
	}
	stepCtx := parent
	if most > 0 {
		var release context.CancelFunc
		stepCtx, release = context.WithTimeout(parent, most)
		defer release()
	}
	start := time.Now()
	err := attempt(stepCtx, host.ForAction(r.h, a.ID), a.Step)
	if err != nil && errors.Is(stepCtx.Err(), context.DeadlineExceeded) && parent.Err() == nil {
		err = &LimitError{Verb: a.Step.Verb(), Limit: most, Err: err}
	}
	return ending{action: a, elapsed: time.Since(start), err: err}
}

// attempt turns a panic into an error, so that what was made is still undone.
func attempt(ctx context.Context, h host.Host, s Step) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, r)
		}
	}()
	return s.Do(ctx, h)
}

// ErrPanic is a step that panicked: a defect of sledctl.
var ErrPanic = errors.New("panic")

// ended notes the result of an action. A removal that finds nothing has what
// it wanted: a brand's uninstall takes more with it than it says.
func (r *run) ended(e ending) {
	if e.err == nil || e.action.Change == Remove && errors.Is(e.err, host.ErrNotFound) {
		r.state[e.action.ID] = done
		r.outcome.Done = append(r.outcome.Done, e.action)
		r.observe(Event{Kind: Finished, Action: e.action, Elapsed: e.elapsed})
		return
	}
	if e.action.BestEffort && !errors.Is(e.err, host.ErrStillRunning) {
		r.state[e.action.ID] = done
		r.outcome.Passed = append(r.outcome.Passed, &StepError{Action: e.action, Elapsed: e.elapsed, Err: e.err})
		r.observe(Event{Kind: Passed, Action: e.action, Elapsed: e.elapsed, Err: e.err})
		return
	}
	r.state[e.action.ID] = broken
	r.stillRuns = r.stillRuns || errors.Is(e.err, host.ErrStillRunning)
	_, r.half[e.action.ID] = errors.AsType[*host.LeftoverError](e.err)
	if r.failed() && r.plan.Policy != Continue && errors.Is(e.err, context.Canceled) {
		return // a wait that we abandoned ourselves
	}
	r.outcome.Failed = append(r.outcome.Failed, &StepError{Action: e.action, Elapsed: e.elapsed, Err: e.err})
	r.observe(Event{Kind: Failed, Action: e.action, Elapsed: e.elapsed, Err: e.err})
}

func (r *run) failed() bool { return len(r.outcome.Failed) > 0 || r.interrupted != nil }

// takesBack reports whether something that the run made is removed again. While a host
// command of it still runs, nothing is removed under it.
func (r *run) takesBack() bool {
	if r.stillRuns {
		return false
	}
	if !r.failed() || r.plan.Policy != Undo || r.options.Keep {
		return false
	}
	return slices.ContainsFunc(r.plan.Actions, func(a Action) bool {
		return r.state[a.ID] == done && undoable(a) || r.state[a.ID] == broken && len(a.Cleanup) > 0
	})
}

// backward undoes what was done, newest first, in time of its own.
func (r *run) backward(ctx context.Context) {
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), UndoTime)
	defer release()
	r.undos = r.toTakeBack()
	for _, a := range slices.Backward(r.plan.Actions) {
		if r.state[a.ID] == broken {
			r.takeBack(ctx, a, a.Cleanup)
		}
	}
	var kept []Action
	for _, a := range slices.Backward(r.outcome.Done) {
		if r.takeBack(ctx, a, a.rollback()) {
			r.state[a.ID] = undone
			r.outcome.Undone = append(r.outcome.Undone, a)
		} else {
			kept = append(kept, a)
		}
	}
	slices.Reverse(kept)
	r.outcome.Done = kept
}

// toTakeBack is how many actions have something to undo.
func (r *run) toTakeBack() (n int) {
	for _, a := range r.plan.Actions {
		if r.state[a.ID] == broken && len(a.Cleanup) > 0 {
			n++
		}
	}
	for _, a := range r.outcome.Done {
		if undoable(a) {
			n++
		}
	}
	return n
}

// takeBack undoes one action; false if there is nothing to undo or it failed.
// What is gone by then went with what was undone before it.
func (r *run) takeBack(ctx context.Context, a Action, back []Action) bool {
	if len(back) == 0 {
		return false
	}
	r.undoing++
	r.observe(Event{Kind: Undoing, Action: a, Step: r.undoing, Steps: r.undos})
	start, ok := time.Now(), true
	for _, b := range back {
		err := attempt(ctx, host.ForAction(r.h, "undo "+a.ID), b.Step)
		if err == nil || errors.Is(err, host.ErrNotFound) {
			continue
		}
		ok = false
		if b.Object != a.Object {
			r.besides = append(r.besides, b.Object)
		}
		r.observe(Event{Kind: UndoFailed, Action: a, Elapsed: time.Since(start), Err: err})
		r.outcome.Failed = append(r.outcome.Failed, &StepError{Action: b, Elapsed: time.Since(start), Err: err})
	}
	if ok {
		r.observe(Event{Kind: Undone, Action: a, Elapsed: time.Since(start)})
	}
	return ok
}

// passed reports whether a best effort failed, so that there is nothing to undo.
func (r *run) passed(a Action) bool {
	return slices.ContainsFunc(r.outcome.Passed, func(p *StepError) bool { return p.Action.ID == a.ID })
}

// left lists objects once each, in the plan's order: what was made or changed and is not
// as before. What a failed step itself
// may have left counts while its command still runs, and if it says so
// (host.LeftoverError).
func (r *run) left() []string {
	if !r.failed() {
		return nil
	}
	var left []string
	for _, a := range r.plan.Actions {
		state := r.state[a.ID]
		made := (a.Change == Create || a.Change == Modify && !r.passed(a)) && state == done && undoable(a) ||
			state == broken && (r.half[a.ID] || a.Change == Create && r.stillRuns)
		kept := a.Change == Remove && state != done || a.Irrevocable && state == done
		if (made || kept) && !slices.Contains(left, a.Object) {
			left = append(left, a.Object)
		}
	}
	for _, object := range r.besides {
		if !slices.Contains(left, object) {
			left = append(left, object)
		}
	}
	return left
}

// undoable says whether the action made something of its own: one without an
// undo goes with the object that it was made in.
func undoable(a Action) bool { return len(a.rollback()) > 0 }

func (r *run) observe(e Event) {
	if r.options.Observe != nil {
		r.options.Observe(e)
	}
}
