package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/propolis"
)

// The source's side of a migration, in two operations. The first has the target
// take the machine, and its one step ends only when it is known on which sled the
// machine is. The second takes away what is left of it here. A run of the first
// that died is resumed by asking both sides.

// Departure is a migration to another sled, as it is asked for.
type Departure struct {
	Verb string
	Ref  string
	// Target are the words that run the target's sledctl; nil: those of the
	// migration that the instance is in.
	Target []string
	Run    Remote
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
	Record  Record // as it was here
	Peer    string // the words that run the target's sledctl
	Reports []operation.Report
	// There is what the target's sledctl printed of the instance; nil where it was
	// not asked, as what had departed before.
	There []byte
}

// Migrate has another sled take an instance's machine as it runs, and takes away
// what is left of it here. One that is in a migration already is gone on with.
// Errors: *MigratingError; *UnmovableError; *StateError; *RemoteError for what the
// target refused, the machine being where it was; *UnknownOutcomeError where it cannot be
// told.
func (s Settings) Migrate(ctx context.Context, env operation.Env, c Departure) (Departed, error) {
	r, err := findRecorded(ctx, s, env, c.Ref, c.DryRun)
	if err != nil {
		return Departed{}, err
	}
	d := Departed{Record: r}
	if r.Migration == nil && c.Target != nil && !c.DryRun && !c.Cancel {
		if err := rehearse(ctx, s, env.Host, r, c); err != nil {
			return d, err
		}
	}
	first, err := sendOperation(ctx, s, env, r.ID, c, &d)
	d.Reports = append(d.Reports, first)
	if err != nil || c.Cancel {
		return d, err
	}
	last, err := takeDown(ctx, s, env, removal{verb: c.Verb, ref: r.ID, dryRun: c.DryRun, departed: true},
		func(Record, operation.Moment) (Record, error) { return Record{}, nil })
	d.Reports = append(d.Reports, last.Report)
	if _, gone := errors.AsType[*NotFoundError](err); gone { // another run has done it
		err = nil
	}
	return d, err
}

// rehearse asks the target whether it could take the machine, before anything is
// written down on either side.
func rehearse(ctx context.Context, s Settings, h host.Host, r Record, c Departure) error {
	if r.Run == nil || !r.Run.Ensured {
		return nil // refused for that, and by who has looked
	}
	if problems, err := staying(s.Underlay, r, c.Shared); err != nil || len(problems) > 0 {
		return err // the same
	}
	document, err := completeDocument(s, h.Files(), r)
	if err != nil {
		return err
	}
	m := Migration{ID: uuid.Nil.String(), Target: c.Target}
	step := send{name: r.Name, id: r.ID, migration: m, target: targetOf(s.blueprint(), r), run: c.Run}
	target, err := step.at(ctx, h)
	if err != nil {
		return err
	}
	answer, err := c.Run(ctx, commandLine(c.Target, append(step.ensure(target.Address.String()), "--dry-run")), document)
	refused := refusalOf(m.Peer(), answer, err)
	if err != nil || answer.Exit != 0 {
		return refused
	}
	if err := planned(answer); err != nil {
		refused.Err = err
		return refused
	}
	return nil
}

// sendOperation is the first operation.
func sendOperation(ctx context.Context, s Settings, env operation.Env, id string, c Departure, d *Departed) (operation.Report, error) {
	return operation.Run(ctx, env, operation.Request[Observed]{
		Verb: c.Verb, Subject: Subject(id), DryRun: c.DryRun,
		Look: lookAt(s, env, id),
		Decide: func(view ledger.View, seen Observed, at operation.Moment) (operation.Decision, error) {
			if err := notBusy(ctx, env, view, id); err != nil {
				return operation.Decision{}, err
			}
			old, err := recordOf(view, id, c.Ref)
			if err != nil {
				return operation.Decision{}, err
			}
			d.Record = old
			decision, next, err := departure(s, old, seen, at, c, func(there []byte) { d.There = there })
			if next.Migration != nil {
				d.Peer = next.Migration.Peer()
			}
			return decision, err
		},
	})
}

