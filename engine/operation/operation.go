// Package operation is the one bracket around every change: lock the subject,
// look, plan and write down the intent under the ledger's lock, apply, write
// down the outcome. Nothing else applies a plan or appends to the ledger.
//
// Between intent and outcome nothing is written. After a crash the inventory
// shows how far it came, and the open intent shows to whom the half-made things
// belong.
package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Env is what every operation of a process shares.
type Env struct {
	Host   host.Host
	Ledger func(context.Context) (*ledger.Ledger, error) // opened by the first who needs it
	RunDir string                                        // absolute; locks and traces live below it
	PID    int
	By     By
	Argv   []string // of the command, without secrets
	// Exit is the exit code of an operation that failed and left this; nil: 1.
	Exit func(err error, left []string) int
	// NewID makes a new random id (a UUID as text).
	NewID func() string
	// Wait waits, until the context ends, for what another run holds, instead of
	// failing with a *LockedError. Warn is told for whom.
	Wait    bool
	Observe func(Event) // progress; may be nil
	// Awaits shows the run that is waited for, at each of its steps; may be nil.
	Awaits func(*LockedError)
	// Name is what an operator calls a subject; nil: as it is.
	Name func(view ledger.View, subject string) string
	Warn func(error) // what went wrong and changes nothing; may be nil
}

// Over is the kind of an operation's last event, which is about no action: what failed is
// its Err.
const Over plan.EventKind = "over"

// Event is one thing that happened to an action of an operation.
type Event struct {
	plan.Event
	Verb string // as the operator typed it
	Name string // of the operation's subject, as she calls it
	// Undoes says that what was made is taken back, if it does not come to its end.
	Undoes bool
	// Usual, if set, is how long such an operation takes on this sled; 0: that is not known.
	Usual func() time.Duration
}

func (env Env) warn(all ...error) {
	for _, err := range all {
		if env.Warn != nil {
			env.Warn(err)
		}
	}
}

// Request is one change that is asked for. S is what its Look saw.
type Request[S any] struct {
	Verb    string // as the operator typed it: "instance ensure"
	Subject string // what is locked: "instance/<uuid>", "sled", "vnic/<name>"
	// Wait waits for the subject's lock silently, even if Env.Wait does not: for
	// subjects that many short operations share.
	Wait bool

	Look   func(ctx context.Context, h host.Host) (S, error)
	Decide func(view ledger.View, seen S, at Stamp) (Decision, error)

	// Seal, if set, runs after all was done and looks for what only the host
	// could choose: a zone's uuid, a dataset's guid. Its facts go with the
	// outcome, behind those that were decided.
	Seal func(ctx context.Context, h host.Host) ([]ledger.Fact, error)

	// BeforeLedger lets it run when there is no ledger at all: what the ledger
	// will lie on is made so.
	BeforeLedger bool

	DryRun bool // look and decide, no more
	Keep   bool // leave what was made when it fails
}

// Stamp is what a decision may not find out by itself: the id of its intent,
// from which it derives all that it draws, and the time.
type Stamp struct {
	ID  string
	Now time.Time
}

// Decision is what Decide makes of wanted, seen and recorded. It is a pure
// function's result.
type Decision struct {
	Plan plan.Plan
	// Ahead is done before the intent is written: what the facts refer to.
	Ahead []plan.Action
	// Behind is done after the outcome, when all was done, and Reverted when it
	// failed and nothing is left: what no fact refers to now. A failure of
	// them is reported; the next operation on the subject finds what is left.
	Behind, Reverted []plan.Action
	// Intent says what this run will make, remove or change, and why.
	Intent Intent
	// OnStart is appended together with the intent: reservations.
	OnStart []ledger.Fact
	// OnSuccess is appended together with the outcome when all was done.
	OnSuccess []ledger.Fact
	// OnUndo is appended instead when it failed and nothing is left.
	OnUndo []ledger.Fact
	// OnFailure is appended instead when it failed and something is left.
	OnFailure []ledger.Fact
	// Warn is reported, and stops nothing.
	Warn []error
}

// Intent is the value of an intent/<id> fact while its run is alive or dead
// in mid-flight. It is removed by the outcome.
type Intent struct {
	Verb    string    `json:"verb"`
	Subject string    `json:"subject"`
	PID     int       `json:"pid"`          // for messages only
	By      *By       `json:"by,omitempty"` // nil: of an earlier sledctl
	Time    time.Time `json:"time"`
	Makes   []Object  `json:"makes,omitempty"`
	Removes []Object  `json:"removes,omitempty"`
	Changes []Object  `json:"changes,omitempty"`
	Base    string    `json:"base,omitempty"` // the base zone that is cloned, so that it counts as in use
	// Supersedes names older intents of the same subject whose runs died: this run
	// answers for what they left.
	Supersedes []string `json:"takes,omitempty"`
}

// superseded are the facts that end the older intents that were taken over.
func (i Intent) superseded() []ledger.Fact {
	var ended []ledger.Fact
	for _, id := range i.Supersedes {
		ended = append(ended, ledger.Fact{Key: intentKey(id)})
	}
	return ended
}

