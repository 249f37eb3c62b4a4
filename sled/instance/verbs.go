package instance

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/adoption"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

// StopRequest asks for an instance's run to be removed, and its record kept.
type StopRequest struct {
	Verb string
	Ref  string // NAME or UUID
	// Evacuate leaves it as wanted as it is: the instance comes up again with the
	// sled. What another keeper has ends with its VM.
	Evacuate bool
	// Grace is how long the VM may take to end before its zone is halted under it;
	// nil: StopTime.
	Grace  *time.Duration
	DryRun bool
}

// DeleteRequest asks for an instance to be removed with its record.
type DeleteRequest struct {
	Verb string
	Ref  string // NAME or UUID
	Yes  bool   // also one that is protected
	// Arrival, if set, removes nothing but what is arriving by the migration of that
	// id, and has not arrived.
	Arrival string
	DryRun  bool
}

// removal is how an incarnation is removed, by whichever verb.
type removal struct {
	verb, ref    string
	grace        time.Duration
	arrival      string // as in DeleteRequest
	disks        bool   // the volumes that are set to go with it go
	evacuate     bool   // the sled is shut down: its keepers are not asked
	departed     bool   // the incarnation is what a migration has left here
	dryRun, keep bool
}

// Stop ends the instance's run and keeps its record, with address and MACs.
// Stopping what is stopped does nothing.
//
// Guess stop-before-zones-at-shutdown: an SMF stop at shutdown comes before that of a service it
// depends on optionally (svc:/system/zones).
// Check: `init 5`; the logs' times
// State: settled by usr/src/cmd/svc/startd/graph.c:4395-4436 (at shutdown it does; `svcadm disable`
// by hand passes over the dependents: 211, 4375)
func (s Settings) Stop(ctx context.Context, env operation.Env, c StopRequest) (Result, error) {
	how := removal{verb: c.Verb, ref: c.Ref, grace: StopTime, dryRun: c.DryRun, evacuate: c.Evacuate}
	if c.Grace != nil {
		how.grace = *c.Grace
	}
	return takeDown(ctx, s, env, how, func(old record.Record, at operation.Stamp) (record.Record, error) {
		if c.Evacuate && old.VMM != nil && !old.Protected { // as its VM ends in any other way
			return record.Record{}, nil
		}
		stopped := old.Stopped(at)
		if c.Evacuate && old.VMM == nil && old.Ending == nil {
			stopped.Wanted = old.Wanted
		}
		return stopped, nil
	})
}

// Delete ends the instance's run and drops its record with all that it
// reserves. One that is protected is a *ProtectedError, unless c.Yes.
func (s Settings) Delete(ctx context.Context, env operation.Env, c DeleteRequest) (Result, error) {
	how := removal{verb: c.Verb, ref: c.Ref, grace: StopTime, arrival: c.Arrival, disks: c.Arrival == "", dryRun: c.DryRun}
	return takeDown(ctx, s, env, how, func(old record.Record, _ operation.Stamp) (record.Record, error) {
		if old.Protected && !c.Yes {
			return old, &ProtectedError{Name: old.Name}
		}
		return record.Record{}, nil
	})
}

