package reap

import (
	"context"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// Bundle takes a bundle of a sledctl zone because an operator asks for it, and
// leaves the zone as it is. One that does not exist is false. The error is a
// *NeededError for a foreign zone, a *bundle.NowhereError without a
// place.
func (s Settings) Bundle(ctx context.Context, env operation.Env, name string, dryRun bool) (id string, report operation.Report, err error) {
	if s.Bundles.Max == 0 {
		s.Bundles.Max = bundle.DefaultMax
	}
	report, err = operation.Run(ctx, env, operation.Request[seen]{
		Verb: "zone bundle create", Subject: bundle.Subject, Wait: true, DryRun: dryRun,
		Look: func(ctx context.Context, h host.Host) (seen, error) { return s.look(ctx, h, env, dryRun) },
		Decide: func(_ ledger.View, got seen, at operation.Stamp) (operation.Decision, error) {
			z, found := got.inv.Zone(name)
			if !found {
				return operation.Decision{}, nil
			}
			if !got.inv.Owner(s.Names, z).Ours() {
				return operation.Decision{}, &NeededError{Zone: name, Reason: "is not sledctl's own"}
			}
			if got.nowhere != nil {
				return operation.Decision{}, got.nowhere
			}
			step, ok := s.Bundles.Of(got.places, z, bundle.Requested, "asked for", at.Now, at.ID)
			if !ok {
				return operation.Decision{}, &NeededError{Zone: name, Reason: "is only configured: there is nothing in it yet"}
			}
			id = step.ID
			action := plan.Action{ID: step.Verb() + " " + name, Object: "bundle " + id, Why: "asked for", Change: plan.Create, Step: step}
			return operation.Decision{
				Plan:   plan.Plan{Policy: plan.Stop, Actions: []plan.Action{action}},
				Intent: operation.Intent{Makes: []operation.Object{{Kind: "bundle", Name: id}}},
			}, nil
		},
	})
	return id, report, err
}
