package instance

import (
	"context"
	"errors"
	"slices"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/propolis"
)

// Stop ends the instance's run and keeps its record, with address and MACs.
// Stopping what is stopped does nothing.
func (s Settings) Stop(ctx context.Context, env operation.Env, c Change) (Result, error) {
	return takeDown(ctx, s, env, c, func(old Record, at operation.Moment) (Record, error) {
		stopped := old.stopped(at)
		if c.Evacuate && old.VMM == nil && old.Ending == nil {
			stopped.Wanted = old.Wanted
		}
		return stopped, nil
	})
}

// Delete ends the instance's run and drops its record with all that it
// reserves. One that is protected is a *ProtectedError, unless c.Yes.
func (s Settings) Delete(ctx context.Context, env operation.Env, c Change) (Result, error) {
	return takeDown(ctx, s, env, c, func(old Record, _ operation.Moment) (Record, error) {
		if old.Protected && !c.Yes {
			return old, &ProtectedError{Name: old.Name}
		}
		return Record{}, nil
	})
}

// takeDown is the operation behind stop and delete. The run's names stay
// recorded until all of it is gone, so that a later try knows them.
func takeDown(ctx context.Context, s Settings, env operation.Env, c Change, becomes func(Record, operation.Moment) (Record, error)) (Result, error) {
	r, err := findRecorded(ctx, s, env, c)
	if none, ok := errors.AsType[*NotFoundError](err); ok && !c.DryRun {
		dropUnrecorded(ctx, s, env, c, none.Name)
	}
	if err != nil {
		return Result{}, err
	}
	result := r
	purgeSecrets(ctx, s.SecretDir, env, c.DryRun)
	report, err := operation.Run(ctx, env, operation.Request[Seen]{
		Verb: c.Verb, Subject: Subject(r.ID), DryRun: c.DryRun, Keep: c.Keep,
		Look: lookAt(s, env, r.ID),
		Decide: func(view ledger.View, seen Seen, at operation.Moment) (operation.Decision, error) {
			if err := notBusy(ctx, env, view, r.ID); err != nil {
				return operation.Decision{}, err
			}
			old, err := recordOf(view, r.ID, c.Wanted.Ref)
			if err != nil {
				return operation.Decision{}, err
			}
			next, err := becomes(old, at)
			if err != nil {
				return operation.Decision{}, err
			}
			if spared, err := spared(old, next, seen, c); spared || err != nil {
				result = old
				return operation.Decision{}, err
			}
			d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}}
			if len(old.Runs()) > 0 {
				d.Plan.Actions, d.Intent.Removes, d.Warn = teardown(s, old, seen, at, c.grace()), removes(old.Runs(), seen), teardownWarnings(s.blueprint(), old, seen)
			}
			result = next
			d.Behind = dropping(old.Name, next.Secrets, append(slices.Clone(seen.Vault.Kept), old.Secrets)...)
			if d.Plan.Empty() && len(old.Runs()) == 0 && next.Wanted == old.Wanted && next.ID != "" {
				result = old
				return d, nil
			}
			if d.After, err = next.replaces(old); err == nil {
				err = errors.Join(leaveTombstone(s.blueprint(), view, r.ID, &d, seen, at.Now), remember(view, r.ID, &d, seen, at.Now))
			}
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}

func isNoInstance(err error) bool { return errors.Is(err, propolis.ErrNoInstance) }

func findRecorded(ctx context.Context, s Settings, env operation.Env, c Change) (Record, error) {
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return Record{}, err
	}
	ref := c.Wanted.Ref
	r, err := s.Find(view, ref)
	if _, ok := errors.AsType[*NotFoundError](err); ok {
		err = notFound(ctx, s, env, view, ref)
	}
	return r, err
}

// notFound is the error for an instance that is not recorded: a *NotFoundError,
// unless it runs all the same.
func notFound(ctx context.Context, s Settings, env operation.Env, view ledger.View, ref string) error {
	id, err := resolveRef(s.Namespace, view, ref)
	if err != nil {
		return err
	}
	strangers, _ := s.Strangers(ctx, env, view) // without a listing, the ledger is all there is
	for _, one := range strangers {
		if one.ID == id || one.Name == ref {
			return &UnadoptedError{Name: ref, Zone: one.Zone.Name, Rests: one.rests()}
		}
	}
	return &NotFoundError{Name: ref}
}

// lookAt looks for an operation on a recorded instance.
func lookAt(s Settings, env operation.Env, id string) func(context.Context, host.Host) (Seen, error) {
	return func(ctx context.Context, h host.Host) (Seen, error) {
		r, err := recorded(ctx, env, id)
		if err != nil {
			return Seen{}, err
		}
		boot, err := operation.Boot(env)
		if err != nil {
			return Seen{}, err
		}
		seen, err := s.Look(ctx, h, r, r.Spec.Disks, boot)
		if err == nil {
			seen.Vault = lookAtSecrets(s.SecretDir, env, h.Files(), id, r, Wanted{}, seen.Inv)
		}
		if err == nil && r.Migration.arrives() {
			seen.Source = askSource(ctx, s.Spoken, h, r.Migration.Source)
		}
		return seen, err
	}
}
