// Package moves takes an instance with its volumes to another sled while it is stopped, for as short a time as can be.
//
// While the guest runs, its volumes are sent, and what has changed since, again and again. Then the instance is stopped and
// departs: nothing starts it here. What has changed last is sent, the target puts it on record, the source hears of
// that, and only then it is started there. The volumes stay here until it runs. A run that was killed is continued by the
// same command: the ledger says whether the instance departs, and the target which snapshot each volume has.
package moves

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/sled/volume"
)

// Settings are those of what instances and their disks are read and made by.
type Settings struct {
	Instances instance.Settings
	Snapshots snapshot.Settings
	Volumes   volume.Settings
}

// Request asks for a move.
type Request struct {
	Verb string
	Ref  string // name or id
	// Target are the words that run the target's sledctl; nil: those of the move that the instance is in.
	Target []string
	Run    migration.Remote
	Feed   migration.Feed
	From   string // what this sled is called
	Shared bool   // the files that are its disks are the same on both sleds
	// Cancel takes back a move that has not ended, and Yes does without the target's word: it is off, or never heard of it.
	Cancel, Yes bool
	DryRun      bool
	Tell        func(phase string)   // may be nil
	Progress    func(done, of int64) // may be nil
}

// Move has another sled take an instance with its volumes, and removes what it had here. One whose move was
// interrupted is continued. Errors: *FixedError, *migration.MigratingError; *migration.RemoteError for what the target
// refused, the instance being here as before; *migration.InTransitError where that is not known.
func (s Settings) Move(ctx context.Context, env operation.Env, c Request) (instance.Departed, error) {
	r, err := instance.FindRecorded(ctx, s.Instances, env, c.Ref, c.DryRun)
	if err != nil {
		return instance.Departed{}, err
	}
	m := &moving{Settings: s, Request: c, env: env, done: instance.Departed{Record: r}, paths: map[string]string{}}
	if err := errors.Join(r.CheckKeeper(s.Instances.Asks), m.fits(ctx)); err != nil {
		return m.done, err
	}
	switch {
	case c.Cancel:
		err = m.cancel(ctx)
	case c.DryRun:
		err = m.plan(ctx)
	case r.Migration == nil:
		err = m.begin(ctx)
	default:
		err = m.resume(ctx)
	}
	return m.done, err
}

// moving is a run of a move.
type moving struct {
	Settings
	Request
	env   operation.Env
	done  instance.Departed
	paths map[string]string // of the volumes on the target, by their datasets here
	sent  int64             // bytes
	was   *record.Migration // the migration that was taken back
}

// to is the migration, also where none has begun.
func (m *moving) to() record.Migration {
	if is := cmp.Or(m.done.Record.Migration, m.was); is != nil {
		return *is
	}
	return record.Migration{Target: m.Target}
}

func (m *moving) tell(phase string) {
	if m.Tell != nil {
		m.Tell(phase)
	}
}

// read is the instance as it is on record now.
func (m *moving) read(ctx context.Context) (ledger.View, error) {
	view, err := operation.Decided(ctx, m.env, m.DryRun)
	if err == nil {
		var r record.Record
		if r, err = m.Instances.Find(view, m.done.Record.ID); err == nil {
			m.done.Record = r
		}
	}
	return view, err
}

// begin sends the volumes while the guest runs, and then continues as with one that departs.
func (m *moving) begin(ctx context.Context) error {
	if err := m.rehearse(ctx); err != nil {
		return err
	}
	if err := m.rounds(ctx); err != nil {
		return m.notMoved(ctx, err)
	}
	m.tell("stopping")
	result, err := instance.Vacate(ctx, m.Instances, m.env, m.Verb, m.done.Record.ID, m.Target, false)
	m.done.Reports = append(m.done.Reports, result.Report)
	if err != nil {
		return err
	}
	m.done.Record = result.Record
	return m.resume(ctx)
}

// resume continues with an instance that departs.
func (m *moving) resume(ctx context.Context) error {
	m.done.Peer = m.to().Peer()
	if !m.to().Departed {
		known, err := m.known(ctx)
		if err == nil && !known {
			err = m.last(ctx)
		}
		if err == nil {
			err = m.hand(ctx, known)
		}
		if err != nil {
			return m.back(ctx, err)
		}
	}
	return m.leave(ctx)
}

// known asks the target whether it has the instance on record already: by an earlier run, which has sent all.
func (m *moving) known(ctx context.Context) (bool, error) {
	answer, err := m.Run(ctx, migration.Words(m.to(), []string{"instance", "get", m.done.Record.ID, "-o", "json"}), nil)
	printed, err := migration.Asked(m.to(), answer, err)
	if refused, ok := errors.AsType[*migration.RemoteError](err); ok && refused.IsNotFound() {
		return false, nil
	}
	return err == nil && expects(printed, m.done.Record.ID, m.to().ID), err
}

// last sends what has changed until the instance was stopped.
func (m *moving) last(ctx context.Context) error {
	m.tell("last changes")
	_, err := m.round(ctx)
	return err
}

