package instance

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/adoption"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

// decide turns wanted, recorded and seen into a plan. It is pure.
func decide(
	s Settings, view ledger.View, seen Observed, at operation.Stamp, id string, c EnsureRequest,
) (operation.Decision, record.Record, error) {
	old, known, err := loadFor(s, view, id, c)
	if err != nil {
		return operation.Decision{}, old, err
	}
	if c.Known && !known { // it was deleted meanwhile
		return operation.Decision{}, record.Record{}, record.Missing(view, c.Wanted.Ref)
	}
	if err := checkMigration(old, known, seen, c); err != nil {
		return operation.Decision{}, old, err
	}
	choose, name, err := beginBringUp(s, view, seen, at, id, c)
	if err != nil {
		return operation.Decision{}, old, err
	}
	wanted, fresh := c.Wanted.withSealed(seen.Vault.Key)
	c.Wanted = wanted
	next, err := nextRecord(s, choose, seen, old, known, id, name, c)
	if err != nil {
		return operation.Decision{}, old, err
	}
	if err := seen.checkDisks(next.Spec.Disks); err != nil {
		return operation.Decision{}, old, err
	}
	if next, err = secrets.WithVolume(old, next, seen.Vault, fresh); err != nil {
		return operation.Decision{}, old, err
	}
	next, counted, err := opens(s, choose, old, next, seen, fresh, c)
	if err != nil {
		return operation.Decision{}, old, err
	}
	next, ahead, err := secrets.Keeping(s.SecretDir, next, seen.Vault, seen.Inv, fresh, at)
	if err != nil {
		return operation.Decision{}, old, err
	}
	d, r, err := planBringUp(s, choose, old, next, seen, at, c)
	if err == nil {
		err = secrets.Check(s.Underlay, r, seen.Vault, fresh, d.Plan.Actions)
	}
	d.OnStart = append(d.OnStart, counted...)
	d.Ahead, d.Warn = ahead, append(d.Warn, toldLater(old, r)...)
	d.Behind = secrets.Dropping(next.Name, r.Secrets, append(slices.Clone(seen.Vault.Kept), old.Secrets)...)
	d.Reverted = secrets.Dropping(next.Name, old.Secrets, append(slices.Clone(seen.Vault.Kept), next.Secrets)...)
	return d, r, err
}

// beginBringUp begins every bring-up: the chooser, and what the instance is
// called. One that runs and is not recorded is an *UnadoptedError.
func beginBringUp(s Settings, view ledger.View, seen Observed, at operation.Stamp, id string, c EnsureRequest) (chooser, string, error) {
	kind, err := checkPrepared(s, seen)
	if err != nil {
		return chooser{}, "", err
	}
	_, name, err := identityOf(s.Namespace, view, c.Wanted)
	if err != nil {
		return chooser{}, "", err
	}
	choose := newChooser(s, view, seen.Inv, at.ID, id)
	choose.boot = seen.Boot
	choose.packing = layout.PackagingFor(s.Blueprint(), kind)
	if choose.unrecorded, err = adoption.UnrecordedZones(s.Names, view, seen.Inv); err != nil {
		return chooser{}, "", err
	}
	for _, one := range choose.unrecorded {
		if one.ID == id || one.Name == name {
			return chooser{}, "", &adoption.UnadoptedError{Name: name, Zone: one.Zone.Name, Rests: one.Rests()}
		}
	}
	return choose, name, nil
}

// checkPrepared reports whether the host has what every instance needs, and how Propolis
// comes into zones that are made now.
func checkPrepared(s Settings, seen Observed) (packaging.Kind, error) {
	kind, err := s.Propolis.Packaging.Decide(seen.Packaging)
	if err != nil {
		return "", err
	}
	if kind == packaging.Lofs && len(seen.Missing) > 0 {
		return "", &MissingError{Files: seen.Missing}
	}
	if kind == packaging.Lofs && seen.Bootrom != nil {
		return "", seen.Bootrom
	}
	if _, ok := seen.Inv.Link(s.ControlLink); !ok {
		return "", &NotPreparedError{What: "control link", Link: s.ControlLink}
	}
	if _, ok := seen.Inv.Link(s.GZVNIC); s.GZVNIC != "" && !ok {
		return "", &NotPreparedError{What: "global zone's VNIC", Link: s.GZVNIC}
	}
	return kind, nil
}