// departure is pure.
func departure(s Settings, old Record, seen Observed, at operation.Moment, c Departure, told func([]byte)) (operation.Decision, Record, error) {
	next, err := departing(s.blueprint(), old, seen, at, c)
	if err != nil || next.Migration.Departed {
		return operation.Decision{}, next, err
	}
	document, err := s.Document(old)
	if err != nil {
		return operation.Decision{}, old, err
	}
	step := send{
		name: old.Name, id: old.ID, migration: *next.Migration, target: targetOf(s.blueprint(), old), document: document,
		whole: func(files host.Files) ([]byte, error) { return completeDocument(s, files, old) },
		run:   c.Run, cancel: c.Cancel, alone: c.Yes, tell: c.Tell, told: told,
	}
	gone, stays := next, next
	gone.Migration = &Migration{ID: next.Migration.ID, Target: next.Migration.Target, Departed: true}
	stays.Migration = nil
	after := gone
	if c.Cancel {
		after = stays
	}
	var d operation.Decision
	d.Plan = plan.Plan{Policy: plan.Stop, Actions: []plan.Action{{
		ID: step.Verb() + " " + old.Name, Object: "instance " + old.Name, Why: "to " + next.Migration.Peer(), Change: plan.Modify, Step: step,
	}}}
	d.Intent.Changes = []operation.Object{{Kind: "vm", Name: old.ID, Identity: old.Run.PropolisID}}
	var errs [3]error
	d.Before, errs[0] = next.replaces(old)
	d.After, errs[1] = after.replaces(next)
	d.Undone, errs[2] = stays.replaces(next)
	return d, next, errors.Join(errs[:]...)
}

// departing is the record of a machine that goes. A try after one that has failed
// has an id of its own; one whose end is not known goes on under the same.
func departing(b blueprint, old Record, seen Observed, at operation.Moment, c Departure) (Record, error) {
	m := old.Migration
	next := old
	next.Generation, next.Updated = old.Generation+1, at.Now
	fresh := uuid.NewSHA1(uuid.NameSpaceOID, []byte(at.ID+" migration")).String()
	switch {
	case m.arrives():
		return old, &MigratingError{Name: old.Name, Migration: *m}
	case m == nil && c.Cancel:
		return old, &StateError{Name: old.Name, State: "in no migration", Needs: "in one, to be called back"}
	case m == nil && c.Target == nil:
		return old, ErrNoTarget
	case m == nil:
		next.Migration = &Migration{ID: fresh, Target: c.Target}
		return next, checkMovable(b, old, seen, c)
	case c.Target != nil && !slices.Equal(c.Target, m.Target):
		return old, &MigratingError{Name: old.Name, Migration: *m}
	case m.Departed && c.Cancel:
		return old, &MigratingError{old.Name, *m, "it has arrived there"}
	case m.Departed || c.Cancel || seen.asSource(old) != atSource:
		if out := seen.Inside.VM.Migration.Out; out != nil && seen.asSource(old) == atTarget {
			next.Migration = &Migration{ID: out.ID, Target: m.Target, Departed: m.Departed} // by whichever it went
		}
		return next, nil
	}
	next.Migration = &Migration{ID: fresh, Target: m.Target}
	return next, checkMovable(b, old, seen, c)
}

// checkMovable refuses what cannot be migrated, before anything is.
func checkMovable(b blueprint, old Record, seen Observed, c Departure) error {
	if seen.Inside.Err != nil {
		return &NotInspectableError{Name: old.Name, Err: seen.Inside.Err}
	}
	if id, left := seen.left(old); left {
		return &MovedError{old.Name, id}
	}
	if vm := seen.Inside.VM; old.Run == nil || !old.Run.Ensured || vm.ID != old.ID || vm.State != propolis.StateRunning {
		return mustRun(b, old, seen)
	}
	problems, err := staying(b.Underlay, old, c.Shared)
	if err == nil && len(problems) > 0 {
		err = &UnmovableError{old.Name, problems}
	}
	return err
}

// UnknownOutcomeError is a migration of which it cannot be told on which sled it ended.
// The machine runs on one of them.
type UnknownOutcomeError struct {
	Name string
	Err  error // what the target said last
	Why  string
}

