package instance

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// A change of a machine's state leaves no trace on the host. So its intent
// holds the generation of the state that was seen before: a run that finds the
// intent of one that died knows that the change came to be if the machine is
// past that generation, and does not ask for it again.

// PowerRequest asks a VM that runs for something: to be reset, powered off or
// interrupted.
type PowerRequest struct {
	Verb   string
	Ref    string // NAME or UUID
	DryRun bool
}

// powerChange is what Propolis is asked for, and the state that follows.
type powerChange struct{ ask, why, until string }

// Reboot resets the machine and waits until it runs again. The zone stays.
func (s Settings) Reboot(ctx context.Context, env operation.Env, c PowerRequest) (Result, error) {
	return changePower(ctx, s, env, c, powerChange{propolis.Reboot, "a hard reset", propolis.StateRunning})
}

// PowerOff powers the machine off and waits until it is gone. The zone stays,
// and so does what is wanted: ensure rebuilds the instance. One that is off
// is left alone.
func (s Settings) PowerOff(ctx context.Context, env operation.Env, c PowerRequest) (Result, error) {
	return changePower(ctx, s, env, c, powerChange{propolis.Stop, "a hard power-off", propolis.StateDestroyed})
}

// changePower asks Propolis for a change of a machine's state and waits for what
// follows.
func changePower(ctx context.Context, s Settings, env operation.Env, c PowerRequest, p powerChange) (Result, error) {
	r, err := FindRecorded(ctx, s, env, c.Ref, c.DryRun)
	if err != nil {
		return Result{}, err
	}
	report, err := operation.Run(ctx, env, operation.Request[Observed]{
		Verb: c.Verb, Subject: record.Subject(r.ID), DryRun: c.DryRun,
		Look: lookAt(s, env, r.ID),
		Decide: func(view ledger.View, seen Observed, at operation.Stamp) (operation.Decision, error) {
			old, err := record.Existing(view, r.ID, c.Ref)
			if err == nil {
				err = old.CheckKeeper(s.Asks)
			}
			if err != nil {
				return operation.Decision{}, err
			}
			var d operation.Decision
			d, r, err = powerDecision(s.Blueprint(), view, old, seen, at, c.Verb, p)
			return d, err
		},
	})
	if err != nil && report.ID != "" && ctx.Err() == nil {
		err = vmLost(ctx, s, env, r, &report, err)
	}
	return Result{Record: r, Report: report}, err
}

// vmLost looks whether a machine that failed to change its state is still one. If it
// is known that it is not, what it ran in is left. A Propolis that does not answer
// may have it.
func vmLost(ctx context.Context, s Settings, env operation.Env, r record.Record, report *operation.Report, cause error) error {
	if r.Incarnation == nil {
		return cause
	}
	_, asked := quickLook(ctx, s.Blueprint(), env.Host, r)
	service, _ := smf.State(ctx, env.Host, r.Incarnation.Zone, layout.ServiceFMRI(s.Blueprint(), r)) // empty: not known
	known := asked == nil || IsNoInstance(asked) || service != "" && service != smf.Online
	now, err := s.Summary(ctx, env, report.View, r.ID)
	if err != nil || now.State != record.Failed || !known {
		return cause
	}
	if zone := "zone " + r.Incarnation.Zone; !slices.Contains(report.Outcome.Leftovers, zone) {
		report.Outcome.Leftovers = append(report.Outcome.Leftovers, zone)
	}
	return &LostError{Name: r.Name, Reason: now.Reason, Err: cause}
}

// LostError is a machine that was lost as its state was changed. Its zone and its
// disks are there.
type LostError struct {
	Name, Reason string
	Err          error
}

// Error says how the instance is now.
func (e *LostError) Error() string {
	return fmt.Sprintf("%v; the VM of instance %q is lost: %s", e.Err, e.Name, e.Reason)
}

// Unwrap gives the cause.
func (e *LostError) Unwrap() error { return e.Err }

func (*LostError) Kind() fault.Kind { return fault.Partial }

// Hint says what brings it up again.
func (e *LostError) Hint() string {
	return "to rebuild it, run: sledctl instance ensure " + e.Name
}

// powerDecision is pure.
func powerDecision(b layout.Blueprint,
	view ledger.View, old record.Record, seen Observed, at operation.Stamp, verb string, p powerChange,
) (operation.Decision, record.Record, error) {
	vm := seen.Inside.VM
	if seen.Inside.Err != nil {
		return operation.Decision{}, old, &NotInspectableError{Name: old.Name, Err: seen.Inside.Err}
	}
	if old.Migration != nil {
		return operation.Decision{}, old, &migration.MigratingError{Name: old.Name, Migration: *old.Migration}
	}
	if old.Incarnation == nil {
		return operation.Decision{}, old, mustRun(b, old, seen)
	}
	before, resumed := interrupted(view, verb, old)
	resumed = resumed && vm.Generation > before // else it was never asked for: the machine is as it was
	next := old
	next.Generation, next.Updated, next.Began = old.Generation+1, at.Now, at.Now
	switch {
	case p.isSo(*old.Incarnation, vm):
		return operation.Decision{}, old, nil
	case resumed && vm.State == p.until:
		return poweredDecision(old, next, before, nil)
	case resumed && vm.State != "" && !propolis.Final(vm.State), p.comes(vm):
		await := powerActions(b, old, before, p)[1]
		await.After = nil
		return poweredDecision(old, next, before, []plan.Action{await})
	case !p.allowed(vm):
		return operation.Decision{}, old, mustRun(b, old, seen)
	}
	return poweredDecision(old, next, vm.Generation, powerActions(b, old, vm.Generation, p))
}

