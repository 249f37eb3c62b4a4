package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// The source's side of a migration, in two operations. The first has the target
// take the machine, and its one step ends only when it is known on which sled the
// machine is. The second removes what is left of it here. A run of the first
// that died is resumed by asking both sides.

// Departure is a migration to another sled, as it is asked for.
type Departure struct {
	Verb string
	Ref  string
	// Target are the words that run the target's sledctl; nil: those of the
	// migration that the instance is in.
	Target []string
	Run    migration.Remote
	// Shared says that the files that are its disks are the same on both sleds.
	Shared bool
	// Cancel takes a migration back that has not moved the machine.
	Cancel bool
	// Yes takes it back without the target's word: it is off, or never heard of it.
	Yes    bool
	DryRun bool
	Tell   func(phase string) // may be nil
}

// ErrNoTarget is a migration that is begun without saying where to.
var ErrNoTarget = errors.New("the target of the migration is missing")

// Departed is what came of a migration.
type Departed struct {
	Record  record.Record // as it was here
	Peer    string        // the words that run the target's sledctl
	Reports []operation.Report
	// There is what the target's sledctl printed of the instance; nil where it was
	// not asked, as what had departed before.
	There []byte
}

// Migrate has another sled take an instance's machine as it runs, and removes
// what is left of it here. One that is in a migration already is resumed.
// Errors: *MigratingError; *UnmovableError; *StateError; *RemoteError for what the
// target refused, the machine being where it was; *UnknownOutcomeError where it cannot be
// told.
func (s Settings) Migrate(ctx context.Context, env operation.Env, c Departure) (Departed, error) {
	r, err := FindRecorded(ctx, s, env, c.Ref, c.DryRun)
	if err != nil {
		return Departed{}, err
	}
	d := Departed{Record: r}
	if err := r.CheckKeeper(s.Asks); err != nil {
		return d, err
	}
	if r.Migration == nil && c.Target != nil && !c.DryRun && !c.Cancel {
		if err := rehearse(ctx, s, env, r, c); err != nil {
			return d, err
		}
	}
	sends := env
	if env.Observe != nil && !c.Cancel {
		sends.Observe, env.Observe = asOne(env.Observe)
	}
	first, err := sendOperation(ctx, s, sends, r.ID, c, &d)
	d.Reports = append(d.Reports, first)
	if err != nil || c.Cancel {
		return d, err
	}
	last, err := takeDown(ctx, s, env, removal{verb: c.Verb, ref: r.ID, dryRun: c.DryRun, departed: true},
		func(record.Record, operation.Stamp) (record.Record, error) { return record.Record{}, nil })
	if _, gone := errors.AsType[*record.NotFoundError](err); gone { // another run has done it
		err = nil
	}
	if err != nil && last.Report.ID == "" && !c.DryRun {
		last.Report.Outcome = plan.Outcome{Leftovers: d.Record.Remains(), Interrupted: err}
		err = fmt.Errorf("instance %q runs on %s, and what it had here was not removed: %w", d.Record.Name, d.Peer, err)
	}
	d.Reports = append(d.Reports, last.Report)
	if err == nil && migration.HasFailed(d.There) {
		err = &migration.FailedThereError{Name: d.Record.Name, Peer: d.Peer}
	}
	return d, err
}

// asOne shows two operations as the one command that an operator has typed: that the first
// one succeeded is kept back, and the second one took as long as both.
func asOne(observe func(operation.Event)) (first, second func(operation.Event)) {
	var took time.Duration
	first = func(e operation.Event) {
		if e.Kind == operation.Over && e.Err == nil {
			took = e.Elapsed
			return
		}
		observe(e)
	}
	second = func(e operation.Event) {
		if e.Kind == operation.Over {
			e.Elapsed += took
		}
		observe(e)
	}
	return first, second
}

