package instance

import (
	"context"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

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
		Decide: func(view ledger.View, seen Observed, _ operation.Moment) (operation.Decision, error) {
			old, err := record.Existing(view, r.ID, c.Ref)
			switch {
			case err != nil:
				return operation.Decision{}, err
			case seen.Inside.Err != nil:
				return operation.Decision{}, &NotInspectableError{Name: old.Name, Err: seen.Inside.Err}
			case old.Run == nil || seen.Inside.VM.State != propolis.StateRunning:
				return operation.Decision{}, mustRun(s.Blueprint(), old, seen)
			}
			step := propolis.InjectNMI{Target: layout.TargetOf(s.Blueprint(), old)}
			d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop, Actions: []plan.Action{{
				ID: step.Verb() + " " + old.Name, Object: "propolis " + old.Name, Why: "to vCPU 0", Change: plan.Modify, Step: step,
			}}}}
			d.Intent.Changes = []operation.Object{{Kind: "vm", Name: old.ID, Identity: old.Run.PropolisID}}
			return d, nil
		},
	})
	return Result{Record: r, Report: report}, err
}