// NotPreparedError is a sled without the link that control VNICs lie over, or that
// by which the global zone reaches them: a reboot removes them, and bootstrap
// makes them.
type NotPreparedError struct{ What, Link string }

// Error names the link.
func (e *NotPreparedError) Error() string {
	return fmt.Sprintf("the %s %s does not exist", e.What, e.Link)
}

func (*NotPreparedError) Kind() fault.Kind { return fault.Refused }

// Hint says what makes it.
func (e *NotPreparedError) Hint() string { return "to prepare the sled, run: sledctl bootstrap" }

// MissingError is a host without Propolis' files.
type MissingError struct{ Files []string }

// Error names them.
func (e *MissingError) Error() string {
	return fmt.Sprintf("missing on the host: %s", record.OrNone(e.Files))
}

func (*MissingError) Kind() fault.Kind { return fault.Refused }

// BootromError is a bootrom of which a Propolis server dies.
type BootromError struct {
	File string
	Size int64 // bytes
}

// maxBootrom bounds a bootrom, which lies below 4 GiB, in bytes
// (bin/propolis-server/src/lib/initializer.rs).
const maxBootrom = 2 << 20

// CheckBootrom wants whole pages.
func CheckBootrom(file string, size int64) error {
	if size > 0 && size <= maxBootrom && size%4096 == 0 {
		return nil
	}
	return &BootromError{file, size}
}

// Error says what is wrong with it.
func (e *BootromError) Error() string {
	return fmt.Sprintf("bootrom %s is %d bytes; it must be a multiple of 4096 and at most %d, or Propolis crashes", e.File, e.Size, maxBootrom)
}

func (*BootromError) Kind() fault.Kind { return fault.Refused }

// Hint says where it is set.
func (e *BootromError) Hint() string {
	return "set propolis.bootrom to another file, then run the same command again"
}

// nextRecord is the record as it must be, its incarnation not yet chosen.
func nextRecord(s Settings, choose chooser, seen Observed, old record.Record, known bool, id, name string, c EnsureRequest) (record.Record, error) {
	next := old
	if !known {
		next = record.Record{ID: id, Control: choose.MAC("control")}
	}
	if old.Ending != nil && old.VMM != nil {
		return record.Record{}, &record.EndingError{Name: old.Name}
	}
	next.Name, next.Wanted, next.Ending = name, record.WantedRunning, nil
	next.Migration, next.Incarnation = arriving(old, seen, c)
	if c.Protect != nil {
		next.Protected = *c.Protect
	}
	err := c.Wanted.validate()
	if err != nil {
		return record.Record{}, err
	}
	from := old.Spec
	if renews := old.Incarnation == nil || !seen.alive(old) || c.Recreate; renews || c.Wanted.Disks != nil {
		if next.Later = nil; renews {
			from = old.Renewed().Spec
		}
	}
	wanted := c.Wanted.apply(from)
	if err := checkMachine(s, c.Wanted, wanted, seen); err != nil {
		return record.Record{}, err
	}
	spec, err := choose.resolve(id, wanted)
	if err != nil {
		return record.Record{}, err
	}
	if slices.ContainsFunc(spec.NICs, func(n record.NIC) bool { return n.MAC == next.Control }) {
		return record.Record{}, &MACTakenError{MAC: next.Control, By: "its own control VNIC"}
	}
	if len(differences(old.Spec, spec)) > 0 {
		next.Spec = spec // else as it is written: an empty list is no list
	}
	next.Spec.StartOrder, next.Spec.CloudInit = spec.StartOrder, spec.CloudInit
	return next, nil
}

// checkDisks refuses a disk that does not exist.
func (s Observed) checkDisks(disks []record.Disk) error {
	for _, d := range disks {
		if want := s.lacks(d); want != "" && !s.Planned[d.Path] {
			return &record.InputError{Field: "disk", Value: d.Path, Want: want, Absent: true}
		}
	}
	return nil
}

