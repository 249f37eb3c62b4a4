// Package bundles finds the bundles of zones that lie on a sled, wherever they lie, and
// removes them. They are taken where a zone goes (package reap, package instance).
package bundles

import (
	"context"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// Held is a place with the bundles in it, the oldest first.
type Held struct {
	bundle.Place
	Bundles []bundle.Bundle
}

// Used is how many bytes they have together.
func (p Held) Used() (sum int64) {
	for _, b := range p.Bundles {
		sum += b.Size
	}
	return sum
}

// Look lists the bundles in all places that are there, the best place first. It is one host
// command. Without a place, the error is a *bundle.NowhereError.
func Look(ctx context.Context, h host.Host, s bundle.Settings) ([]Held, error) {
	ready, err := places(ctx, h, s)
	if err != nil {
		return nil, err
	}
	all := make([]Held, len(ready))
	for i, p := range ready {
		some, err := bundle.List(h.Files(), []bundle.Place{p})
		if err != nil {
			return nil, err
		}
		all[i] = Held{p, some}
	}
	return all, nil
}

// List lists them without their places, the oldest first. Errors: as of Look.
func List(ctx context.Context, h host.Host, s bundle.Settings) ([]bundle.Bundle, error) {
	ready, err := places(ctx, h, s)
	if err != nil {
		return nil, err
	}
	return bundle.List(h.Files(), ready)
}

// places are those that are there.
func places(ctx context.Context, h host.Host, s bundle.Settings) ([]bundle.Place, error) {
	pools, err := zfs.Pools(ctx, h)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range pools {
		if p.Answers() {
			names = append(names, p.Name)
		}
	}
	return bundle.Ready(h.Files(), bundle.Places(s.Dir, names))
}

// TooMany picks what lies in a place beyond the space that bundles may have there.
func TooMany(s bundle.Settings) func(Held) []bundle.Bundle {
	return func(p Held) []bundle.Bundle {
		if s.Max == 0 {
			return nil // sledctl takes none by itself: those that are there were asked for
		}
		return bundle.Oldest(p.Bundles, s.Max)
	}
}

// Delete removes the bundles that pick picks of each place, and returns them. None is no error.
// Errors: as of Look.
func Delete(ctx context.Context, env operation.Env, s bundle.Settings, pick func(Held) []bundle.Bundle, dryRun bool) (gone []bundle.Bundle, report operation.Report, err error) {
	report, err = operation.Run(ctx, env, operation.Request[[]Held]{
		Verb: "zone bundle delete", Subject: bundle.Subject, Wait: true, DryRun: dryRun,
		Look: func(ctx context.Context, h host.Host) ([]Held, error) { return Look(ctx, h, s) },
		Decide: func(_ ledger.View, seen []Held, _ operation.Stamp) (operation.Decision, error) {
			var d operation.Decision
			d, gone = decide(seen, s, pick)
			return d, nil
		},
	})
	return gone, report, err
}

// decide removes each bundle by an action of its own, so that a trace names it.
func decide(seen []Held, s bundle.Settings, pick func(Held) []bundle.Bundle) (d operation.Decision, gone []bundle.Bundle) {
	d.Plan.Policy = plan.Continue
	for _, p := range seen {
		left := map[string]int{}
		for _, b := range p.Bundles {
			left[b.Zone]++
		}
		for _, b := range pick(p) {
			gone = append(gone, b)
			left[b.Zone]--
			step := bundle.Remove{File: b.Path, Last: left[b.Zone] == 0, Lock: s.Lock}
			d.Plan.Actions = append(d.Plan.Actions, plan.Action{
				ID: step.Verb() + " " + b.ID, Object: "bundle " + b.ID, Why: "of zone " + b.Zone, Change: plan.Remove, Step: step,
			})
			d.Intent.Removes = append(d.Intent.Removes, operation.Object{Kind: "bundle", Name: b.ID})
		}
	}
	return d, gone
}
