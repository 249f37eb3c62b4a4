package reap

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/zone"
)

// NeededError is a zone that reap must not remove.
type NeededError struct {
	Zone   string
	Reason string
}

// Error says why.
func (e *NeededError) Error() string { return fmt.Sprintf("zone %s: %s", e.Zone, e.Reason) }

func (*NeededError) Kind() fault.Kind { return fault.Refused }

// Zone halts a sledctl zone or, if whole, removes it with its datasets. A
// zone that an instance or a base needs is halted, never removed. One that is
// missing needs nothing: there is false then. The error is an
// *operation.LockedError where a run is at work on the zone.
func (s Settings) Zone(ctx context.Context, env operation.Env, name string, whole, dryRun bool) (there bool, report operation.Report, err error) {
	verb := "zone halt"
	if whole {
		verb = "zone delete"
	}
	report, err = operation.Run(ctx, env, operation.Request[seen]{
		Verb: verb, Subject: subject, Wait: true, DryRun: dryRun,
		Look: func(ctx context.Context, h host.Host) (seen, error) { return s.look(ctx, h, env, dryRun) },
		Decide: func(view ledger.View, got seen, at operation.Stamp) (operation.Decision, error) {
			k, err := s.know(view, got, at.Now, living(ctx, env, dryRun))
			if err != nil {
				return operation.Decision{}, err
			}
			findings, err := judge(k, got.inv, Choice{})
			if err != nil {
				return operation.Decision{}, err
			}
			z, found := findings.inv.Zone(name)
			if there = found; !found && whole {
				return operation.Decision{OnSuccess: k.leftOf(name, &findings)}, nil
			}
			if !found {
				return operation.Decision{}, nil
			}
			if work := k.busy[KindZone+" "+name]; work.subject != "" {
				return operation.Decision{}, operation.LockedBy(work.subject, work.holder)
			}
			d, err := findings.one(z, whole, s.bundler(k, &findings, got, at))
			if whole && err == nil {
				d.OnSuccess = k.forgetsZone(name)
			}
			return d, err
		},
	})
	return there, report, err
}

// one plans the halt or removal of one zone.
func (f *Findings) one(z zone.Zone, whole bool, bundles bundler) (operation.Decision, error) {
	var found Object
	for _, o := range f.Objects {
		if o.Kind == "zone" && o.Name == z.Name {
			found = o
		}
	}
	switch {
	case found.Name == "":
		return operation.Decision{}, &NeededError{Zone: z.Name, Reason: "is not sledctl's own"}
	case !f.ours(found.key()):
		return operation.Decision{}, &NeededError{Zone: z.Name, Reason: "is not known to be sledctl's own: " + found.Reason}
	case found.Verdict == InProgress:
		return operation.Decision{}, &NeededError{Zone: z.Name, Reason: "is being worked on " + found.Reason}
	case whole && found.Verdict == InUse:
		return operation.Decision{}, &NeededError{Zone: z.Name, Reason: "is in use: " + found.Reason}
	}
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}}
	if whole {
		found.Reason = "asked for"
		d.Plan.Actions = f.zone(found, bundles)
		d.Intent.Removes = []operation.Object{{Kind: "zone", Name: z.Name, Identity: z.UUID}}
		return d, nil
	}
	switch z.State {
	case zone.Running, zone.Ready, zone.ShuttingDown, zone.Down:
		d.Plan.Actions = []plan.Action{{
			ID: "zone.halt " + z.Name, Object: "zone " + z.Name, Why: "asked for", Change: plan.Modify, Step: zone.Halt{Name: z.Name},
		}}
		d.Intent.Changes = []operation.Object{{Kind: "zone", Name: z.Name, Identity: z.UUID, Old: string(z.State)}}
	}
	return d, nil
}