// rehearse asks the target whether it could take the machine, before anything is
// written down on either side.
func rehearse(ctx context.Context, s Settings, env operation.Env, r record.Record, c Departure) error {
	if r.Incarnation == nil || !r.Incarnation.Ensured {
		return nil // the operation refuses it, once it has looked
	}
	if problems, err := migration.Obstacles(s.Underlay, r, c.Shared); err != nil || len(problems) > 0 {
		return err // the same
	}
	view, err := operation.Decided(ctx, env, true)
	if err != nil {
		return err
	}
	sent, _, err := record.Leaving(view, r, false)
	if err != nil {
		return err
	}
	m := record.Migration{ID: uuid.Nil.String(), Target: c.Target}
	return sending(s, sent, m, c).Rehearse(ctx, env.Host)
}

// sending is the step that has the target take the VM of a record.
func sending(s Settings, r record.Record, m record.Migration, c Departure) migration.Send {
	return migration.Send{
		Name: r.Name, ID: r.ID, Migration: m, Target: layout.TargetOf(s.Blueprint(), r),
		Complete: func(files host.Files) ([]byte, error) {
			return migration.CompleteDocument(s.GuestLink, s.Underlay, files, r)
		},
		Run: c.Run, Cancel: c.Cancel, Alone: c.Yes, Tell: c.Tell,
	}
}

// sendOperation is the first operation.
func sendOperation(ctx context.Context, s Settings, env operation.Env, id string, c Departure, d *Departed) (operation.Report, error) {
	return operation.Run(ctx, env, operation.Request[Observed]{
		Verb: c.Verb, Subject: record.Subject(id), DryRun: c.DryRun,
		Look: lookAt(s, env, id),
		Decide: func(view ledger.View, seen Observed, at operation.Stamp) (operation.Decision, error) {
			if err := notBusy(ctx, env, view, id); err != nil {
				return operation.Decision{}, err
			}
			old, err := record.Existing(view, id, c.Ref)
			if err != nil {
				return operation.Decision{}, err
			}
			d.Record = old
			if err := old.CheckKeeper(s.Asks); err != nil {
				return operation.Decision{}, err
			}
			decision, next, err := departure(s, view, old, seen, at, c, func(there []byte) { d.There = there })
			if next.Migration != nil {
				d.Peer = next.Migration.Peer()
			}
			return decision, err
		},
	})
}

// departure is pure.
func departure(
	s Settings, view ledger.View, old record.Record, seen Observed, at operation.Stamp, c Departure, told func([]byte),
) (operation.Decision, record.Record, error) {
	next, err := departing(s.Blueprint(), old, seen, at, c)
	if err != nil || next.Migration.Departed {
		return operation.Decision{}, next, err
	}
	again := old.Migration != nil && old.Migration.ID == next.Migration.ID
	sent, counted, err := record.Leaving(view, old, again || c.Cancel)
	if err != nil {
		return operation.Decision{}, old, err
	}
	step := sending(s, sent, *next.Migration, c)
	step.Told = told
	if step.Document, err = migration.Document(s.GuestLink, s.Underlay, sent); err != nil {
		return operation.Decision{}, old, err
	}
	gone, stays := next, next
	gone.Migration = &record.Migration{ID: next.Migration.ID, Target: next.Migration.Target, Departed: true}
	stays.Migration = nil
	after := gone
	if c.Cancel {
		after = stays
	}
	var d operation.Decision
	d.Plan = plan.Plan{Policy: plan.Stop, Actions: []plan.Action{{
		ID: step.Verb() + " " + old.Name, Object: "instance " + old.Name, Why: "to " + next.Migration.Sled(), Change: plan.Modify, Step: step,
	}}}
	d.Intent.Changes = []operation.Object{{Kind: "vm", Name: old.ID, Identity: old.Incarnation.PropolisID}}
	var errs [3]error
	d.OnStart, errs[0] = next.Replaces(old)
	d.OnSuccess, errs[1] = after.Replaces(next)
	d.OnUndo, errs[2] = stays.Replaces(next)
	d.OnStart = append(d.OnStart, counted...)
	return d, next, errors.Join(errs[:]...)
}