// Error says what is known.
func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("it cannot be told where the machine of instance %q is: %s: %v", e.Name, e.Why, e.Err)
}

func (*UnknownOutcomeError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives what the target said, and that something is left.
func (e *UnknownOutcomeError) Unwrap() []error {
	return []error{e.Err, &host.LeftError{Cause: e.Err, Err: errors.New(e.Why)}}
}

// Hint says what finds out.
func (e *UnknownOutcomeError) Hint() string {
	return "sledctl instance migrate " + e.Name + " asks both sides again, and ends it on one; where the target is off for good, with --cancel --yes"
}

// send is the step that has the target take the machine. It is done when the
// machine is there and has left here; its error is a *RemoteError when it is here
// and will stay, an *UnknownOutcomeError when that cannot be told. It is a step of this
// floor, since no resource below knows of two sleds.
type send struct {
	name, id  string
	migration Migration
	target    propolis.Target // this sled's
	document  []byte
	whole     func(host.Files) ([]byte, error) // the document with its secrets
	run       Remote
	cancel    bool
	alone     bool // without the target's word
	tell      func(phase string)
	told      func(there []byte)
}

// Verb names the step.
func (send) Verb() string { return "instance.send" }

// Limit is none here: the migration has one of its own.
func (send) Limit() (most time.Duration, waits bool) { return 0, true }

// Undo is nil: nothing calls a migration back.
func (send) Undo() any { return nil }

// Needs is what finds the address.
func (s send) Needs() []string { return s.target.Programs }

// ensure are the target's words, with the source's address.
func (s send) ensure(source string) []string {
	return []string{"instance", "ensure", "-f", "-", "--migrate-from", source, "--migration-id", s.migration.ID, "-o", "json"}
}

// giveUp are the words that take an arrival away that has not arrived.
func (s send) giveUp() []string {
	return []string{"instance", "delete", s.id, "--migration-id", s.migration.ID, "-o", "json"}
}

// Explain is the command, with the document, and the wait.
func (s send) Explain() []host.Line {
	source := fmt.Sprintf("<address of %s>:%d", s.name, s.target.Port)
	if s.target.Address.IsValid() {
		source = s.target.Address.String()
	}
	words, stdin := s.ensure(source), s.document
	switch {
	case s.alone:
		return []host.Line{host.WaitLine("the Propolis of " + s.name + " says that its machine is here")}
	case s.cancel:
		words, stdin = s.giveUp(), nil
	}
	line := commandLine(s.migration.Target, words)
	c := host.Command{Program: line[0], Args: line[1:], Stdin: stdin}
	return []host.Line{{Kind: host.LineRemote, Text: c.Shell()}, host.WaitLine("both Propolis servers say on which sled the machine of " + s.name + " runs")}
}

// Do has the machine taken, and finds out where it is.
func (s send) Do(ctx context.Context, h host.Host) error {
	target, err := s.at(ctx, h)
	c := propolis.Client{Host: h, Target: target}
	switch {
	case s.cancel:
		return s.calledBack(ctx, c)
	case err != nil: // nobody has heard of it in this try
		return s.settle(ctx, c, &RemoteError{Peer: s.migration.Peer(), Err: err})
	}
	refused := s.ask(ctx, c)
	if refused == nil {
		return s.confirm(ctx, c)
	}
	return s.settle(ctx, c, refused)
}

// at is the source's address, found.
func (s send) at(ctx context.Context, h host.Host) (propolis.Target, error) {
	t := s.target
	if t.Address.IsValid() {
		return t, nil
	}
	found, err := t.Find(ctx, h)
	t.Address = found
	return t, err
}

// ask runs the target's sledctl, and tells the phases meanwhile as this side's
// Propolis has them.
func (s send) ask(ctx context.Context, c propolis.Client) *RemoteError {
	document, err := s.whole(c.Host.Files())
	if err != nil {
		return refusalOf(s.migration.Peer(), Answer{Exit: -1}, err)
	}
	watching, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = c.Follow(watching, func(now propolis.Status) error {
			if out := now.Migration.Out; out != nil && out.ID == s.migration.ID && s.tell != nil {
				s.tell(out.State)
			}
			return nil
		})
	}()
	answer, err := s.run(ctx, commandLine(s.migration.Target, s.ensure(c.Target.Address.String())), document)
	cancel()
	<-watched
	refused := refusalOf(s.migration.Peer(), answer, err)
	if err != nil || answer.Exit != 0 {
		return refused
	}
	if err := arrivalOf(answer, s.id, s.migration.ID); err != nil {
		refused.Err = err
		return refused
	}
	s.told(answer.Stdout)
	return nil
}

