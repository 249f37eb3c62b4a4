package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/smf"
	"github.com/sledctl/sledctl/zone"
)

// Change is a verb on one instance, with what it may do.
type Change struct {
	Verb   string // for locks, intents and messages
	Wanted Wanted
	// Only, if set, does one stage of the way up and no more.
	Only Stage
	// Known refuses an instance that is not recorded: start, not ensure.
	Known bool
	// Recreate rebuilds a running zone where the difference needs it.
	Recreate bool
	// Protect, if set, is whether delete shall refuse to take the instance away
	// from now on.
	Protect *bool
	// Evacuate lets stop leave it as wanted as it is: the instance comes up again
	// with the sled.
	Evacuate bool
	// Yes lets delete take away what is protected.
	Yes    bool
	DryRun bool
	Keep   bool
}

// Result is an instance after a verb, and what the verb did.
type Result struct {
	Record Record
	Report operation.Report
	// State is that in which Adopt has found the machine.
	State State
}

// Ensure makes the instance be there, run, and be as wanted. One that already
// is costs a look: nothing is locked and nothing written.
func (s Settings) Ensure(ctx context.Context, env operation.Env, c Change) (Result, error) {
	book, err := env.Ledger(ctx)
	if err != nil {
		return Result{}, err
	}
	view, err := book.Read(ctx)
	if err != nil {
		return Result{}, err
	}
	id, _, err := s.identity(view, c.Wanted)
	if err != nil {
		return Result{}, err
	}
	r, known, err := Load(view, id)
	if err != nil {
		return Result{}, err
	}
	if c.Known && !known {
		return Result{}, s.missing(ctx, env, view, c.Wanted.Ref)
	}
	if known && c.Only == "" && s.isSo(ctx, env.Host, r, c.Wanted) {
		if c.Protect != nil && *c.Protect != r.Protected {
			return s.protect(ctx, env, id, c)
		}
		return Result{Record: r, Report: operation.Report{Verb: c.Verb, View: view}}, nil
	}
	return s.change(ctx, env, id, c)
}

// isSo is the cheap look: the record is finished and equal to what is wanted,
// its zone runs, and its Propolis runs its machine. Any doubt is a no.
func (s Settings) isSo(ctx context.Context, h host.Host, r Record, w Wanted) bool {
	if r.Run == nil || !r.Run.Ensured || len(r.Leaving) > 0 || r.Wanted != WantedRunning || w.Name != "" && w.Name != r.Name {
		return false
	}
	if len(differences(r.Spec, w.apply(r.Spec))) > 0 {
		return false
	}
	vm, err := s.quickLook(ctx, h, r)
	return err == nil && vm.State == "Running" && vm.ID == r.ID
}

// change is the operation behind ensure, start and every single step.
func (s Settings) change(ctx context.Context, env operation.Env, id string, c Change) (Result, error) {
	var result Record
	request := operation.Request[Seen]{
		Verb: c.Verb, Subject: Subject(id), DryRun: c.DryRun, Keep: c.Keep,
		Look: func(ctx context.Context, h host.Host) (Seen, error) {
			r, err := recorded(ctx, env, id)
			if err != nil {
				return Seen{}, err
			}
			boot, err := operation.Boot(env)
			if err != nil {
				return Seen{}, err
			}
			return s.Look(ctx, h, r, c.Wanted.apply(r.Spec).Disks, boot)
		},
		Decide: func(view ledger.View, seen Seen, at operation.Moment) (operation.Decision, error) {
			if err := s.free(ctx, env, view, id); err != nil {
				return operation.Decision{}, err
			}
			d, r, err := s.decide(view, seen, at, id, c)
			result = r
			return d, err
		},
	}
	report, err := operation.Run(ctx, env, request)
	if report.ID != "" {
		if r, known, lerr := Load(report.View, id); lerr == nil && known {
			result = r
		}
	}
	return Result{Record: result, Report: report}, err
}

// free refuses to work on a run that a living operation on another subject (a
// reap) is taking away.
func (s Settings) free(ctx context.Context, env operation.Env, view ledger.View, id string) error {
	r, known, err := Load(view, id)
	if err != nil || !known {
		return err
	}
	var names []string
	for _, run := range r.Runs() {
		names = append(names, run.Zone, run.Dataset)
	}
	return untouched(ctx, env, view, Subject(id), names...)
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
			return &operation.LockedError{Subject: open.Subject, Holder: holder}
		}
	}
	return nil
}

// Subject is what an instance is locked as.
func Subject(id string) string { return recordPrefix + id }