// takeDown is the operation behind stop and delete. The run's names stay
// recorded until all of it is removed, so that a later try knows them.
func takeDown(
	ctx context.Context, s Settings, env operation.Env, how removal, becomes func(record.Record, operation.Stamp) (record.Record, error),
) (Result, error) {
	r, err := FindRecorded(ctx, s, env, how.ref, how.dryRun)
	if none, ok := errors.AsType[*record.NotFoundError](err); ok && !how.dryRun {
		if id, err := record.Resolve(s.Namespace, ledger.View{}, none.Name); err == nil {
			secrets.DropUnrecorded(ctx, s.SecretDir, env, how.verb, none.Name, id)
		}
	}
	if err != nil {
		return Result{}, err
	}
	if err := how.checkKeeper(s, r); err != nil {
		return Result{}, err
	}
	result := r
	secrets.Purge(ctx, s.SecretDir, env, how.dryRun)
	report, err := operation.Run(ctx, env, operation.Request[Observed]{
		Verb: how.verb, Subject: record.Subject(r.ID), DryRun: how.dryRun, Keep: how.keep,
		Look: lookAt(s, env, r.ID),
		Decide: func(view ledger.View, seen Observed, at operation.Stamp) (operation.Decision, error) {
			if err := notBusy(ctx, env, view, r.ID); err != nil {
				return operation.Decision{}, err
			}
			old, err := record.Existing(view, r.ID, how.ref)
			if err != nil {
				return operation.Decision{}, err
			}
			if err := how.checkKeeper(s, old); err != nil {
				return operation.Decision{}, err
			}
			next, err := becomes(old, at)
			if err != nil {
				return operation.Decision{}, err
			}
			if spared, err := spared(old, next, seen, how); spared || err != nil {
				result = old
				return operation.Decision{}, err
			}
			d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}}
			if len(old.Incarnations()) > 0 {
				d.Plan.Actions, d.Intent.Removes = teardown(s, old, seen, at, how.grace), removes(old.Incarnations(), seen)
				d.Warn = teardownWarnings(s.Blueprint(), old, seen)
			}
			followers, err := followersOf(s, view, old, seen, how)
			if err != nil {
				return operation.Decision{}, err
			}
			d.Plan.Actions = behind(d.Plan.Actions, followers.Actions)
			d.Intent.Removes, d.Warn = append(d.Intent.Removes, followers.Removes...), append(d.Warn, followers.Warn...)
			result = next
			d.Behind = secrets.Dropping(old.Name, next.Secrets, append(slices.Clone(seen.Vault.Kept), old.Secrets)...)
			if d.Plan.Empty() && len(old.Incarnations()) == 0 && next.Wanted == old.Wanted && next.Migration == old.Migration && next.ID != "" {
				result = old
				return d, nil
			}
			d.OnSuccess, err = next.Replaces(old)
			if d.OnSuccess = append(d.OnSuccess, followers.Facts...); err == nil {
				err = errors.Join(leaveTombstone(s.Blueprint(), view, r.ID, &d, seen, at.Now), migration.Remember(view, r.ID, &d, seen.Inside.VM, at.Now))
			}
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}

// checkKeeper refuses to remove what another one keeps.
func (how removal) checkKeeper(s Settings, r record.Record) error {
	if how.evacuate {
		return nil
	}
	return r.CheckKeeper(s.Asks)
}

// followersOf are the volumes that go with an instance.
func followersOf(s Settings, view ledger.View, old record.Record, seen Observed, how removal) (Followers, error) {
	if !how.disks || s.Followers == nil {
		return Followers{}, nil
	}
	return s.Followers(view, seen.Inv, record.VolumesOf(old.AllDisks()), how.departed)
}

func IsNoInstance(err error) bool { return errors.Is(err, propolis.ErrNoInstance) }

// FindRecorded returns the record that ref names. Errors: *NotFoundError;
// *UnadoptedError if it is not recorded and a zone of it is on the sled.
func FindRecorded(ctx context.Context, s Settings, env operation.Env, ref string, dryRun bool) (record.Record, error) {
	zone := ""
	for {
		view, err := operation.Decided(ctx, env, dryRun)
		if err != nil {
			return record.Record{}, err
		}
		r, err := s.Find(view, ref)
		none, ok := errors.AsType[*record.NotFoundError](err)
		if !ok {
			return r, err
		}
		one, found, err := unrecordedOf(ctx, s, env, view, ref)
		switch {
		case err != nil:
			return record.Record{}, err
		case !found || zone != "" && one.Zone.Name != zone:
			return record.Record{}, none
		case zone != "":
			return record.Record{}, &adoption.UnadoptedError{Name: ref, Zone: zone, Rests: one.Rests()}
		}
		// Another process may make or remove the instance between the ledger's
		// reading and the zones' listing. A zone outlives its record only if it is
		// there before the ledger is read and behind it.
		zone = one.Zone.Name
	}
}

// unrecordedOf returns the unrecorded zone that an instance has, if it has one.
func unrecordedOf(ctx context.Context, s Settings, env operation.Env, view ledger.View, ref string) (adoption.Unrecorded, bool, error) {
	id, err := record.Resolve(s.Namespace, view, ref)
	if err != nil {
		return adoption.Unrecorded{}, false, err
	}
	all, _ := s.ListUnrecorded(ctx, env, view) // without a listing, the ledger is all there is
	for _, one := range all {
		if one.ID == id || one.Name == ref {
			return one, true, nil
		}
	}
	return adoption.Unrecorded{}, false, nil
}

// lookAt looks for an operation on a recorded instance.
func lookAt(s Settings, env operation.Env, id string) func(context.Context, host.Host) (Observed, error) {
	return func(ctx context.Context, h host.Host) (Observed, error) {
		view, r, err := recorded(ctx, env, id)
		if err != nil {
			return Observed{}, err
		}
		boot, err := operation.Boot(env)
		if err != nil {
			return Observed{}, err
		}
		seen, err := s.Look(ctx, h, view, r, r.AllDisks(), boot)
		if err == nil {
			seen.Vault = secrets.Look(s.SecretDir, env, h.Files(), id, r, false, seen.Inv)
		}
		if err == nil && r.Migration.Arrives() && !r.Migration.Offline {
			seen.Source = migration.AskSource(ctx, s.Versions, h, r.Migration.Source)
		}
		return seen, err
	}
}

// Reaping are the facts that are written before a reap removes the zones that goes picks:
// the incarnations of this boot to which they belong say that it was sledctl.
func Reaping(records map[string]*record.Record, boot string, goes func(zone string) bool) ([]ledger.Fact, error) {
	var facts []ledger.Fact
	for _, id := range slices.Sorted(maps.Keys(records)) {
		was := records[id]
		if was.Incarnation == nil || was.Incarnation.Reaped || was.Incarnation.Boot != boot || !goes(was.Incarnation.Zone) {
			continue
		}
		r, incarnation := *was, *was.Incarnation
		incarnation.Reaped, r.Incarnation = true, &incarnation
		value, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		facts = append(facts, ledger.Fact{Key: record.Subject(id), Value: value})
	}
	return facts, nil
}