// Object is one thing on the host. Creations need names, removals identities,
// changes the old values.
type Object struct {
	Kind     string `json:"kind"` // zone, vnic, etherstub, dataset, address
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"` // zone uuid, dataset guid, VNIC MAC
	Old      string `json:"old,omitempty"`
}

// Report is the result of a request.
type Report struct {
	ID      string // of the intent; empty when nothing was done
	Verb    string
	Subject string
	Name    string // what an operator calls the subject; empty: nothing was begun
	Plan    plan.Plan
	Outcome plan.Outcome
	Steps   []TraceStep // as they ended
	// Idle is set if a dry run found nothing to do, and nothing to write down.
	Idle    bool
	View    ledger.View // as it is afterwards; of a dry run, as it was
	Started time.Time
	Elapsed time.Duration
}

// LockedError is a subject that another run holds.
type LockedError struct {
	Subject string
	Holder  Holder // zero if it did not say
	// For is how long it has been locked.
	For time.Duration
}

// LockedBy is a subject that is locked now.
func LockedBy(subject string, h Holder) *LockedError {
	return &LockedError{Subject: subject, Holder: h, For: max(0, time.Since(h.Since))}
}

// Error names the holder.
func (e *LockedError) Error() string {
	h := e.Holder
	called := cmp.Or(h.Name, e.Subject)
	if h.PID == 0 { // it has the lock, and has not yet said who it is
		return called + " is being worked on by another process"
	}
	said := fmt.Sprintf("%s is being worked on by %s (pid %d, %s) for %s",
		called, cmp.Or(h.User, "another process"), h.PID, h.Verb, e.For.Round(time.Second))
	if h.Steps > 0 {
		said += fmt.Sprintf(": step %d/%d, %s", h.At, h.Steps, h.Step)
	}
	if h.Group != 0 {
		program, _, _ := strings.Cut(h.Command, " ")
		said += fmt.Sprintf("; its last command is process %d (%s)", h.Group, program)
	}
	return said
}

func (*LockedError) Kind() fault.Kind { return fault.Locked }

// OutcomeError is a run that did its work but could not write down what
// became of it: the intent stays open and the next run looks again.
type OutcomeError struct{ Err error }

// Error says so.
func (e *OutcomeError) Error() string {
	return fmt.Sprintf("writing the outcome to the ledger: %v", e.Err)
}

