package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/ports"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

// EnsureRequest is what ensure, start and every single step of the bring-up ask for.
type EnsureRequest struct {
	Verb   string // for locks, intents and messages, in all requests
	Wanted Wanted
	// Only, if set, does one stage of the bring-up and no more.
	Only Stage
	// Known refuses an instance that is not recorded: start, not ensure.
	Known bool
	// Recreate rebuilds a running zone where the difference needs it.
	Recreate bool
	// Protect, if set, is whether delete refuses to remove the instance from now on.
	Protect *bool
	// From, if set, has the machine come from another sled; its ID and Source are.
	From *record.Migration
	// Tell hears of the phases of a migration; may be nil.
	Tell   func(phase string)
	DryRun bool
	Keep   bool
}

// Result is an instance after a verb, and what the verb did.
type Result struct {
	Record record.Record
	Report operation.Report
	// State is that in which Adopt has found the machine.
	State record.State
}

// Ensure creates, repairs or starts the instance, so that it is as wanted. For one that
// already is, it only looks: it locks nothing and writes nothing. A pool without a base
// zone gets one first. A dry run plans with the base that would be created.
func (s Settings) Ensure(ctx context.Context, env operation.Env, c EnsureRequest) (Result, error) {
	if !slices.ContainsFunc(c.Wanted.Disks, func(d record.Disk) bool { return d.New != nil }) {
		return ensure(ctx, s, env, c)
	}
	made, err := s.makeVolumes(ctx, env, &c)
	if c.DryRun {
		s.planned = made.paths
	}
	var result Result
	if err == nil {
		result, err = ensure(ctx, s, env, c)
	}
	if err != nil && !c.DryRun && !c.Keep {
		result.Report.Outcome.Leftovers = slices.Concat(result.Report.Outcome.Leftovers, made.left, s.dropVolumes(ctx, env, made))
	}
	if c.DryRun {
		result.Report.Plan.Actions = append(made.actions, result.Report.Plan.Actions...)
	}
	return result, err
}

// ensure is Ensure with disks that exist, or that a dry run has planned.
func ensure(ctx context.Context, s Settings, env operation.Env, c EnsureRequest) (Result, error) {
	result, err := ensureOnBase(ctx, s, env, c)
	missing, ok := errors.AsType[*NoBaseError](err)
	if !ok || s.MakeBase == nil {
		return result, err
	}
	shared := env
	shared.Wait = true // all instances of a pool share its base: an operation waits for another that creates it
	made, report, err := s.MakeBase(ctx, shared, missing.Pool, c.DryRun, c.Keep)
	if err != nil {
		return Result{Report: report}, err
	}
	s.Pools = []string{missing.Pool} // by its new base it has one zone more, and another might be chosen
	if c.DryRun {
		made.Planned = true
		s.Base = func(ledger.View, string) (Base, bool) { return made, true }
	}
	result, err = ensureOnBase(ctx, s, env, c)
	if c.DryRun {
		result.Report.Plan.Actions = append(report.Plan.Actions, result.Report.Plan.Actions...)
	}
	return result, err
}

// ensureOnBase is Ensure where the pool has a base zone. Errors: *NoBaseError.
func ensureOnBase(ctx context.Context, s Settings, env operation.Env, c EnsureRequest) (Result, error) {
	if err := cmp.Or(c.Wanted.CloudInit.Validate(), record.ValidateCrucible(c.Wanted.Crucible)); err != nil { // before digests stand for it
		return Result{}, err
	}
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return Result{}, err
	}
	id, _, err := identityOf(s.Namespace, view, c.Wanted)
	if err != nil {
		return Result{}, err
	}
	r, known, err := loadFor(s, view, id, c)
	if err != nil {
		return Result{}, err
	}
	if c.Known && !known {
		if r, err = FindRecorded(ctx, s, env, c.Wanted.Ref, c.DryRun); err != nil {
			return Result{}, err
		}
		known = true
	}
	wanted, err := s.withVolumes(view, c.Wanted)
	if err != nil {
		return Result{}, err
	}
	unfinished := operation.IsOpen(view, record.Subject(id)) // what it was to do may be more than shows
	if known && c.Only == "" && !c.Recreate && !unfinished && hasArrived(r, c) && isAsWanted(ctx, s.Blueprint(), env.Host, r, wanted) {
		if noted := c.noted(r); noted.Protected != r.Protected || noted.Spec.StartOrder != r.Spec.StartOrder {
			return note(ctx, env, id, c)
		}
		return Result{Record: r, Report: operation.Report{Verb: c.Verb, View: view}}, nil
	}
	result, err := bringUpCleared(ctx, s, env, id, c)
	if err != nil && !known {
		result, err = withOtherAddress(ctx, s, env, id, c, result, err)
	}
	if r.VMM != nil {
		return result, err // the agent brings up the control plane's VMs, and also decides how they end
	}
	return undoArrival(ctx, s, env, id, c, result, err)
}

