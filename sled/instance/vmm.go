package instance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

// The control plane speaks of VMs, each an incarnation of an instance under a Propolis id
// that the control plane has chosen. What it asks for takes longer than it waits
// for an answer. So what is accepted is written down first: a registration, a
// power that is wanted, an end that is decided. A process that finds that afterwards, an
// agent that was killed during it for one, does the rest.

// AwaitedError is the control plane's VM that another sled has, and that is to come
// here by a migration: a process that makes it here makes it twice.
type AwaitedError struct{ Name, Migration string }

// Error names the migration.
func (e *AwaitedError) Error() string {
	return fmt.Sprintf("instance %q will arrive by migration %s: the agent brings it here when the control plane asks", e.Name, e.Migration)
}

func (*AwaitedError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (e *AwaitedError) Unwrap() error { return host.ErrRefused }

// Registration is a VM that the control plane registers, or a fleet.
type Registration struct {
	Instance, VM string // ids
	// Keeper is who registers it, and Generation the one that it gives the instance; 0: none.
	Keeper        record.Keeper
	Generation    uint64
	Silo, Project string
	Migration     string // the id of the one by which it is to come; empty: it is to be made
	Shared        bool   // its disks are the same files on both sleds
	Wanted        Wanted
}

// RegisteredError is an instance that exists, and not as this VM.
type RegisteredError struct{ Name, VM string }

// Error says what it is.
func (e *RegisteredError) Error() string {
	if e.VM == "" {
		return fmt.Sprintf("instance %q is an operator's, and stopped", e.Name)
	}
	return fmt.Sprintf("instance %q exists as VM %s", e.Name, e.VM)
}

func (*RegisteredError) Kind() fault.Kind { return fault.Conflict }

// Register makes the record of an instance that the control plane will run, with
// all that it reserves; nothing is made on the host. One that is registered as
// this VM stays as it is. Errors: those of a decision in the bring-up;
// *RegisteredError, *record.KeeperError, *record.GenerationError, *PropolisTakenError.
func (s Settings) Register(ctx context.Context, env operation.Env, r Registration) (Result, error) {
	r.Keeper = cmp.Or(r.Keeper, record.Nexus)
	if err := record.ValidateCrucible(r.Wanted.Crucible); err != nil { // before digests stand for its keys
		return Result{}, err
	}
	c := EnsureRequest{Verb: "vm register", Wanted: r.Wanted}
	made, err := s.makeVolumes(ctx, env, &c)
	var result Result
	if r.Wanted = c.Wanted; err == nil {
		result, err = register(ctx, s, env, r)
	}
	if err != nil {
		result.Report.Outcome.Leftovers = slices.Concat(result.Report.Outcome.Leftovers, made.left, s.dropVolumes(ctx, env, made))
	}
	return result, err
}

// register is Register with disks that exist.
func register(ctx context.Context, s Settings, env operation.Env, r Registration) (Result, error) {
	var result record.Record
	secrets.Purge(ctx, s.SecretDir, env, false)
	report, err := operation.Run(ctx, env, operation.Request[Observed]{
		Verb: "vm register", Subject: record.Subject(r.Instance),
		Look: func(ctx context.Context, h host.Host) (Observed, error) {
			boot, err := operation.Boot(env)
			if err != nil {
				return Observed{}, err
			}
			view, _, err := recorded(ctx, env, r.Instance)
			if err != nil {
				return Observed{}, err
			}
			named, err := s.withVolumes(view, r.Wanted)
			if err != nil {
				return Observed{}, err
			}
			seen, err := s.Look(ctx, h, view, record.Record{}, named.apply(record.Spec{}).Disks, boot)
			if err == nil {
				seen.Vault = secrets.Look(s.SecretDir, env, h.Files(), r.Instance, record.Record{}, r.Wanted.secret(), seen.Inv)
			}
			return seen, err
		},
		Decide: func(view ledger.View, seen Observed, at operation.Stamp) (operation.Decision, error) {
			old, known, err := record.Load(view, r.Instance)
			if err != nil {
				return operation.Decision{}, err
			}
			if known && r.is(old) {
				result = old
				return operation.Decision{}, nil
			}
			if err := r.check(view, old, known); err != nil {
				return operation.Decision{}, err
			}
			var d operation.Decision
			d, result, err = registered(s, view, seen, at, r)
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}

// is reports whether an instance is registered as the VM.
func (r Registration) is(old record.Record) bool {
	return old.VM() == r.VM && old.VMM != nil && old.Ending == nil && old.KeptBy() == r.Keeper && old.KeeperGeneration == r.Generation
}

// check refuses what cannot be registered.
func (r Registration) check(view ledger.View, old record.Record, known bool) error {
	if known {
		if err := old.CheckKeeper(r.Keeper); err != nil && r.Keeper != record.Nexus { // whose API says it in another way
			return err
		}
	} else if err := record.CheckPlace(view, r.Keeper); err != nil {
		return err
	}
	if r.Keeper != record.Nexus {
		if err := record.CheckGeneration(view, r.Instance, r.Generation); err != nil {
			return err
		}
	}
	if known {
		return &RegisteredError{Name: old.Name, VM: old.VM()}
	}
	return checkPropolisID(view, r.VM)
}

// PropolisTakenError is a Propolis id that a VM has, or had: it stands for one incarnation.
type PropolisTakenError struct{ ID, By string }

// Error names who has it.
func (e *PropolisTakenError) Error() string {
	return fmt.Sprintf("the Propolis id %s is taken by %s", e.ID, e.By)
}

func (*PropolisTakenError) Kind() fault.Kind { return fault.Conflict }

// Hint says what would be right.
func (*PropolisTakenError) Hint() string { return "give another id, or none" }

// checkPropolisID refuses one that is known of a VM, of one that has ended, or of a spare.
func checkPropolisID(view ledger.View, id string) error {
	if _, ended := view.Get(naming.KeyTombstone + id); ended {
		return &PropolisTakenError{ID: id, By: "a VM that has ended"}
	}
	if _, spare := view.Get(naming.KeySpare + id); spare {
		return &PropolisTakenError{ID: id, By: "a spare"}
	}
	for r, err := range record.Records(view) {
		if err != nil {
			return err
		}
		if slices.Contains(r.VMIDs(func(record.Incarnation) bool { return true }), id) {
			return &PropolisTakenError{ID: id, By: "instance " + r.Name}
		}
	}
	return nil
}

// registered is pure.
func registered(s Settings, view ledger.View, seen Observed, at operation.Stamp, r Registration) (operation.Decision, record.Record, error) {
	named, err := s.withVolumes(view, r.Wanted) // a volume may have been renamed or deleted since
	if err != nil {
		return operation.Decision{}, record.Record{}, err
	}
	wanted, fresh := named.withSealed(seen.Vault.Key)
	c := EnsureRequest{Verb: "vm register", Wanted: wanted}
	choose, name, err := beginBringUp(s, view, seen, at, r.Instance, c)
	if err != nil {
		return operation.Decision{}, record.Record{}, err
	}
	next, err := nextRecord(s, choose, seen, record.Record{}, false, r.Instance, name, c)
	if err == nil {
		err = seen.checkDisks(next.Spec.Disks)
	}
	if r.Migration != "" && r.Keeper == record.Fleet && err == nil { // a control plane knows what it moves
		if problems := migration.DiskObstacles(next.Spec, r.Shared); len(problems) > 0 {
			err = &migration.UnmovableError{Name: next.Name, Problems: problems}
		}
	}
	var d operation.Decision
	if err == nil {
		next, err = secrets.WithVolume(record.Record{}, next, seen.Vault, fresh)
	}
	if err == nil {
		next, d.Ahead, err = secrets.Keeping(s.SecretDir, next, seen.Vault, seen.Inv, fresh, at)
	}
	if err != nil {
		return operation.Decision{}, record.Record{}, err
	}
	d.Behind = secrets.Dropping(next.Name, next.Secrets, seen.Vault.Kept...)
	next.Wanted, next.Generation, next.Updated, next.Began = record.WantedStopped, 1, at.Now, at.Now
	next.VMM = &record.VMM{PropolisID: r.VM, Boot: seen.Boot, SiloID: r.Silo, ProjectID: r.Project}
	if r.Keeper != record.Nexus { // what has none is the control plane's
		next.Keeper, next.KeeperGeneration = r.Keeper, r.Generation
	}
	if r.Migration != "" {
		next.VMM.Migration = &record.Migration{ID: r.Migration}
	}
	d.OnSuccess, err = next.Replaces(record.Record{})
	if r.Generation != 0 && err == nil {
		var last ledger.Fact
		last, err = record.GenerationFact(next.ID, r.Generation)
		d.OnSuccess = append(d.OnSuccess, last)
	}
	d.OnSuccess = append(d.OnSuccess, migration.Returned(view, next.ID)...)
	return d, next, err
}

// writeRecord is an operation on one recorded instance that changes its record and
// nothing else. What changes nothing, or cannot be, does not wait for those who are
// at work on the instance.
func writeRecord(ctx context.Context, env operation.Env, verb, id string, change func(record.Record) (record.Record, error)) (Result, error) {
	_, now, err := recorded(ctx, env, id)
	if err == nil && now.ID != "" {
		if next, err := change(now); err != nil || next.Generation == now.Generation {
			return Result{Record: next}, err
		}
	}
	var result record.Record
	report, err := operation.Run(ctx, env, operation.Request[struct{}]{
		Verb: verb, Subject: record.Subject(id),
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(view ledger.View, _ struct{}, at operation.Stamp) (operation.Decision, error) {
			old, err := record.Existing(view, id, id)
			if err != nil {
				return operation.Decision{}, err
			}
			result, err = change(old)
			if err != nil || result.Generation == old.Generation {
				return operation.Decision{}, err
			}
			result.Updated = at.Now
			var d operation.Decision
			d.OnSuccess, err = result.Replaces(old)
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}

// Want writes down that the VM of an instance is to run: to be made, or, with a
// source (IP:PORT), to come from the Propolis that answers there. Errors:
// *NotFoundError, also where the instance has another VM by now; *EndingError;
// *InputError where it was registered to come the other way, or from elsewhere.
func (s Settings) Want(ctx context.Context, env operation.Env, id, vm, source string) (Result, error) {
	return writeRecord(ctx, env, "vm run", id, func(r record.Record) (record.Record, error) {
		switch {
		case r.VM() != vm:
			return r, &record.NotFoundError{Name: vm}
		case r.Ending != nil:
			return r, &record.EndingError{Name: r.Name}
		}
		next := r
		if err := next.ComesFrom(source); err != nil {
			return r, err
		}
		if next.Wanted != record.WantedRunning {
			next.Wanted, next.Generation = record.WantedRunning, r.Generation+1
		}
		return next, nil
	})
}

// RecordEnding writes down how an incarnation ends, before anything of it is removed. An
// end that was decided before stands. Errors: *NotFoundError, also where the
// instance has another VM by now.
func (s Settings) RecordEnding(ctx context.Context, env operation.Env, id string, e record.Ending) (Result, error) {
	return writeRecord(ctx, env, "vm end", id, func(r record.Record) (record.Record, error) {
		if r.VM() != e.PropolisID {
			return r, &record.NotFoundError{Name: e.PropolisID}
		}
		if r.Ending == nil {
			r.Ending, r.Generation = &e, r.Generation+1
		}
		return r, nil
	})
}

// End removes the incarnation whose end is decided. The record of what is the control
// plane's goes with it, unless an operator protects it; any other stays, stopped.
// An instance whose end nobody has decided is left alone. The grace is what its
// machine is given to power off.
func (s Settings) End(ctx context.Context, env operation.Env, id string, grace time.Duration) (Result, error) {
	return takeDown(ctx, s, env, removal{verb: "vm end", ref: id, grace: grace}, func(old record.Record, at operation.Stamp) (record.Record, error) {
		switch {
		case old.Ending == nil:
			return old, &record.NotFoundError{Name: id}
		case old.VMM != nil && !old.Protected:
			return record.Record{}, nil
		}
		return old.Stopped(at), nil
	})
}

// CancelArrival removes what exists of a VM that arrives, if its machine is where
// it was. Errors: *MigratingError where it is on its way, has come, or cannot be
// found: nothing is done then, and it may be asked again.
func (s Settings) CancelArrival(ctx context.Context, env operation.Env, r record.Record) (Result, error) {
	result, err := s.Delete(ctx, env, DeleteRequest{Verb: "vm end", Ref: r.ID, Arrival: r.Migration.ID, Yes: true})
	if err == nil && result.Record.ID != "" {
		err = &migration.MigratingError{Name: r.Name, Migration: *r.Migration, Why: "it has arrived meanwhile"}
	}
	return result, err
}

// IncompleteBuildError is an incarnation under an id that the control plane has chosen, whose
// making was cut short and cannot be resumed. There can be no other next to
// it: all that it is made of is called by that id.
type IncompleteBuildError struct{ Name string }

// Error names it.
func (e *IncompleteBuildError) Error() string {
	return fmt.Sprintf("instance %q is half built: remove what exists before creating it again", e.Name)
}

func (*IncompleteBuildError) Kind() fault.Kind { return fault.Failed }

// clearIncomplete removes such an incarnation, so that it can be recreated.
func clearIncomplete(ctx context.Context, s Settings, env operation.Env, c EnsureRequest) (Result, error) {
	how := removal{verb: c.Verb, ref: c.Wanted.Ref, grace: StopTime, dryRun: c.DryRun, keep: c.Keep}
	return takeDown(ctx, s, env, how, func(old record.Record, at operation.Stamp) (record.Record, error) {
		old.Incarnation, old.Leaving, old.Migration = nil, nil, nil
		old.Generation, old.Updated, old.Began = old.Generation+1, at.Now, at.Now
		return old, nil
	})
}