// leave removes what the instance had here.
func (m *moving) leave(ctx context.Context) error {
	m.tell("removing it here")
	if err := m.dropSnapshots(ctx, ""); err != nil {
		return m.unremoved(err)
	}
	result, err := instance.Leave(ctx, m.Instances, m.env, m.Verb, m.done.Record.ID, false)
	if _, gone := errors.AsType[*record.NotFoundError](err); gone { // another run has done it
		err = nil
	}
	m.done.Reports = append(m.done.Reports, result.Report)
	return m.unremoved(err)
}

func (m *moving) unremoved(err error) error {
	if err != nil {
		err = fmt.Errorf("instance %q is on %s, and what it had here was not removed: %w", m.done.Record.Name, m.done.Peer, err)
	}
	return err
}

// patience is how long a target may take to say that it gives something up, and backTime how long the instance may take to
// start here again, beyond the time of the command.
const patience, backTime = 30 * time.Second, 10 * time.Minute

// back has the target drop what it has on record, and starts the instance here again. What has been sent stays there,
// for the next try.
func (m *moving) back(ctx context.Context, cause error) error {
	if interrupted := context.Cause(ctx); interrupted != nil && !errors.Is(cause, interrupted) {
		cause = fmt.Errorf("%w (%w)", cause, interrupted)
	}
	asking, release := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer release()
	if err := migration.GivesUp(asking, m.Run, m.to(), m.done.Record.ID); err != nil {
		return &migration.InTransitError{Name: m.done.Record.Name, Err: errors.Join(cause, err), Why: "the target may have it"}
	}
	starting, release := context.WithTimeout(context.WithoutCancel(ctx), backTime)
	defer release()
	if err := m.here(starting); err != nil {
		return errors.Join(cause, err)
	}
	return m.notMoved(ctx, cause, m.done.Reports[len(m.done.Reports)-1]) // how it was started again
}

// notMoved says that the instance is here as before, and what is left of the move: the snapshots, which the next try
// needs, and what else was made.
func (m *moving) notMoved(ctx context.Context, cause error, more ...operation.Report) error {
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer release()
	if view, err := m.read(ctx); err == nil {
		all, _ := snapshot.Of(view, m.done.Record.ID) // what cannot be read is reported by what the operations left
		var left []string
		for _, r := range all {
			if strings.HasPrefix(r.Name, Passing) {
				left = append(left, m.Snapshots.Objects(view, r)...)
			}
		}
		m.done.Reports = append(more, operation.Report{Verb: m.Verb, View: view, Outcome: plan.Outcome{Leftovers: left}})
	}
	return &NotMovedError{Name: m.done.Record.Name, Err: cause}
}

// here has the instance be this sled's again, as it is wanted.
func (m *moving) here(ctx context.Context) error {
	m.tell("back here")
	m.was = m.done.Record.Migration
	result, err := instance.Unvacate(ctx, m.Instances, m.env, m.Verb, m.done.Record.ID, m.to().ID)
	m.done.Reports = append(m.done.Reports, result.Report)
	if err != nil {
		return err
	}
	if m.done.Record = result.Record; result.Record.Wanted != record.WantedRunning {
		return nil
	}
	result, err = m.Instances.Ensure(ctx, m.env, instance.EnsureRequest{Verb: m.Verb, Wanted: instance.Wanted{Ref: m.done.Record.ID}, Known: true})
	m.done.Reports = append(m.done.Reports, result.Report)
	return err
}

// cancel takes back a move that was interrupted: the instance is here again, and nothing of it on the target.
func (m *moving) cancel(ctx context.Context) error {
	r := m.done.Record
	if r.Migration == nil && m.Target == nil {
		return &instance.StateError{Name: r.Name, State: "in no migration", Needs: "in one, to be called back"}
	}
	if !m.Yes {
		if err := migration.GivesUp(ctx, m.Run, m.to(), r.ID); err != nil {
			return &migration.InTransitError{Name: r.Name, Err: err, Why: "the target has not said that it gives it up"}
		}
	}
	if r.Migration != nil {
		if err := m.here(ctx); err != nil {
			return err
		}
	}
	if !m.Yes {
		if err := m.dropCopies(ctx); err != nil {
			return err
		}
	}
	return m.dropSnapshots(ctx, "")
}

// dropCopies removes what the target has of the volumes.
func (m *moving) dropCopies(ctx context.Context) error {
	_, volumes, err := m.volumes(ctx)
	if err != nil {
		return err
	}
	if len(volumes) == 0 {
		return nil
	}
	held, err := m.held(ctx)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if held[v.Name].Arrives != m.done.Record.ID {
			continue
		}
		answer, err := m.Run(ctx, migration.Words(m.to(), []string{"volume", "delete", v.Name, "--yes", "-o", "json"}), nil)
		if _, err := migration.Asked(m.to(), answer, err); err != nil {
			return err
		}
	}
	return nil
}

// volumes are those that go along, in the order of the disks.
func (m *moving) volumes(ctx context.Context) (ledger.View, []volume.Record, error) {
	view, err := m.read(ctx)
	var all []volume.Record
	for _, d := range m.done.Record.NextDisks() {
		dataset, _ := d.Volume()
		if v, ours := volume.At(view, dataset); ours && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return view, all, err
}
