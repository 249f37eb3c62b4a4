package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
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
		return &MigratingError{Name: old.Name, Migration: *m}
	case m == nil:
		return checkSettled(old, seen, c)
	case c.Only != "":
		return &MigratingError{Name: old.Name, Migration: *m}
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
		if awaited != nil && awaited.ID == c.From.ID && old.Run == nil {
			return nil // it was registered for that
		}
		if !hasArrived(old, c) {
			is := Difference{Field: "instance", Is: "on this sled already", Wanted: "to arrive by migration " + c.From.ID}
			return &ConflictError{Name: old.Name, Differences: []Difference{is}}
		}
	}
	if id, left := seen.left(old); left && !c.Recreate {
		return &MovedError{old.Name, id}
	}
	return nil
}

// checkArriving is checkMigration of an instance that arrives.
func checkArriving(old record.Record, seen Observed, c EnsureRequest) error {
	m := old.Migration
	at := whereArrived(old, seen)
	another := c.From != nil && c.From.ID != m.ID
	switch {
	case another && (at == onTheWay || at == atTarget):
		return &MigratingError{old.Name, *m, "and not by migration " + c.From.ID}
	case c.From != nil, at == onTheWay, at == atTarget:
		return nil // what the source says is looked at before it is asked for anything
	case at == atSource:
		return &NotArrivedError{Name: old.Name, Migration: *m}
	}
	return &MigratingError{old.Name, *m, "its machine is not here, and the source cannot be asked"}
}

// arriving is the migration and the run that the next record has. A machine that
// has come is as any other from then on.
func arriving(old record.Record, seen Observed, c EnsureRequest) (*record.Migration, *record.Run) {
	m := old.Migration
	switch {
	case m.Arrives() && old.Run != nil && whereArrived(old, seen) == atTarget:
		run := *old.Run
		run.Migration = m.ID
		return nil, &run
	case c.From != nil && (old.Run == nil || old.Run.Migration != c.From.ID):
		return c.From, old.Run
	}
	return m, old.Run
}

// arrivalStep is the step by which the machine comes; nil for one that is made here.
func arrivalStep(b layout.Blueprint, next record.Record, seen Observed, p progress, c EnsureRequest) (*propolis.Arrive, error) {
	if !next.Migration.Arrives() {
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
	case how.arrival != "" && (!m.Arrives() || m.ID != how.arrival):
		return true, nil
	case m == nil, m.Departs() && m.Departed && how.departed:
		return false, nil
	case m.Departs():
		return false, &MigratingError{Name: old.Name, Migration: *m}
	}
	vm := seen.Inside.VM
	unseen := seen.Inside.Err != nil || vm.Err != nil && !IsNoInstance(vm.Err)
	switch at := whereArrived(old, seen); {
	case at == onTheWay:
		return false, &MigratingError{old.Name, *m, "its memory is moving, which cannot be cancelled"}
	case at == atTarget && how.arrival != "":
		return false, &MigratingError{old.Name, *m, "it has arrived"}
	case at == atTarget:
		return false, nil
	case at == unclear && unseen:
		return false, &MigratingError{old.Name, *m, "cannot determine whether its VM runs here"}
	case next.ID != "" && !(at == atSource && next.Arrival() != nil): // the latter is cleared, to be made again
		return false, &MigratingError{old.Name, *m, "it has not arrived: only delete ends that, and leaves it to its source"}
	}
	return false, nil
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