func (*OutcomeError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives the cause.
func (e *OutcomeError) Unwrap() error { return e.Err }

// Run carries a request out. The error is that of locking, looking, deciding
// or the ledger (*LockedError, *OutcomeError, ledger's own), or else
// Report.Outcome.Err(). What the host lacks for it, privileges
// (host.ErrPrivileges) or programs (host.ErrNoCommand), is found out before
// anything is written or changed. A Decide may fail with a *LockedError too,
// where it meets what another subject's run is at work on.
func Run[S any](ctx context.Context, env Env, r Request[S]) (Report, error) {
	for {
		report, err := runOnce(ctx, env, r)
		locked, ok := errors.AsType[*LockedError](err)
		if ok && locked.Holder.Name == "" {
			locked.Holder.Name = called(ctx, env, locked.Subject)
		}
		if !ok || !env.Wait {
			return report, err
		}
		if err := await(ctx, env, locked); err != nil {
			return report, err
		}
	}
}

// called is what an operator calls a subject, if that can be found out; else it is empty.
func called(ctx context.Context, env Env, subject string) string {
	if env.Name == nil {
		return ""
	}
	book, err := env.Ledger(ctx)
	if err != nil {
		return ""
	}
	view, err := book.Read(ctx)
	if err != nil {
		return ""
	}
	return env.Name(view, subject)
}

// runOnce is Run without the wait for others.
func runOnce[S any](ctx context.Context, env Env, r Request[S]) (report Report, err error) {
	report = Report{Verb: r.Verb, Subject: r.Subject, Started: time.Now()}
	if r.DryRun {
		return dryRun(ctx, env, r, report)
	}
	if err := host.Privileged(env.Host); err != nil {
		return report, err
	}
	ctx, say, unlock, err := lockSubject(ctx, env, r.Verb, r.Subject, r.Wait)
	if err != nil {
		return report, err
	}
	defer func() { unlock(err == nil) }()
	seen, err := r.Look(ctx, env.Host)
	if err != nil {
		return report, err
	}
	book, err := bookOf(ctx, env, r.Subject, r.BeforeLedger)
	if err != nil {
		return report, err
	}
	var decision Decision
	id := env.NewID()
	work := &bracket{env: env, sign: say, record: &recorder{}, report: &report}
	view, err := book.Update(ctx, func(view ledger.View) ([]ledger.Fact, error) {
		decision, err = r.Decide(view, seen, Stamp{ID: id, Now: report.Started.UTC()})
		if err == nil {
			err = host.Lookup(env.Host, decision.Plan.Programs()...)
		}
		if err != nil {
			return nil, err
		}
		facts, err := opening(env, r.Verb, r.Subject, view, id, &decision)
		if err == nil {
			err = work.do(ctx, decision.Ahead)
		}
		if err == nil && decision.Plan.Empty() && len(facts) > 0 {
			facts, err = remembered(env, view, report, id, facts)
		}
		return facts, err
	})
	report.Plan, report.View = decision.Plan, view
	if err == nil {
		env.warn(decision.Warn...)
	}
	if err != nil || decision.Plan.Empty() {
		if err == nil {
			work.tidy(ctx, decision.Behind)
		}
		report.Elapsed = time.Since(report.Started)
		return report, err
	}
	report.ID = id
	return work.apply(ctx, book, r.Keep, r.Seal, decision)
}

// Decided is what the ledger says to those who change something: also what a run
// that was killed has decided last. So nobody is told that there is nothing to
// do, by what counts no more with the next change. A dry run writes nothing, and
// reads as others do.
func Decided(ctx context.Context, env Env, dryRun bool) (ledger.View, error) {
	book, err := env.Ledger(ctx)
	switch {
	case err != nil:
		return ledger.View{}, err
	case dryRun, host.Privileged(env.Host) != nil:
		return book.Read(ctx)
	}
	return book.Settled(ctx)
}

func dryRun[S any](ctx context.Context, env Env, r Request[S], report Report) (Report, error) {
	seen, err := r.Look(ctx, host.ReadOnly(env.Host))
	if err != nil {
		return report, err
	}
	book, err := bookOf(ctx, env, r.Subject, r.BeforeLedger)
	if err != nil {
		return report, err
	}
	view, err := book.Read(ctx)
	if err != nil {
		return report, err
	}
	decision, err := r.Decide(view, seen, Stamp{ID: env.NewID(), Now: report.Started.UTC()})
	report.Plan, report.View = decision.Plan, view
	report.Plan.Actions = slices.Concat(decision.Ahead, decision.Plan.Actions, decision.Behind)
	if err == nil {
		env.warn(decision.Warn...)
	}
	report.Elapsed = time.Since(report.Started)
	if err == nil && report.Plan.Empty() {
		facts, err := opening(env, r.Verb, r.Subject, view, "", &decision)
		report.Idle = err == nil && len(facts) == 0
		report.Plan.Why = cmp.Or(report.Plan.Why, written(env, r.Subject, view, facts))
	}
	return report, err
}

// written says what an operation that leaves the host alone does to the record of its subject;
// empty: nothing.
func written(env Env, subject string, view ledger.View, facts []ledger.Fact) string {
	i := slices.IndexFunc(facts, func(f ledger.Fact) bool { return f.Key == subject })
	if i < 0 {
		return ""
	}
	name := subject
	if env.Name != nil {
		name = cmp.Or(env.Name(view, subject), subject)
	}
	if facts[i].Value == nil {
		return fmt.Sprintf("would remove the record of %s: nothing of it is on the host", name)
	}
	return fmt.Sprintf("would change the record of %s, and nothing on the host", name)
}

// opening lists the facts that go before the work. A plan without actions
// writes only what it must remember, and no intent; it ends those of dead runs
// with nothing left to do.
func opening(env Env, verb, subject string, view ledger.View, id string, d *Decision) ([]ledger.Fact, error) {
	sorted, err := d.Plan.Sorted()
	if err != nil {
		return nil, err
	}
	d.Plan = sorted
	for _, open := range Open(view) {
		if open.Subject == subject {
			d.Intent.Supersedes = append(d.Intent.Supersedes, open.ID)
		}
	}
	if d.Plan.Empty() {
		return slices.Concat(d.OnStart, d.OnSuccess, d.Intent.superseded()), nil
	}
	d.Intent.Verb, d.Intent.Subject, d.Intent.PID, d.Intent.By, d.Intent.Time = verb, subject, env.PID, &env.By, time.Now().UTC()
	value, err := json.Marshal(d.Intent)
	if err != nil {
		return nil, err
	}
	return append(d.OnStart, ledger.Fact{Key: intentKey(id), Value: value}), nil
}

func intentKey(id string) string { return naming.KeyIntent + id }

// Forget is the fact that ends an intent of a run that died, once nothing of that run
// is left.
func Forget(id string) ledger.Fact { return ledger.Fact{Key: intentKey(id)} }

// OpenIntent is an intent without an outcome.
type OpenIntent struct {
	ID string
	Intent
}

// Open lists the open intents, by id. One whose subject's lock is free is of a
// run that died.
func Open(view ledger.View) []OpenIntent {
	var open []OpenIntent
	for key, value := range view.All(naming.KeyIntent) {
		var in Intent
		if json.Unmarshal(value, &in) != nil {
			in.Verb = "unreadable"
		}
		open = append(open, OpenIntent{ID: key[len(naming.KeyIntent):], Intent: in})
	}
	return open
}

// IsOpen reports whether a subject has an open intent.
func IsOpen(view ledger.View, subject string) bool {
	return slices.ContainsFunc(Open(view), func(o OpenIntent) bool { return o.Subject == subject })
}