// lacks is what a disk should be and is not; empty if it is.
func (s Observed) lacks(d record.Disk) (want string) {
	volume, ok := d.Volume()
	if !ok {
		if s.Disks[d.Path] != nil {
			return "a file that exists on the sled, or a volume"
		}
		return ""
	}
	if found, there := s.Inv.Dataset(volume); !there || found.Type != "volume" {
		return "a volume that exists (zfs create -V SIZE " + volume + ")"
	}
	return ""
}

// planBringUp chooses between resuming the recorded incarnation and beginning another,
// and puts the plan together.
func planBringUp(
	s Settings, choose chooser, old, next record.Record, seen Observed, at operation.Stamp, c EnsureRequest,
) (operation.Decision, record.Record, error) {
	b := s.Blueprint()
	v, why, err := judgeRecorded(b, choose, old, next, seen, c)
	if err == nil && v == rebuild {
		err = checkRebuild(b, old, seen, c)
	}
	if err == nil && v != resume && c.Wanted.PropolisID != "" {
		err = checkPropolisID(choose.view, c.Wanted.PropolisID)
	}
	if err != nil {
		return operation.Decision{}, old, err
	}
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Undo}}
	var clearing []plan.Action
	p := progress{vnics: map[string]bool{}}
	switch v {
	case resume:
		clearing, p = resumed(b, &d, old, &next, seen)
	case rollBack:
		clearing, p, err = bootAgain(s, choose, &d, old, &next, seen, at)
	default:
		if clearing, err = beginIncarnation(s, choose, &d, old, &next, seen, at, c); err == nil {
			d.Plan.Why = rebuilds(old, why)
			p, err = takeSpare(b, choose, old, &next, seen, c)
		}
		clearing = append(clearing, p.freed.Actions...)
	}
	if err != nil {
		return operation.Decision{}, old, err
	}
	arrive, err := arrivalStep(b, next, seen, p, c)
	if err != nil {
		return operation.Decision{}, old, err
	}
	d.Plan.Drawn = drawnFor(old, next, c.Wanted)
	if p.spare != nil {
		delete(d.Plan.Drawn, p.spare.PropolisID)
	}
	stages, err := bringUpActions(b, next, p, arrive)
	if err != nil {
		return operation.Decision{}, old, err
	}
	addEvidence(s, next, stages, seen, at)
	actions, err := pick(stages, c.Only)
	if err != nil {
		return operation.Decision{}, old, err
	}
	d.Plan.Actions = behind(clearing, actions)
	d.Intent.Removes = removes(next.Leaving, seen)
	d.Intent.Makes, d.Intent.Base = next.Objects(), next.Incarnation.Base
	d, result, err := facts(choose.view, d, old, next, v, seen, at, c)
	if err == nil {
		err = takes(&d, p)
	}
	return d, result, err
}

// resumed is what is to remove first where an incarnation is resumed, and how far it is.
func resumed(b layout.Blueprint, d *operation.Decision, old record.Record, next *record.Record, seen Observed) ([]plan.Action, progress) {
	clearing, p := leaving(old, seen), progressOf(b, *next, seen)
	if old.Incarnation.Limiting || record.NicText(old.Spec.NICs) != record.NicText(next.Spec.NICs) {
		incarnation := *next.Incarnation
		incarnation.Limiting, next.Incarnation = true, &incarnation
		p.relimited, p.noted = true, says(p.memo, *next)
	}
	if seen.unreachable(*old.Incarnation, p) {
		p.ensured, d.Plan.Policy = true, plan.Stop // to run it once more does nothing, and shows that it does
	}
	if !p.installed && cloneLeft(*old.Incarnation, seen) { // of a clone that was undone: another would name its snapshots otherwise
		clearing = append(clearing, removeSnapshots(*old.Incarnation))
	}
	return clearing, p
}