// departing is the record of a machine that goes. A try after one that has failed
// has an id of its own; one whose end is not known goes on under the same.
func departing(b layout.Blueprint, old record.Record, seen Observed, at operation.Stamp, c Departure) (record.Record, error) {
	m := old.Migration
	next := old
	next.Generation, next.Updated = old.Generation+1, at.Now
	fresh := uuid.NewSHA1(uuid.NameSpaceOID, []byte(at.ID+" migration")).String()
	switch {
	case m.Arrives(), m != nil && m.Offline:
		return old, &migration.MigratingError{Name: old.Name, Migration: *m}
	case m == nil && c.Cancel:
		return old, &StateError{Name: old.Name, State: "in no migration", Needs: "in one, to be called back"}
	case m == nil && c.Target == nil:
		return old, ErrNoTarget
	case m == nil:
		next.Migration = &record.Migration{ID: fresh, Target: c.Target}
		return next, checkMovable(b, old, seen, c)
	case c.Target != nil && !slices.Equal(c.Target, m.Target):
		return old, &migration.MigratingError{Name: old.Name, Migration: *m}
	case m.Departed && c.Cancel:
		return old, &migration.MigratingError{Name: old.Name, Migration: *m, Why: "it has arrived there"}
	case m.Departed || c.Cancel || seen.asSource(old) != migration.AtSource:
		if out := seen.Inside.VM.Migration.Out; out != nil && seen.asSource(old) == migration.AtTarget {
			next.Migration = &record.Migration{ID: out.ID, Target: m.Target, Departed: m.Departed} // by whichever it went
		}
		return next, nil
	}
	next.Migration = &record.Migration{ID: fresh, Target: m.Target}
	return next, checkMovable(b, old, seen, c)
}

// checkMovable refuses what cannot be migrated, before anything is.
func checkMovable(b layout.Blueprint, old record.Record, seen Observed, c Departure) error {
	if seen.Inside.Err != nil {
		return &NotInspectableError{Name: old.Name, Err: seen.Inside.Err}
	}
	if id, left := seen.Inside.VM.Left(old); left {
		return &migration.MovedError{Name: old.Name, Migration: id}
	}
	if vm := seen.Inside.VM; old.Incarnation == nil || !old.Incarnation.Ensured || vm.ID != old.ID || vm.State != propolis.StateRunning {
		return mustRun(b, old, seen)
	}
	problems, err := migration.Obstacles(b.Underlay, old, c.Shared)
	if err == nil && len(problems) > 0 {
		err = &migration.UnmovableError{Name: old.Name, Problems: problems}
	}
	return err
}

// asSource is VM.OutOf of the instance's own Propolis.
func (s Observed) asSource(r record.Record) migration.Whereabouts {
	if r.Incarnation == nil {
		return migration.Unclear
	}
	z, there := s.Inv.Zone(r.Incarnation.Zone)
	if !there || z.State != zone.Running || s.Inside.Err != nil {
		return migration.Unclear
	}
	return s.Inside.VM.OutOf(r.ID, "")
}

// Vacate stops an instance that moves to another sled while it is stopped, and writes down that it departs: from then on
// nothing starts it here. It stays wanted as it is. Errors: *MigratingError; those of Stop.
func Vacate(ctx context.Context, s Settings, env operation.Env, verb, id string, target []string, dryRun bool) (Result, error) {
	return takeDown(ctx, s, env, removal{verb: verb, ref: id, grace: StopTime, dryRun: dryRun}, func(old record.Record, at operation.Stamp) (record.Record, error) {
		next := old.Stopped(at)
		next.Wanted = old.Wanted
		next.Migration = &record.Migration{ID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(at.ID+" migration")).String(), Target: target, Offline: true}
		return next, nil
	})
}

// Unvacate takes that back: the instance is this sled's, and stopped. Of another migration nothing is done.
func Unvacate(ctx context.Context, s Settings, env operation.Env, verb, id, migration string) (Result, error) {
	return writeRecord(ctx, env, verb, id, func(r record.Record) (record.Record, error) {
		if m := r.Migration; m.Departs() && m.Is(migration) && !m.Departed {
			r.Migration, r.Generation = nil, r.Generation+1
		}
		return r, nil
	})
}

// Leave forgets an instance that has moved to another sled, and removes the volumes that it had here.
func Leave(ctx context.Context, s Settings, env operation.Env, verb, id string, dryRun bool) (Result, error) {
	return takeDown(ctx, s, env, removal{verb: verb, ref: id, dryRun: dryRun, departed: true, disks: true},
		func(record.Record, operation.Stamp) (record.Record, error) { return record.Record{}, nil })
}
