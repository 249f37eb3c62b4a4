package instance

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/zone"
)

// The target's side of a migration: the bring-up, but that the machine comes from
// another sled instead of being made. From before Propolis is asked for it until
// it runs here, the record says that it arrives.

// NotArrivedError is a migration that has not brought the machine here: it is at
// its source. What existed of it here is removed.
type NotArrivedError struct {
	Name      string
	Migration record.Migration
	Err       error // why, where that is known
}

// Error says where the machine is.
func (e *NotArrivedError) Error() string {
	text := fmt.Sprintf("instance %q has not arrived: its VM is still at %s", e.Name, e.Migration.Source)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (*NotArrivedError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *NotArrivedError) Unwrap() error { return e.Err }

// Hint says where to go on.
func (e *NotArrivedError) Hint() string {
	return "to retry, run on the source: sledctl instance migrate " + e.Name
}

// checkMigration reports whether a verb in the bring-up may go on, as far as migrations go.
// Errors: *MigratingError; *MovedError; *NotArrivedError for an arrival that is
// none; *ConflictError for one that differs from what exists here.
func checkMigration(old record.Record, known bool, seen Observed, c EnsureRequest) error {
	m := old.Migration
	switch {
	case !known:
		return nil
	case m.Departs():
		return &migration.MigratingError{Name: old.Name, Migration: *m}
	case m == nil:
		return checkSettled(old, seen, c)
	case c.Only != "", m.Offline && !c.From.Is(m.ID):
		return &migration.MigratingError{Name: old.Name, Migration: *m}
	case m.Offline:
		return nil
	}
	return checkArriving(old, seen, c)
}

// checkSettled is checkMigration of an instance that is in no migration.
func checkSettled(old record.Record, seen Observed, c EnsureRequest) error {
	awaited := old.Arrival()
	if c.From == nil {
		if awaited != nil {
			return &AwaitedError{old.Name, awaited.ID}
		}
	} else {
		if awaited != nil && awaited.ID == c.From.ID && old.Incarnation == nil {
			return nil // it was registered for that
		}
		if !hasArrived(old, c) {
			is := Difference{Field: "instance", Is: "on this sled already", Wanted: "to arrive by migration " + c.From.ID}
			return &ConflictError{Name: old.Name, Differences: []Difference{is}}
		}
	}
	if id, left := seen.Inside.VM.Left(old); left && !c.Recreate {
		return &migration.MovedError{Name: old.Name, Migration: id}
	}
	return nil
}

// checkArriving is checkMigration of an instance that arrives.
func checkArriving(old record.Record, seen Observed, c EnsureRequest) error {
	m := old.Migration
	at := whereArrived(old, seen)
	another := c.From != nil && c.From.ID != m.ID
	switch {
	case another && (at == migration.OnTheWay || at == migration.AtTarget):
		return &migration.MigratingError{Name: old.Name, Migration: *m, Why: "and not by migration " + c.From.ID}
	case c.From != nil, at == migration.OnTheWay, at == migration.AtTarget:
		return nil // what the source says is looked at before it is asked for anything
	case at == migration.AtSource:
		return &NotArrivedError{Name: old.Name, Migration: *m}
	}
	return &migration.MigratingError{Name: old.Name, Migration: *m, Why: "its machine is not here, and the source cannot be asked"}
}

// arriving is the migration and the incarnation that the next record has. A machine that
// has come is as any other from then on.
func arriving(old record.Record, seen Observed, c EnsureRequest) (*record.Migration, *record.Incarnation) {
	m := old.Migration
	switch {
	case m != nil && m.Offline:
		return m, old.Incarnation
	case m.Arrives() && old.Incarnation != nil && whereArrived(old, seen) == migration.AtTarget:
		incarnation := *old.Incarnation
		incarnation.Migration = m.ID
		return nil, &incarnation
	case c.From != nil && (old.Incarnation == nil || old.Incarnation.Migration != c.From.ID):
		return c.From, old.Incarnation
	}
	return m, old.Incarnation
}

// arrivalStep is the step by which the machine comes; nil for one that is made here.
func arrivalStep(b layout.Blueprint, next record.Record, seen Observed, p progress, c EnsureRequest) (*propolis.Arrive, error) {
	if !next.Migration.Arrives() || next.Migration.Offline {
		return nil, nil
	}
	step := &propolis.Arrive{Target: layout.TargetOf(b, next), Secrets: secrets.Opener(next), ID: next.Migration.ID, Tell: c.Tell}
	if p.ensured {
		return step, nil
	}
	return step, incoming(b.Underlay, next, seen, step)
}

// spared reports whether what would be removed is left alone: with an arrival, all
// but that arrival. A machine that is on its way, or may be the only one, is no
// verb's to end. Departed is what is left of one that is gone.
func spared(old, next record.Record, seen Observed, how removal) (bool, error) {
	m := old.Migration
	switch {
	case how.arrival != "" && old.Came == how.arrival:
		return false, &ArrivedError{Name: old.Name}
	case how.arrival != "" && (!m.Arrives() || m.ID != how.arrival):
		return true, nil
	case m == nil, m.Departs() && m.Departed && how.departed:
		return false, nil
	case m.Departs():
		return false, &migration.MigratingError{Name: old.Name, Migration: *m}
	case m.Offline:
		return false, sparedOffline(old, next)
	}
	return false, sparedLive(old, next, seen, how)
}

// sparedOffline refuses to remove an arrival that may have run here, or to keep it as something else.
func sparedOffline(old, next record.Record) error {
	if old.Incarnation != nil || next.ID != "" {
		return &migration.MigratingError{Name: old.Name, Migration: *old.Migration}
	}
	return nil
}

// sparedLive is spared of an arrival of which Propolis knows.
func sparedLive(old, next record.Record, seen Observed, how removal) error {
	m := old.Migration
	vm := seen.Inside.VM
	unseen := seen.Inside.Err != nil || vm.Err != nil && !IsNoInstance(vm.Err)
	switch at := whereArrived(old, seen); {
	case at == migration.OnTheWay:
		return &migration.MigratingError{Name: old.Name, Migration: *m, Why: "its memory is moving, which cannot be cancelled"}
	case at == migration.AtTarget && how.arrival != "":
		return &migration.MigratingError{Name: old.Name, Migration: *m, Why: "it has arrived"}
	case at == migration.AtTarget:
		return nil
	case at == migration.Unclear && unseen:
		return &migration.MigratingError{Name: old.Name, Migration: *m, Why: "cannot determine whether its VM runs here"}
	case next.ID != "" && !(at == migration.AtSource && next.Arrival() != nil): // the latter is cleared, to be made again
		return &migration.MigratingError{Name: old.Name, Migration: *m, Why: "it has not arrived: only delete ends that, and leaves it to its source"}
	}
	return nil
}

// undoArrival removes what exists of an arrival that failed.
func undoArrival(ctx context.Context, s Settings, env operation.Env, id string, c EnsureRequest, result Result, err error) (Result, error) {
	not, known := errors.AsType[*NotArrivedError](err)
	failed, ended := errors.AsType[*propolis.MigrationError](err)
	if !known && !ended || c.DryRun || c.Keep {
		return result, err
	}
	migration := ""
	if known {
		migration = not.Migration.ID
	} else {
		migration = failed.ID
	}
	gone, gerr := s.Delete(ctx, env, DeleteRequest{Verb: c.Verb, Ref: id, Arrival: migration, Yes: true})
	if _, none := errors.AsType[*record.NotFoundError](gerr); gerr != nil && !none {
		return gone, errors.Join(err, gerr)
	}
	if ended {
		return result, &NotArrivedError{Name: result.Record.Name, Migration: record.Migration{ID: migration, Source: source(c, result)}, Err: err}
	}
	return gone, err
}

func source(c EnsureRequest, result Result) string {
	switch m := result.Record.Migration; {
	case c.From != nil:
		return c.From.Source
	case m != nil:
		return m.Source
	}
	return "its source"
}

// whereArrived says where the machine of an arrival is, by what both sides say.
func whereArrived(r record.Record, seen Observed) migration.Whereabouts {
	z, there := zone.Zone{}, false
	if r.Incarnation != nil {
		z, there = seen.Inv.Zone(r.Incarnation.Zone)
	}
	running := there && z.State == zone.Running
	if running && seen.Inside.Err != nil {
		return migration.Unclear
	}
	here := migration.AtSource
	if running && r.Incarnation.Boot == seen.Boot {
		here = seen.Inside.VM.Into(r.ID, r.Migration.ID)
	}
	if here != migration.AtSource {
		return here
	}
	// Nothing of it is here: it has not come, or was here and is lost.
	there2 := seen.Source.OutOf(r.ID, r.Migration.ID)
	if there2 == migration.OnTheWay {
		return migration.AtSource // from a target that has no machine, it goes back
	}
	return there2
}

// incoming asks the target's Propolis for what the source's has.
//
// Guess migration-id-used-again: the id of a migration may be used again with the same source, when
// its target died before it had the machine.
// Check: kill the target's sledctl while it makes the zone, and type the same again there
func incoming(underlay netip.Prefix, r record.Record, seen Observed, step *propolis.Arrive) error {
	from := seen.Source
	own, err := layout.RequestOf(underlay, r)
	if err != nil {
		return err
	}
	m := r.Migration
	switch {
	case from.Err != nil:
		return &migration.SourceError{Source: m.Source, Err: from.Err}
	case from.ID != r.ID || from.State != propolis.StateRunning:
		return &migration.SourceError{Source: m.Source, Err: errNoMachine(from.VM, r.ID)}
	case from.Spec == nil:
		return &migration.SourceError{Source: m.Source, Err: errors.New("it does not say what its machine is")}
	}
	theirs, _ := from.Spec.Seal(seen.Vault.Key)
	if !r.Spec.OwnCloudInit() { // what the guest was told goes with it; what it is to be told is for its next bring-up
		own.Init.Spec.Components.TakeCloudInit(theirs.Components)
	}
	replace, problems := spec.Replace(theirs, *own.Init.Spec)
	problems = slices.Concat(from.Spec.Unmovable(), problems, migration.VolumeObstacles(r, *own.Init.Spec, *from.Spec, seen.Vault.Key))
	if len(problems) > 0 {
		return &migration.UnmovableError{Name: r.Name, Problems: problems}
	}
	step.Machine = *own.Init.Spec
	step.Request = spec.EnsureRequest{
		Properties: own.Properties,
		Init:       spec.Init{Migration: &spec.MigrationTarget{ID: m.ID, Source: m.Source, Replace: replace}},
	}
	return nil
}

// errNoMachine is a source that has another machine, or none that runs.
func errNoMachine(vm migration.VM, id string) error {
	if vm.ID != id {
		return fmt.Errorf("it has another machine, %s", vm.ID)
	}
	return fmt.Errorf("its machine is %s, and must be Running", vm.State)
}

// An instance that is moved while it is stopped arrives in two steps: it is put on record here, and cannot start;
// and once its source knows of that it is admitted, and starts. What the source takes back in between has no record here, so
// that no late word can start it.

// ArrivedError is an arrival that cannot be given up any longer.
type ArrivedError struct{ Name string }

// Error names the instance.
func (e *ArrivedError) Error() string { return fmt.Sprintf("instance %q has arrived here", e.Name) }

func (*ArrivedError) Kind() fault.Kind { return fault.Refused }

// Hint says how it goes back.
func (e *ArrivedError) Hint() string {
	return "to move it back, run: sledctl instance migrate " + e.Name + " --offline --to SLED"
}

// Expect puts an instance on record that moves here stopped. Its disks are here. It is started by nobody until Admit.
// One that is on record by the same migration is left as it is; one of an earlier try is replaced. Errors:
// *MigratingError, *ConflictError for one that is here; those of a decision in the bring-up.
func Expect(ctx context.Context, s Settings, env operation.Env, c EnsureRequest, wanted string) (Result, error) {
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return Result{}, err
	}
	id, _, err := identityOf(s.Namespace, view, c.Wanted)
	if err != nil {
		return Result{}, err
	}
	var result record.Record
	secrets.Purge(ctx, s.SecretDir, env, c.DryRun)
	report, err := operation.Run(ctx, env, operation.Request[Observed]{
		Verb: c.Verb, Subject: record.Subject(id), DryRun: c.DryRun,
		Look: func(ctx context.Context, h host.Host) (Observed, error) {
			view, r, err := recorded(ctx, env, id)
			if err != nil {
				return Observed{}, err
			}
			boot, err := operation.Boot(env)
			if err != nil {
				return Observed{}, err
			}
			seen, err := s.Look(ctx, h, view, r, c.Wanted.apply(record.Spec{}).Disks, boot)
			if err == nil {
				seen.Vault = secrets.Look(s.SecretDir, env, h.Files(), id, r, c.Wanted.secret(), seen.Inv)
			}
			return seen, err
		},
		Decide: func(view ledger.View, seen Observed, at operation.Stamp) (d operation.Decision, err error) {
			old, known, err := loadFor(s, view, id, c)
			if err == nil && known {
				err = checkExpected(old, c)
			}
			if err != nil {
				return d, err
			}
			if known && (old.Came == c.From.ID || old.Migration != nil && old.Migration.ID == c.From.ID) {
				result = old
				return d, nil
			}
			d, result, err = expected(s, view, seen, at, old, id, wanted, c)
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}

// checkExpected refuses an instance that is here, or that another migration brings.
func checkExpected(old record.Record, c EnsureRequest) error {
	switch m := old.Migration; {
	case old.Came == c.From.ID, m.Arrives() && m.Offline && (old.Incarnation == nil || m.ID == c.From.ID):
		return nil
	case m != nil:
		return &migration.MigratingError{Name: old.Name, Migration: *m}
	}
	is := Difference{Field: "instance", Is: "on this sled already", Wanted: "to arrive by migration " + c.From.ID}
	return &ConflictError{Name: old.Name, Differences: []Difference{is}}
}

// expected is pure.
func expected(
	s Settings, view ledger.View, seen Observed, at operation.Stamp, old record.Record, id, wanted string, c EnsureRequest,
) (d operation.Decision, next record.Record, err error) {
	var fresh map[string]string
	c.Wanted, fresh = c.Wanted.withSealed(seen.Vault.Key)
	choose, name, err := beginBringUp(s, view, seen, at, id, c)
	if err != nil {
		return d, old, err
	}
	before := old
	old.Migration = nil // of an earlier try
	if next, err = nextRecord(s, choose, seen, old, old.ID != "", id, name, c); err == nil {
		err = seen.checkDisks(next.Spec.Disks)
	}
	if err == nil && wanted == record.WantedRunning {
		err = fits(next.Spec, seen, old, false)
	}
	if err == nil {
		next, err = secrets.WithVolume(old, next, seen.Vault, fresh)
	}
	if err == nil {
		next, d.Ahead, err = secrets.Keeping(s.SecretDir, next, seen.Vault, seen.Inv, fresh, at)
	}
	if err != nil {
		return d, before, err
	}
	d.Behind = secrets.Dropping(next.Name, next.Secrets, seen.Vault.Kept...)
	next.Wanted, next.Generation, next.Updated, next.Began = wanted, before.Generation+1, at.Now, at.Now
	d.OnSuccess, err = next.Replaces(before)
	return d, next, err
}

// Admit ends the arrival of an instance that is on record by a migration: it is started, if it is to run. One that was
// admitted is left as it is. Errors: *NotFoundError; *MigratingError for another
// migration; *ConflictError for an instance that came by none; those of Ensure.
func Admit(ctx context.Context, s Settings, env operation.Env, c EnsureRequest) (Result, error) {
	r, err := FindRecorded(ctx, s, env, c.Wanted.Ref, c.DryRun)
	switch {
	case err != nil || r.Came == c.From.ID:
		return Result{Record: r}, err
	case !r.Migration.Is(c.From.ID):
		if err = checkExpected(r, c); err == nil {
			err = &migration.MigratingError{Name: r.Name, Migration: *r.Migration}
		}
		return Result{Record: r}, err
	case r.Wanted == record.WantedStopped:
		return writeRecord(ctx, env, c.Verb, r.ID, func(r record.Record) (record.Record, error) {
			if r.Migration.Is(c.From.ID) {
				r.Came, r.Migration, r.Generation = c.From.ID, nil, r.Generation+1
			}
			return r, nil
		})
	}
	c.Wanted, c.From, c.Known = Wanted{Ref: r.ID}, r.Migration, true
	return ensure(ctx, s, env, c)
}
