// Package vpc says to OPTE where the addresses of VPCs are. The driver keeps it as long as the sled is up,
// and nothing else does: after a boot, who runs the VPCs says it again (omicron
// nexus/src/app/background/tasks/v2p_mappings.rs compares what each sled lists with what should be).
package vpc

import (
	"context"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/opte"
)

// Subject is what is locked: each operation is short.
const Subject = "v2p"

// Set says where an address of a VPC is, in the place of what was said before.
func Set(ctx context.Context, env operation.Env, m opte.Mapping) (operation.Report, error) {
	return change(ctx, env, "vpc map", func(is opte.Mapping, there bool) plan.Step {
		switch {
		case !there:
			return opte.SetMapping{Mapping: m}
		case is != m:
			return opte.SetMapping{Mapping: m, Before: &is}
		}
		return nil
	}, m)
}

// Clear forgets where one is, wherever that was: the driver looks at nothing else (VpcMappings::del of
// lib/oxide-vpc/src/engine/overlay.rs).
func Clear(ctx context.Context, env operation.Env, m opte.Mapping) (operation.Report, error) {
	return change(ctx, env, "vpc unmap", func(is opte.Mapping, there bool) plan.Step {
		if !there {
			return nil
		}
		return opte.ClearMapping{Mapping: is}
	}, m)
}

// change is an operation on one mapping; without a step, nothing is to be done.
func change(ctx context.Context, env operation.Env, verb string, step func(is opte.Mapping, there bool) plan.Step, m opte.Mapping) (operation.Report, error) {
	object := m.IP.String()
	return operation.Run(ctx, env, operation.Request[[]opte.Mapping]{
		Verb: verb, Subject: Subject, Wait: true,
		Look: func(ctx context.Context, h host.Host) ([]opte.Mapping, error) { return opte.Mappings(ctx, h) },
		Decide: func(_ ledger.View, seen []opte.Mapping, _ operation.Stamp) (operation.Decision, error) {
			d := operation.Decision{Plan: plan.Plan{Policy: plan.Undo}}
			if do := step(opte.At(seen, m.VNI, m.IP)); do != nil {
				d.Plan.Actions = []plan.Action{{ID: do.Verb() + " " + object, Object: "mapping " + object, Why: "it was asked for", Change: plan.Modify, Step: do}}
				d.Intent.Changes = []operation.Object{{Kind: "mapping", Name: object}}
			}
			return d, nil
		},
	})
}