// patience is how long a side of a migration may take to say what the other one
// has said already.
const patience = 30 * time.Second

// where asks this side's Propolis where the machine is, and waits while it is on
// its way.
func (s send) where(ctx context.Context, c propolis.Client) whereabouts {
	at := unclear
	rest := errors.New("it rests")
	err := c.Follow(ctx, func(now propolis.Status) error {
		vm := VM{State: now.State, ID: s.id, Generation: now.Generation, Migration: now.Migration}
		if at = vm.outOf(s.id, ""); at == onTheWay {
			return nil
		}
		return rest
	})
	switch {
	case err == nil, errors.Is(err, rest), at == onTheWay && ctx.Err() != nil:
		return at
	}
	return unclear
}

// confirm holds what the target says against what the source says: a machine that
// runs here has not left.
func (s send) confirm(ctx context.Context, c propolis.Client) error {
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer release()
	if at := s.where(ctx, c); at == atSource || at == onTheWay {
		return &UnknownOutcomeError{s.name, errForeign, "the target says that it has arrived, and the machine here has not left"}
	}
	return nil
}

// settle finds out where the machine is after the target's sledctl has not said
// that it is there.
func (s send) settle(ctx context.Context, c propolis.Client, refused *RemoteError) error {
	at := unclear
	if c.Target.Address.IsValid() {
		at = s.where(ctx, c)
	}
	interrupted := context.Cause(ctx)
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer release()
	switch at {
	case atTarget:
		if again := s.ask(ctx, c); again != nil { // it must know, too
			return &UnknownOutcomeError{s.name, again, "the machine has left, and the target does not say that it has it"}
		}
		return nil
	case onTheWay:
		return &UnknownOutcomeError{s.name, refused, "its memory is still moving, and nobody waits for it"}
	}
	if !s.givesUp(ctx, refused) {
		return &UnknownOutcomeError{s.name, refused, "the target may take it yet"}
	}
	if interrupted != nil {
		return fmt.Errorf("%w (%w)", refused, interrupted)
	}
	return refused
}

// givesUp has the target take away what it has of an arrival, and says whether
// there is none any more.
func (s send) givesUp(ctx context.Context, refused *RemoteError) bool {
	answer, err := s.run(ctx, commandLine(s.migration.Target, s.giveUp()), nil)
	if err == nil && answer.Exit == 0 {
		return true
	}
	denied := refusalOf(s.migration.Peer(), answer, err)
	return refused.clean() && !denied.Said // it cannot be asked, and has said before that there is nothing
}

// calledBack takes a migration back that has not begun to move the machine, or has
// failed to.
func (s send) calledBack(ctx context.Context, c propolis.Client) error {
	at := unclear
	if c.Target.Address.IsValid() {
		now, release := context.WithTimeout(ctx, askTimeout)
		at = s.where(now, c)
		release()
	}
	none := &RemoteError{Peer: s.migration.Peer(), Message: "it is not called back"}
	switch at {
	case onTheWay:
		return &UnknownOutcomeError{s.name, none, "its memory moves, and nothing calls it back"}
	case atTarget:
		return &UnknownOutcomeError{s.name, none, "it has left"}
	}
	if s.alone {
		return nil
	}
	answer, err := s.run(ctx, commandLine(s.migration.Target, s.giveUp()), nil)
	if err == nil && answer.Exit == 0 {
		return nil
	}
	return &UnknownOutcomeError{s.name, refusalOf(s.migration.Peer(), answer, err), "the target has not said that it gives it up"}
}
