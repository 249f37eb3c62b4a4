package commands

import (
	"context"
	"errors"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
)

// ensureStep ensures one stage, with a base for its pool if that has none. A dry run
// plans with the base that would be made.
func ensureStep(ctx context.Context, e *Env, s instance.Settings, env operation.Env, change instance.EnsureRequest) (instance.Result, error) {
	result, err := s.Ensure(ctx, env, change)
	missing, ok := errors.AsType[*instance.NoBaseError](err)
	if !ok {
		return result, err
	}
	c, err := e.Config()
	if err != nil {
		return result, err
	}
	shared := env
	shared.Wait = true // all instances of a pool share its base: an operation waits for another that creates it
	made, report, err := baseSettings(c).Ensure(ctx, shared, missing.Pool, change.DryRun, change.Keep)
	if err != nil {
		return instance.Result{Report: report}, err
	}
	s.Pools = []string{missing.Pool} // by its new base it has one zone more, and another might be chosen
	if change.DryRun {
		s.Base = func(ledger.View, string) (instance.Base, bool) {
			b := instanceBase(made)
			b.Planned = true
			return b, true
		}
	}
	result, err = s.Ensure(ctx, env, change)
	if change.DryRun {
		result.Report.Plan.Actions = append(report.Plan.Actions, result.Report.Plan.Actions...)
	}
	return result, err
}
