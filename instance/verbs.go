package instance

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/propolis"
)

// Stop ends the instance's run and keeps its record, with address and MACs.
// Stopping what is stopped does nothing.
func (s Settings) Stop(ctx context.Context, env operation.Env, c Change) (Result, error) {
	return s.takeDown(ctx, env, c, func(old Record, at operation.Moment) (Record, error) {
		stopped := old
		stopped.Run, stopped.Leaving, stopped.Wanted = nil, nil, WantedStopped
		stopped.Generation, stopped.Updated = old.Generation+1, at.Now
		return stopped, nil
	})
}

// Delete ends the instance's run and drops its record with all that it
// reserves. One that is protected is a *ProtectedError, unless c.Yes.
func (s Settings) Delete(ctx context.Context, env operation.Env, c Change) (Result, error) {
	return s.takeDown(ctx, env, c, func(old Record, _ operation.Moment) (Record, error) {
		if old.Protected && !c.Yes {
			return old, &ProtectedError{Name: old.Name}
		}
		return Record{}, nil
	})
}

// takeDown is the operation behind stop and delete. The run's names stay
// recorded until all of it is gone, so that a later try knows them.
func (s Settings) takeDown(ctx context.Context, env operation.Env, c Change, becomes func(Record, operation.Moment) (Record, error)) (Result, error) {
	r, err := s.find(ctx, env, c.Wanted.Ref)
	if err != nil {
		return Result{}, err
	}
	result := r
	report, err := operation.Run(ctx, env, operation.Request[Seen]{
		Verb: c.Verb, Subject: Subject(r.ID), DryRun: c.DryRun, Keep: c.Keep,
		Look: s.lookAt(env, r.ID),
		Decide: func(view ledger.View, seen Seen, at operation.Moment) (operation.Decision, error) {
			if err := s.free(ctx, env, view, r.ID); err != nil {
				return operation.Decision{}, err
			}
			old, known, err := Load(view, r.ID)
			if err != nil {
				return operation.Decision{}, err
			}
			if !known {
				return operation.Decision{}, &NotFoundError{Name: c.Wanted.Ref}
			}
			next, err := becomes(old, at)
			if err != nil {
				return operation.Decision{}, err
			}
			d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}}
			if len(old.Runs()) > 0 {
				d.Plan.Actions, d.Intent.Removes = s.down(old, seen), removes(old.Runs(), seen)
			}
			result = next
			if d.Plan.Empty() && len(old.Runs()) == 0 && next.Wanted == old.Wanted && next.ID != "" {
				result = old
				return d, nil
			}
			d.After, err = next.replaces(old)
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}

func isNoInstance(err error) bool { return errors.Is(err, propolis.ErrNoInstance) }

// Reboot resets the machine and waits until it runs again. The zone stays.
func (s Settings) Reboot(ctx context.Context, env operation.Env, c Change) (Result, error) {
	return s.power(ctx, env, c, "Reboot", "a hard reset", "Running")
}

// PowerOff powers the machine off and waits until it is gone. The zone stays,
// and so does what is wanted: ensure builds the instance anew.
func (s Settings) PowerOff(ctx context.Context, env operation.Env, c Change) (Result, error) {
	return s.power(ctx, env, c, "Stop", "a hard power-off", "Destroyed")
}

// power asks Propolis for a change of a running machine's state and waits for
// what comes of it. There is no trace of it on the host: the intent holds the
// generation that was seen before.
func (s Settings) power(ctx context.Context, env operation.Env, c Change, ask, why, until string) (Result, error) {
	r, err := s.find(ctx, env, c.Wanted.Ref)
	if err != nil {
		return Result{}, err
	}
	report, err := operation.Run(ctx, env, operation.Request[Seen]{
		Verb: c.Verb, Subject: Subject(r.ID), DryRun: c.DryRun,
		Look: s.lookAt(env, r.ID),
		Decide: func(view ledger.View, seen Seen, at operation.Moment) (operation.Decision, error) {
			old, _, err := Load(view, r.ID)
			if err != nil {
				return operation.Decision{}, err
			}
			if seen.Inside.Err != nil {
				return operation.Decision{}, &UnseenError{Name: r.Name, Err: seen.Inside.Err}
			}
			if old.Run == nil || seen.Inside.VM.State != "Running" {
				return operation.Decision{}, &StateError{Name: r.Name, State: s.status(old, seen).State, Needs: Running}
			}
			r = old
			r.Generation, r.Updated = old.Generation+1, at.Now
			return s.powerDecision(old, r, seen.Inside.VM.Generation, ask, why, until)
		},
	})
	return Result{Record: r, Report: report}, err
}

func (s Settings) powerDecision(old, next Record, generation uint64, ask, why, until string) (operation.Decision, error) {
	object, target := "propolis "+old.Name, s.target(old)
	change := propolis.ChangeState{Target: target, State: ask}
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop, Actions: plan.Chain(
		plan.Action{ID: change.Verb() + " " + old.Name, Object: object, Why: why, Change: plan.Modify, Step: change},
		plan.Action{ID: "propolis.await-state " + old.Name, Object: object, Change: plan.Wait, Step: propolis.AwaitState{Target: target, States: []string{until}, After: generation}},
	)}}
	d.Intent.Changes = []operation.Object{{Kind: "vm", Name: old.ID, Identity: old.Run.PropolisID, Old: strconv.FormatUint(generation, 10)}}
	var err error
	d.After, err = next.replaces(old)
	return d, err
}

// StateError is a verb that the instance's state does not allow.
type StateError struct{ Name, State, Needs string }

// Error names both states.
func (e *StateError) Error() string {
	return fmt.Sprintf("instance %q is %s, and must be %s", e.Name, e.State, e.Needs)
}

func (s Settings) find(ctx context.Context, env operation.Env, ref string) (Record, error) {
	book, err := env.Ledger(ctx)
	if err != nil {
		return Record{}, err
	}
	view, err := book.Read(ctx)
	if err != nil {
		return Record{}, err
	}
	return s.Find(view, ref)
}

// lookAt looks for an operation on a recorded instance.
func (s Settings) lookAt(env operation.Env, id string) func(context.Context, host.Host) (Seen, error) {
	return func(ctx context.Context, h host.Host) (Seen, error) {
		r, err := recorded(ctx, env, id)
		if err != nil {
			return Seen{}, err
		}
		boot, err := operation.Boot(env)
		if err != nil {
			return Seen{}, err
		}
		return s.Look(ctx, h, r, r.Spec.Disks, boot)
	}
}