// recorded is the record as it stands. While the subject is locked, nobody else
// changes it.
func recorded(ctx context.Context, env operation.Env, id string) (Record, error) {
	book, err := env.Ledger(ctx)
	if err != nil {
		return Record{}, err
	}
	view, err := book.Read(ctx)
	if err != nil {
		return Record{}, err
	}
	r, _, err := Load(view, id)
	return r, err
}

// decide turns wanted, recorded and seen into a plan. It is pure.
func (s Settings) decide(view ledger.View, seen Seen, at operation.Moment, id string, c Change) (operation.Decision, Record, error) {
	old, known, err := Load(view, id)
	if err != nil {
		return operation.Decision{}, Record{}, err
	}
	if err := s.ready(seen); err != nil {
		return operation.Decision{}, Record{}, err
	}
	_, name, err := s.identity(view, c.Wanted)
	if err != nil {
		return operation.Decision{}, Record{}, err
	}
	choose := s.chooser(view, seen.Inv, at.ID, id)
	if choose.strangers, err = s.strangers(view, seen.Inv); err != nil {
		return operation.Decision{}, old, err
	}
	for _, one := range choose.strangers {
		if one.ID == id || one.Name == name {
			return operation.Decision{}, old, &UnadoptedError{Name: name, Zone: one.Zone.Name}
		}
	}
	next, err := s.next(choose, old, known, id, name, c)
	if err != nil {
		return operation.Decision{}, old, err
	}
	if err := seen.checkDisks(next.Spec.Disks); err != nil {
		return operation.Decision{}, old, err
	}
	return s.ways(choose, old, next, seen, at, c)
}

// ready says whether the host has what every instance needs.
func (s Settings) ready(seen Seen) error {
	if len(seen.Missing) > 0 {
		return &MissingError{Files: seen.Missing}
	}
	if err := packaging.Check(s.Propolis.Packaging, seen.Packaging); err != nil {
		return err
	}
	if _, ok := seen.Inv.Link(s.ControlLink); !ok {
		return &NotPreparedError{Link: s.ControlLink}
	}
	return nil
}

// NotPreparedError is a sled without the link that control VNICs lie over: a
// reboot takes the etherstub away, and bootstrap makes it.
type NotPreparedError struct{ Link string }

// Error names the link.
func (e *NotPreparedError) Error() string {
	return fmt.Sprintf("the control link %s is not there", e.Link)
}

// Hint says what makes it.
func (e *NotPreparedError) Hint() string { return "sledctl bootstrap prepares the sled" }

// MissingError is a host without Propolis' files.
type MissingError struct{ Files []string }

// Error names them.
func (e *MissingError) Error() string {
	return fmt.Sprintf("missing on the host: %s", orNone(e.Files))
}

// next is the record as it shall be, its run not yet chosen.
func (s Settings) next(choose chooser, old Record, known bool, id, name string, c Change) (Record, error) {
	next := old
	if !known {
		next = Record{ID: id, Control: choose.mac("control")}
	}
	next.Name, next.Wanted = name, WantedRunning
	if c.Protect != nil {
		next.Protected = *c.Protect
	}
	err := c.Wanted.validate()
	if err != nil {
		return Record{}, err
	}
	spec, err := choose.resolve(id, c.Wanted.apply(old.Spec))
	if err != nil {
		return Record{}, err
	}
	if slices.ContainsFunc(spec.NICs, func(n NIC) bool { return n.MAC == next.Control }) {
		return Record{}, &MACTakenError{MAC: next.Control, By: "its own control VNIC"}
	}
	if len(differences(old.Spec, spec)) > 0 {
		next.Spec = spec // else as it is written: an empty list is no list
	}
	return next, nil
}

// checkDisks refuses a disk that is not there.
func (s Seen) checkDisks(disks []Disk) error {
	for _, d := range disks {
		volume, ok := d.Volume()
		if !ok {
			if err := s.Disks[d.Path]; err != nil {
				return &InputError{Field: "disk", Value: d.Path, Want: "a file that exists on the sled, or a volume", Absent: true}
			}
			continue
		}
		if found, there := s.Inv.Dataset(volume); !there || found.Type != "volume" {
			return &InputError{Field: "disk", Value: d.Path, Want: "a volume that exists (zfs create -V SIZE " + volume + ")", Absent: true}
		}
	}
	return nil
}