// loadFor reads the record of an instance for somebody who asks for its change. The error is a
// *record.KeeperError for anybody but who keeps the instance or, if it is new, the sled.
func loadFor(s Settings, view ledger.View, id string, c EnsureRequest) (r record.Record, known bool, err error) {
	r, known, err = record.Load(view, id)
	switch {
	case err != nil:
	case known:
		err = r.CheckKeeper(s.Asks)
	case !c.Known:
		err = record.CheckPlace(view, s.Asks)
	}
	return r, known, err
}

// hasArrived reports whether the instance is on this sled by the migration that is
// asked for, if any is.
func hasArrived(r record.Record, c EnsureRequest) bool {
	return c.From == nil || r.Incarnation != nil && r.Incarnation.Migration == c.From.ID
}

// bringUpCleared is bringUp, with what is half built under the same id removed
// first.
func bringUpCleared(ctx context.Context, s Settings, env operation.Env, id string, c EnsureRequest) (Result, error) {
	result, err := bringUp(ctx, s, env, id, c)
	if _, incomplete := errors.AsType[*IncompleteBuildError](err); !incomplete {
		return result, err
	}
	if result, err = clearIncomplete(ctx, s, env, c); err != nil || c.DryRun {
		return result, err
	}
	return bringUp(ctx, s, env, id, c)
}

// isAsWanted is the cheap look: the record is finished and equal to what is wanted,
// its zone runs, its Propolis runs its machine, its guest NICs are held to their limits, its ports have their rules and routes, and its zone's cap is its own. Any doubt is a no.
func isAsWanted(ctx context.Context, b layout.Blueprint, h host.Host, r record.Record, w Wanted) bool {
	if r.Incarnation == nil || !r.Incarnation.Ensured || r.Incarnation.Limiting || len(r.Leaving) > 0 || r.Migration != nil ||
		r.Wanted != record.WantedRunning || !w.named(r) || r.Later != nil && w.Disks != nil {
		return false
	}
	v := secrets.Read(h.Files(), r.Secrets)
	w, _ = w.withSealed(v.Key)
	wanted := w.apply(r.Spec)
	if v.Err != nil || len(differences(r.Spec, wanted)) > 0 || !wanted.CloudInit.Same(r.Spec.CloudInit) || secrets.HasOthers(h.Files(), r) {
		return false
	}
	vm, err := quickLook(ctx, b, h, r)
	return err == nil && vm.State == "Running" && vm.ID == r.ID && allHeld(r, LookLimits(ctx, h, *r.Incarnation)) && ports.AreAsWanted(ctx, h, r) && isCapped(h.Files(), r)
}

// bringUp is the operation behind ensure, start and every single step.
func bringUp(ctx context.Context, s Settings, env operation.Env, id string, c EnsureRequest) (Result, error) {
	var result record.Record
	var decided plan.Plan
	secrets.Purge(ctx, s.SecretDir, env, c.DryRun)
	request := operation.Request[Observed]{
		Verb: c.Verb, Subject: record.Subject(id), DryRun: c.DryRun, Keep: c.Keep,
		Look: func(ctx context.Context, h host.Host) (Observed, error) {
			view, r, err := recorded(ctx, env, id)
			if err != nil {
				return Observed{}, err
			}
			boot, err := operation.Boot(env)
			if err != nil {
				return Observed{}, err
			}
			named, err := s.withVolumes(view, c.Wanted)
			if err != nil {
				return Observed{}, err
			}
			of := r.Spec
			of.Disks = r.AllDisks()
			wanted := named.apply(of)
			seen, err := lookWhenOpen(ctx, s, h, view, r, wanted.Disks, boot)
			if err == nil {
				seen.Processors, err = observeProcessors(ctx, r.Spec, wanted, h)
			}
			if err == nil {
				seen.Vault = secrets.Look(s.SecretDir, env, h.Files(), id, r, c.Wanted.secret(), seen.Inv)
			}
			if from := cmp.Or(c.From, r.Migration); err == nil && from.Arrives() && !from.Offline {
				seen.Source = migration.AskSource(ctx, s.Versions, h, from.Source)
			}
			return seen, err
		},
		Decide: func(view ledger.View, seen Observed, at operation.Stamp) (operation.Decision, error) {
			if err := notBusy(ctx, env, view, id); err != nil {
				return operation.Decision{}, err
			}
			if s.MayStart != nil {
				if err := s.MayStart(view, id); err != nil {
					return operation.Decision{}, err
				}
			}
			c, err := c.named(s, view) // a volume may have been renamed or deleted since
			if err != nil {
				return operation.Decision{}, err
			}
			d, r, err := decide(s, view, seen, at, id, c)
			result, decided = r, d.Plan
			if err == nil {
				err = untouched(ctx, env, view, record.Subject(id), record.VolumesOf(r.Spec.Disks)...)
			}
			if err == nil {
				err = errors.Join(leaveTombstone(s.Blueprint(), view, id, &d, seen, at.Now), migration.Remember(view, id, &d, seen.Inside.VM, at.Now))
			}
			return d, err
		},
		Seal: sealing(s, &result, &decided),
	}
	report, err := operation.Run(ctx, env, request)
	if report.ID != "" {
		if r, known, lerr := record.Load(report.View, id); lerr == nil && known {
			result = r
		}
	}
	return Result{Record: result, Report: report}, err
}