// beginIncarnation has the recorded incarnation removed, and chooses another.
func beginIncarnation(
	s Settings, choose chooser, d *operation.Decision, old record.Record, next *record.Record, seen Observed, at operation.Stamp, c EnsureRequest,
) (clearing []plan.Action, err error) {
	if err := fits(next.Spec, seen, old, seen.Inside.VM.State != ""); err != nil {
		return nil, err
	}
	clearing, next.Leaving = teardown(s, old, seen, at, StopTime), old.Incarnations()
	d.Warn = teardownWarnings(s.Blueprint(), old, seen)
	if next.Incarnation, err = choose.incarnation(*next, cmp.Or(old.ChosenID(), c.Wanted.PropolisID), seen.Boot); err != nil {
		return nil, err
	}
	if next.VMM != nil && next.Incarnation.PropolisID != next.VMM.PropolisID {
		*next = next.Freed() // of the incarnation that is removed: this one is the operator's
	}
	return clearing, nil
}

// rebuilds is the reason that a dry run prints for replacing an incarnation.
func rebuilds(old record.Record, why string) string {
	if old.Incarnation == nil {
		return ""
	}
	return fmt.Sprintf("would rebuild instance %q: %s", old.Name, why)
}

// drawnFor are the values that this plan has drawn, and no other will have.
func drawnFor(old, next record.Record, w Wanted) map[string]string {
	all := map[string]string{}
	if id := next.Incarnation.PropolisID; (old.Incarnation == nil || old.Incarnation.PropolisID != id) && id != old.ChosenID() && id != w.PropolisID {
		all[id] = "ZONE-UUID"
	}
	if next.Control != old.Control {
		all[next.Control] = "CONTROL-MAC"
	}
	for i, n := range w.apply(old.Spec).NICs {
		if n.MAC == "" && i < len(next.Spec.NICs) {
			all[next.Spec.NICs[i].MAC] = fmt.Sprintf("NIC%d-MAC", i)
		}
	}
	return all
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
			return nil, &PrerequisiteError{Stage: only, First: stage, Object: stages[stage][0].Object}
		}
	}
	return actions, nil
}

// PrerequisiteError is a single step whose earlier steps are not done.
type PrerequisiteError struct {
	Stage, First Stage
	Object       string
}

// Error names the step that comes first.
func (e *PrerequisiteError) Error() string {
	return fmt.Sprintf("%s: %s does not exist yet: %s comes first", e.Stage, e.Object, e.First)
}

func (*PrerequisiteError) Kind() fault.Kind { return fault.NotFound }

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
func facts(
	view ledger.View, d operation.Decision, old, next record.Record, v verdict, seen Observed, at operation.Stamp, c EnsureRequest,
) (operation.Decision, record.Record, error) {
	finished := next
	incarnation := *next.Incarnation
	incarnation.Reaped, incarnation.Rolling, incarnation.Limiting, incarnation.Was = false, false, false, ""
	incarnation.Ensured = incarnation.Ensured || c.Only == "" || c.Only == StageEnsure || c.Only == StageRun
	if m := finished.Migration; m != nil {
		if incarnation.Migration, finished.Migration = m.ID, nil; m.Offline {
			finished.Came = m.ID
		}
	}
	finished.Incarnation, finished.Leaving = &incarnation, nil
	if d.Plan.Empty() && reflect.DeepEqual(finished, old) {
		return d, old, nil
	}
	for _, r := range []*record.Record{&next, &finished} {
		r.Generation, r.Updated = old.Generation+1, at.Now
		if v != resume || !seen.alive(old) {
			r.Began = at.Now
		}
	}
	before := old // what stands again when all was undone
	switch {
	case v == rollBack: // it is not tried twice: what failed once is cloned again
		was := *before.Incarnation
		was.Clean, before.Incarnation = "", &was
	case before.ID != "" && v == rebuild:
		if before.ChosenID() == "" {
			before = before.Freed()
		}
		before.Incarnation, before.Leaving = nil, nil
	}
	if before.Migration.Arrives() {
		before.Migration = next.Migration // of a try that failed again
	}
	var errs [4]error
	d.OnStart, errs[0] = next.Replaces(old)
	d.OnSuccess, errs[1] = finished.Replaces(next)
	d.OnUndo, errs[2] = before.Replaces(next)
	errs[3] = record.KeepSent(view, &d, next, before.ID == "", at)
	return d, finished, errors.Join(errs[:]...)
}