// ways chooses between going on with the recorded run and beginning another,
// and puts the plan together.
func (s Settings) ways(choose chooser, old, next Record, seen Seen, at operation.Moment, c Change) (operation.Decision, Record, error) {
	goOn, err := s.goesOn(old, next, seen, c)
	if err == nil && !goOn && c.Only != "" && old.Run != nil && old.Run.Ensured {
		err = &BrokenError{Name: old.Name, Status: s.status(old, seen)}
	}
	if err != nil {
		return operation.Decision{}, old, err
	}
	decision := operation.Decision{Plan: plan.Plan{Policy: plan.Undo}}
	clearing := leaving(old, seen)
	if !goOn {
		clearing, next.Leaving = s.down(old, seen, at), old.Runs()
		if next.Run, err = choose.run(next, seen.Boot); err != nil {
			return operation.Decision{}, old, err
		}
	}
	var p progress
	if goOn {
		p = s.progress(next, seen)
	} else {
		p = progress{vnics: map[string]bool{}}
	}
	if goOn && seen.unreachable(*old.Run, p) {
		p.ensured, decision.Plan.Policy = true, plan.Stop // to run it once more does nothing, and shows that it does
	}
	stages, err := s.up(next, p)
	if err != nil {
		return operation.Decision{}, old, err
	}
	actions, err := pick(stages, c.Only)
	if err != nil {
		return operation.Decision{}, old, err
	}
	decision.Plan.Actions = behind(clearing, actions)
	decision.Intent.Removes = removes(next.Leaving, seen)
	decision.Intent.Makes, decision.Intent.Base = next.makes(), next.Run.Base
	return facts(decision, old, next, goOn, at, c)
}

// goesOn says whether the recorded run can be continued: it is of this boot,
// nothing of it is broken, and nothing that it was built with has changed.
func (s Settings) goesOn(old, next Record, seen Seen, c Change) (bool, error) {
	if old.Run == nil {
		return false, nil
	}
	changes := differences(old.Spec, next.Spec)
	if old.Name != next.Name {
		changes = append(changes, Difference{Field: "name", Is: old.Name, Wanted: next.Name})
	}
	p := s.progress(old, seen)
	z, there := seen.Inv.Zone(old.Run.Zone)
	unseen := seen.Inside.Err != nil || seen.Inside.VM.Err != nil && !isNoInstance(seen.Inside.VM.Err)
	switch {
	case seen.unreachable(*old.Run, p) && len(changes) == 0:
		return true, nil
	case unseen && (len(changes) == 0 || !c.Recreate):
		return false, &UnseenError{Name: old.Name, Err: errors.Join(seen.Inside.Err, seen.Inside.VM.Err)}
	case len(changes) > 0 && (seen.alive(old) || c.Only != "" && p.built(changes, *old.Run)) && !c.Recreate:
		return false, &ConflictError{Name: old.Name, Differences: changes, Recreate: c.Only == ""}
	case len(changes) > 0:
		return c.Only != "", nil
	case seen.alive(old) && !(p.installed && p.linksThere()) && !c.Recreate:
		return false, &ConflictError{Name: old.Name, Differences: s.strayed(old, seen, p), Recreate: c.Only == ""}
	case seen.usurped(*old.Run, p):
		return false, nil
	case !there:
		return !old.Run.Ensured && old.Run.Boot == seen.Boot, nil
	case z.State == zone.Running:
		lost := old.Run.Ensured && !p.ensured || slices.Contains([]string{"Stopping", "Stopped", "Failed", "Destroyed"}, seen.Inside.VM.State) ||
			seen.Inside.Services[s.service(old)] == smf.Maintenance
		return p.installed && !lost && p.linksThere(), nil
	case z.State == zone.Installed:
		return p.installed && !old.Run.Ensured && old.Run.Boot == seen.Boot, nil
	default:
		return z.State == zone.Configured && p.configured && !old.Run.Ensured && old.Run.Boot == seen.Boot, nil
	}
}

// unreachable says whether Propolis runs, in a zone as it was made, and cannot
// be asked for want of its address alone: somebody has deleted that. Propolis
// still listens there, so the address is all that must be made again.
// Guess: that a listening socket outlives its address, as those of TCP do.
func (s Seen) unreachable(run Run, p progress) bool {
	return run.Ensured && !run.Foreign && s.Inside.Err == nil && s.Inside.VM.Err != nil && !isNoInstance(s.Inside.VM.Err) &&
		p.installed && p.linksThere() && p.online && !p.address
}

// built says whether a run already has what one of the changes would change:
// VNICs and the zonepath are chosen with the run, disks and the address are in
// the zone's configuration and profile, CPUs and memory go to Propolis.
func (p progress) built(changes []Difference, run Run) bool {
	return slices.ContainsFunc(changes, func(d Difference) bool {
		switch d.Field {
		case "cpus", "memory":
			return run.Ensured
		case "disks", "address":
			return p.configured
		}
		return true
	})
}

// alive says whether the instance's machine is there and has not ended. It is
// not powered off for a difference unless the operator says so.
func (s Seen) alive(r Record) bool {
	ended := []string{"", "Stopping", "Stopped", "Failed", "Destroyed"}
	return s.Inside.VM.ID == r.ID && !slices.Contains(ended, s.Inside.VM.State)
}