// named is the request with the devices of volumes in the places of their names.
func (c EnsureRequest) named(s Settings, view ledger.View) (EnsureRequest, error) {
	var err error
	c.Wanted, err = s.withVolumes(view, c.Wanted)
	return c, err
}

// notBusy refuses to work on an incarnation that a living operation on another subject (a
// reap) is removing.
func notBusy(ctx context.Context, env operation.Env, view ledger.View, id string) error {
	r, known, err := record.Load(view, id)
	if err != nil || !known {
		return err
	}
	var names []string
	for _, incarnation := range r.Incarnations() {
		names = append(names, incarnation.Zone, incarnation.Dataset)
	}
	return untouched(ctx, env, view, record.Subject(id), names...)
}

// untouched fails while a living operation on a subject other than self is
// taking one of the named things away.
func untouched(ctx context.Context, env operation.Env, view ledger.View, self string, names ...string) error {
	for _, open := range operation.Open(view) {
		touches := slices.ContainsFunc(open.Removes, func(o operation.Object) bool { return slices.Contains(names, o.Name) })
		if open.Subject == self || !touches {
			continue
		}
		if holder, living := operation.Alive(ctx, env, open.Subject); living {
			return operation.LockedBy(open.Subject, holder)
		}
	}
	return nil
}

// recorded is the ledger, and the record as it stands there. While the subject is locked,
// nobody else changes the record.
func recorded(ctx context.Context, env operation.Env, id string) (ledger.View, record.Record, error) {
	book, err := env.Ledger(ctx)
	if err != nil {
		return ledger.View{}, record.Record{}, err
	}
	view, err := book.Read(ctx)
	if err != nil {
		return ledger.View{}, record.Record{}, err
	}
	r, _, err := record.Load(view, id)
	return view, r, err
}

// mostElsewhere bounds how many addresses are tried: each costs the boot of a
// zone.
const mostElsewhere = 8

// withOtherAddress makes a new instance with another address, as long as another host
// turns out to have the one that was chosen for it: which other hosts are on the underlay,
// only duplicate address detection tells. One that was asked for, or that an
// instance has had before, is not changed.
func withOtherAddress(
	ctx context.Context, s Settings, env operation.Env, id string, c EnsureRequest, result Result, err error,
) (Result, error) {
	for range mostElsewhere {
		taken := result.Record.Spec.Address
		_, left, lerr := record.Load(result.Report.View, id)
		if !errors.Is(err, ipadm.ErrDuplicate) || c.Wanted.Address != nil || taken.Mode != record.Static || left || lerr != nil || ctx.Err() != nil {
			return result, err
		}
		if env.Warn != nil {
			env.Warn(fmt.Errorf(
				"another host already uses %s: undid %s and is creating it with another address", taken.Prefix.Addr(),
				result.Record.Name,
			))
		}
		s.Reserved = append(append([]netip.Addr(nil), s.Reserved...), taken.Prefix.Addr())
		result, err = bringUp(ctx, s, env, id, c)
	}
	return result, err
}

// ProtectedError is an instance that must not be removed.
type ProtectedError struct{ Name string }

// Error names it.
func (e *ProtectedError) Error() string { return fmt.Sprintf("instance %q is protected", e.Name) }

func (*ProtectedError) Kind() fault.Kind { return fault.Refused }

// Hint says how to remove it all the same.
func (e *ProtectedError) Hint() string {
	return "to delete it all the same, add --yes; to remove the protection, run: sledctl instance ensure " + e.Name + " --no-protect"
}

// noted is a record with what is asked for that no part of the host depends on: protection,
// and the start order.
func (c EnsureRequest) noted(r record.Record) record.Record {
	if c.Protect != nil {
		r.Protected = *c.Protect
	}
	if c.Wanted.StartOrder != nil {
		r.Spec.StartOrder = *c.Wanted.StartOrder
	}
	return r
}

// note writes that down for an instance that is as wanted in all else: the host is not asked.
func note(ctx context.Context, env operation.Env, id string, c EnsureRequest) (Result, error) {
	var result record.Record
	report, err := operation.Run(ctx, env, operation.Request[struct{}]{
		Verb: c.Verb, Subject: record.Subject(id), DryRun: c.DryRun,
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(view ledger.View, _ struct{}, at operation.Stamp) (operation.Decision, error) {
			old, err := record.Existing(view, id, c.Wanted.Ref)
			if err != nil {
				return operation.Decision{}, err
			}
			result = c.noted(old)
			result.Generation, result.Updated = old.Generation+1, at.Now
			var d operation.Decision
			d.OnSuccess, err = result.Replaces(old)
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}