// isSo reports whether there is nothing to ask for: a machine that is off.
func (p powerChange) isSo(incarnation record.Incarnation, vm migration.VM) bool {
	off := vm.State == propolis.StateDestroyed || vm.State == propolis.StateFailed || IsNoInstance(vm.Err)
	return p.until == propolis.StateDestroyed && incarnation.Ensured && off
}

// allowed reports whether Propolis can be asked for it: a stop also of a machine
// that was never started, or is about to run.
func (p powerChange) allowed(vm migration.VM) bool {
	before := []string{propolis.StateCreating, propolis.StateStarting, propolis.StateRebooting}
	return vm.State == propolis.StateRunning || p.ask == propolis.Stop && slices.Contains(before, vm.State)
}

// comes reports whether it comes by itself: a machine that is going off.
func (p powerChange) comes(vm migration.VM) bool {
	return p.until == propolis.StateDestroyed && (vm.State == propolis.StateStopping || vm.State == propolis.StateStopped)
}

// poweredDecision is the decision for these actions, with what its intent must hold.
func poweredDecision(old, next record.Record, generation uint64, actions []plan.Action) (operation.Decision, record.Record, error) {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop, Actions: actions}}
	d.Intent.Changes = []operation.Object{
		{Kind: "vm", Name: old.ID, Identity: old.Incarnation.PropolisID, Old: strconv.FormatUint(generation, 10)},
	}
	var err error
	d.OnSuccess, err = next.Replaces(old)
	return d, next, err
}

func powerActions(b layout.Blueprint, r record.Record, generation uint64, p powerChange) []plan.Action {
	object, target := "propolis "+r.Name, layout.TargetOf(b, r)
	ask := propolis.ChangeState{Target: target, State: p.ask}
	return plan.Chain(
		plan.Action{ID: ask.Verb() + " " + r.Name, Object: object, Why: p.why, Change: plan.Modify, Step: ask, Irrevocable: true},
		plan.Action{
			ID: "propolis.await-state " + r.Name, Object: object, Change: plan.Wait,
			Step: propolis.AwaitState{Target: target, States: []string{p.until}, After: generation},
		},
	)
}

// interrupted finds the run of the same verb on the same machine that died, and
// the generation that it saw before. This operation has the subject's lock: a process that has an
// intent on it is dead.
func interrupted(view ledger.View, verb string, r record.Record) (before uint64, found bool) {
	for _, open := range operation.Open(view) {
		if open.Subject != record.Subject(r.ID) || open.Verb != verb {
			continue
		}
		i := slices.IndexFunc(open.Changes, func(o operation.Object) bool { return o.Kind == "vm" && o.Identity == r.Incarnation.PropolisID })
		if i < 0 {
			continue
		}
		if n, err := strconv.ParseUint(open.Changes[i].Old, 10, 64); err == nil && n > 0 { // 0: it was not known
			before, found = max(before, n), true
		}
	}
	return before, found
}

// mustRun refuses what only a running machine can be asked for.
func mustRun(b layout.Blueprint, r record.Record, seen Observed) error {
	now := statusIn(b, r, seen)
	return &StateError{Name: r.Name, State: now.State, Reason: now.Reason, Needs: record.Running}
}

// StateError is a verb that the instance's state does not allow.
type StateError struct {
	Name, State, Needs string
	Reason             string // why it is in its state, if that is known
}

// Error names both states.
func (e *StateError) Error() string {
	return fmt.Sprintf("instance %q is %s, and must be %s", e.Name, Status{State: e.State, Reason: e.Reason}, e.Needs)
}

func (*StateError) Kind() fault.Kind { return fault.Conflict }

// NMI sends the guest of a running machine a non-maskable interrupt. Nothing of
// the instance is changed by it, as far as anybody here can tell. One that is
// not running is a *StateError.
func (s Settings) NMI(ctx context.Context, env operation.Env, c PowerRequest) (Result, error) {
	r, err := FindRecorded(ctx, s, env, c.Ref, c.DryRun)
	if err != nil {
		return Result{}, err
	}
	report, err := operation.Run(ctx, env, operation.Request[Observed]{
		Verb: c.Verb, Subject: record.Subject(r.ID), DryRun: c.DryRun,
		Look: lookAt(s, env, r.ID),
		Decide: func(view ledger.View, seen Observed, _ operation.Stamp) (operation.Decision, error) {
			old, err := record.Existing(view, r.ID, c.Ref)
			switch {
			case err != nil:
				return operation.Decision{}, err
			case old.CheckKeeper(s.Asks) != nil:
				return operation.Decision{}, old.CheckKeeper(s.Asks)
			case seen.Inside.Err != nil:
				return operation.Decision{}, &NotInspectableError{Name: old.Name, Err: seen.Inside.Err}
			case old.Incarnation == nil || seen.Inside.VM.State != propolis.StateRunning:
				return operation.Decision{}, mustRun(s.Blueprint(), old, seen)
			}
			step := propolis.InjectNMI{Target: layout.TargetOf(s.Blueprint(), old)}
			d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop, Actions: []plan.Action{{
				ID: step.Verb() + " " + old.Name, Object: "propolis " + old.Name, Why: "to vCPU 0", Change: plan.Modify, Step: step,
			}}}}
			d.Intent.Changes = []operation.Object{{Kind: "vm", Name: old.ID, Identity: old.Incarnation.PropolisID}}
			return d, nil
		},
	})
	return Result{Record: r, Report: report}, err
}