// strayed lists what somebody else has changed of a run.
func (s Settings) strayed(r Record, seen Seen, p progress) []Difference {
	var all []Difference
	config, _ := seen.Inv.Config(r.Run.Zone)
	for _, d := range zone.Compare(s.zoneConfig(r), config) {
		all = append(all, Difference{Field: "zone's " + d.Property, Is: cmp.Or(d.Found, "none"), Wanted: cmp.Or(d.Wanted, "none")})
	}
	for _, v := range r.Run.vnics() {
		if !p.vnics[v.Name] {
			all = append(all, Difference{Field: "VNIC " + v.Name, Is: "gone or another", Wanted: "over=" + v.Over + ",mac=" + v.MAC})
		}
	}
	return all
}

// usurped says whether another's link has the name of one of the run's VNICs.
func (s Seen) usurped(run Run, p progress) bool {
	return slices.ContainsFunc(run.vnics(), func(v VNIC) bool {
		_, there := s.Inv.Link(v.Name)
		return there && !p.vnics[v.Name]
	})
}

func (p progress) linksThere() bool {
	for _, there := range p.vnics {
		if !there {
			return false
		}
	}
	return true
}

// UnseenError is a running zone into which one could not look: nothing that
// may be running is rebuilt on a guess.
type UnseenError struct {
	Name string
	Err  error
}

// Error says why.
func (e *UnseenError) Error() string {
	return fmt.Sprintf("instance %q runs, but cannot be looked into: %v", e.Name, e.Err)
}

// Unwrap gives the cause.
func (e *UnseenError) Unwrap() error { return e.Err }

// BrokenError is a single step on an instance that was complete and is not any
// more: no step of it mends that.
type BrokenError struct {
	Name   string
	Status Status
}

// Error says in what state it is.
func (e *BrokenError) Error() string {
	if e.Status.Reason == "" {
		return fmt.Sprintf("instance %q is %s", e.Name, e.Status.State)
	}
	return fmt.Sprintf("instance %q is %s: %s", e.Name, e.Status.State, e.Status.Reason)
}

// Hint says what builds it anew.
func (e *BrokenError) Hint() string { return "sledctl instance ensure " + e.Name + " builds it anew" }

// Hint says what makes it sure.
func (e *UnseenError) Hint() string {
	return "sledctl instance stop " + e.Name + " powers it off as it is; start builds it anew"
}

// pick takes all stages, or the one that is asked for: those before it must
// have nothing left to do.
func pick(stages map[Stage][]plan.Action, only Stage) ([]plan.Action, error) {
	var actions []plan.Action
	for _, stage := range Stages() {
		switch {
		case only == "":
			actions = append(actions, stages[stage]...)
		case stage == only:
			return stages[stage], nil
		case len(stages[stage]) > 0:
			return nil, &EarlierError{Stage: only, First: stage, Object: stages[stage][0].Object}
		}
	}
	return actions, nil
}

// EarlierError is a single step whose earlier steps are not done.
type EarlierError struct {
	Stage, First Stage
	Object       string
}

// Error names the step that comes first.
func (e *EarlierError) Error() string {
	return fmt.Sprintf("%s: %s is not there yet: %s comes first", e.Stage, e.Object, e.First)
}

// behind makes every action that could start at once wait for the clearing.
func behind(clearing, actions []plan.Action) []plan.Action {
	if len(clearing) == 0 {
		return actions
	}
	ids := plan.IDs(clearing)
	for i := range actions {
		if len(actions[i].After) == 0 {
			actions[i].After = ids
		}
	}
	return append(clearing, actions...)
}

// facts writes down the record: before the work with its names, after it
// finished, or as it was.
func facts(d operation.Decision, old, next Record, goOn bool, at operation.Moment, c Change) (operation.Decision, Record, error) {
	finished := next
	run := *next.Run
	run.Ensured = run.Ensured || c.Only == "" || c.Only == StageEnsure || c.Only == StageRun
	finished.Run, finished.Leaving = &run, nil
	if d.Plan.Empty() && reflect.DeepEqual(finished, old) {
		return d, old, nil
	}
	for _, r := range []*Record{&next, &finished} {
		r.Generation, r.Updated = old.Generation+1, at.Now
	}
	before := old // what stands again when all was undone
	if before.ID != "" && !goOn {
		before.Run, before.Leaving = nil, nil
	}
	var errs [3]error
	d.Before, errs[0] = next.replaces(old)
	d.After, errs[1] = finished.replaces(next)
	d.Undone, errs[2] = before.replaces(next)
	return d, finished, errors.Join(errs[:]...)
}
