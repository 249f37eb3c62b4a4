package operation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// bracket is what a run's work has around it.
type bracket struct {
	env    Env
	sign   *sign
	record *recorder
	report *Report
	called string // see name
}

// run applies a plan, and notes what it does.
func (b *bracket) run(ctx context.Context, p plan.Plan, keep bool) (plan.Outcome, error) {
	return plan.Apply(ctx, host.Trace(b.env.Host, b.record.note), p, plan.Options{Keep: keep, Observe: func(e plan.Event) {
		b.report.Steps = noteStep(b.report.Steps, e)
		b.tell(e, p.Policy == plan.Undo && !keep)
	}})
}

// tell passes an event on, to those that the lock keeps out, too.
func (b *bracket) tell(e plan.Event, undoes bool) {
	view, verb := b.report.View, b.report.Verb
	told := Event{Event: e, Verb: verb, Name: b.name(), Undoes: undoes, Usual: func() time.Duration { return usual(view, verb) }}
	b.sign.note(told)
	if b.env.Observe != nil {
		b.env.Observe(told)
	}
}

// name is what an operator calls the subject; empty before the intent: what is new has no
// record yet.
func (b *bracket) name() string {
	switch {
	case b.env.Name == nil:
		return b.report.Subject
	case b.report.ID == "":
		return ""
	case b.called == "":
		b.called = b.env.Name(b.report.View, b.report.Subject)
	}
	return b.called
}

// do does what comes before the intent.
func (b *bracket) do(ctx context.Context, ahead []plan.Action) error {
	if len(ahead) == 0 {
		return nil
	}
	outcome, err := b.run(ctx, plan.Plan{Actions: ahead, Policy: plan.Undo}, false)
	return errors.Join(err, outcome.Err())
}

// tidy does what comes after the outcome.
func (b *bracket) tidy(ctx context.Context, behind []plan.Action) {
	if len(behind) == 0 {
		return
	}
	outcome, err := b.run(context.WithoutCancel(ctx), plan.Plan{Actions: behind, Policy: plan.Continue}, false)
	if err = errors.Join(err, outcome.Err()); err != nil {
		b.env.warn(err)
	}
}

// apply does the plan under the subject's lock and closes the intent, and
// those of the dead runs that it took over, with the outcome.
func (b *bracket) apply(ctx context.Context, book book, keep bool, seal func(context.Context, host.Host) ([]ledger.Fact, error), d Decision) (Report, error) {
	env, report := b.env, b.report
	outcome, err := b.run(ctx, d.Plan, keep)
	if err != nil {
		return *report, err
	}
	report.Name, report.Outcome, report.Elapsed = b.name(), outcome, time.Since(report.Started)
	defer func() { b.tell(plan.Event{Kind: Over, Elapsed: time.Since(report.Started), Err: outcome.Err()}, false) }()
	for _, p := range outcome.Passed {
		env.warn(p)
	}

	facts := closing(d, *report)
	if seal != nil && outcome.Err() == nil {
		sealed, err := seal(context.WithoutCancel(ctx), env.Host)
		if err != nil { // what was made is there, and only this intent knows it
			for _, a := range outcome.Done {
				if a.Change == plan.Create {
					report.Outcome.Leftovers = append(report.Outcome.Leftovers, a.Object)
				}
			}
			b.trace()()
			return *report, err
		}
		facts = append(facts, sealed...)
	}
	traced := b.trace()
	view, err := book.Update(context.WithoutCancel(ctx), func(view ledger.View) ([]ledger.Fact, error) {
		return remembered(env, view, *report, report.ID, facts)
	})
	traced()
	if err != nil {
		return *report, errors.Join(outcome.Err(), &OutcomeError{Err: err})
	}
	report.View = view
	var behind []plan.Action
	switch {
	case outcome.Err() == nil:
		behind = d.Behind
	case len(outcome.Leftovers) == 0:
		behind = d.Reverted
	}
	if len(behind) > 0 {
		b.tidy(ctx, behind)
		b.trace()()
	}
	report.Elapsed = time.Since(report.Started)
	return *report, outcome.Err()
}

// trace keeps what was done until now, while the outcome is written; the function that it
// returns waits for that. A trace that cannot be kept costs nobody anything but a warning.
func (b *bracket) trace() (wait func()) {
	report := *b.report
	kept := make(chan error, 1)
	go func() { kept <- b.record.write(b.env.Host.Files(), b.env.RunDir, report) }()
	return func() {
		if err := <-kept; err != nil {
			b.env.warn(fmt.Errorf("keep the trace: %w", err))
		}
	}
}

// noteStep adds what has ended to the steps.
func noteStep(steps []TraceStep, e plan.Event) []TraceStep {
	switch e.Kind {
	case plan.Started, plan.Undoing:
		return steps
	}
	s := TraceStep{Action: e.Action.ID, Verb: e.Action.Step.Verb(), Object: e.Action.Object, Elapsed: e.Elapsed}
	if e.Kind == plan.Undone || e.Kind == plan.UndoFailed {
		s.Action, s.Verb = "undo "+s.Action, "undo "+s.Verb
	}
	if e.Err != nil {
		s.Error = e.Err.Error()
	}
	return append(steps, s)
}

// closing lists the facts of the outcome. While a host command of the run goes
// on, or something is left that only this intent explains, it stays open.
func closing(d Decision, report Report) []ledger.Fact {
	ended := append(d.Intent.superseded(), ledger.Fact{Key: intentKey(report.ID)})
	switch {
	case report.Outcome.Err() == nil:
		return append(d.OnSuccess, ended...)
	case len(report.Outcome.Leftovers) == 0:
		return append(d.OnUndo, ended...)
	default:
		return d.OnFailure
	}
}
