// Package memory sets aside the memory that guests get: the VMM reservoir
// has the size that is configured, or is left alone where none is.
package memory

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/reservoir"
)

// Settings are its configuration.
type Settings struct {
	Reservoir uint64 // bytes, whole MiB; 0: left as it is
}

// SizeError is a size that the reservoir cannot get.
type SizeError struct {
	Wanted uint64
	State  reservoir.State
}

// Error shows what stands against it.
func (e *SizeError) Error() string {
	if e.Wanted < e.State.Allocated {
		return fmt.Sprintf("the VMM reservoir cannot shrink to %d MiB: guests have taken %d MiB of it", e.Wanted>>20, e.State.Allocated>>20)
	}
	return fmt.Sprintf("the VMM reservoir cannot grow to %d MiB: the kernel allows %d MiB, of which guests outside it have taken %d MiB",
		e.Wanted>>20, e.State.Limit>>20, e.State.Transient>>20)
}

func (*SizeError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (e *SizeError) Unwrap() error { return host.ErrRefused }

// Hint says what would be right.
func (e *SizeError) Hint() string {
	if e.Wanted < e.State.Allocated {
		return fmt.Sprintf("stop instances first, or set instance.reservoir to %dM or more", e.State.Allocated>>20)
	}
	return fmt.Sprintf("set instance.reservoir to %dM or less", (e.State.Limit-e.State.Transient)>>20)
}

// Ensure gives the reservoir its size. Errors: *SizeError, before anything is
// changed.
func (s Settings) Ensure(ctx context.Context, env operation.Env, dryRun bool) (operation.Report, error) {
	return operation.Run(ctx, env, operation.Request[reservoir.State]{
		Verb: "bootstrap memory", Subject: "sled", DryRun: dryRun,
		Look: reservoir.Query,
		Decide: func(_ ledger.View, seen reservoir.State, _ operation.Stamp) (operation.Decision, error) {
			return s.decide(seen)
		},
	})
}

// decide is pure.
func (s Settings) decide(seen reservoir.State) (operation.Decision, error) {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}}
	if s.Reservoir == 0 || s.Reservoir == seen.Size() {
		return d, nil
	}
	if s.Reservoir < seen.Allocated || s.Reservoir+seen.Transient > seen.Limit {
		return d, &SizeError{Wanted: s.Reservoir, State: seen}
	}
	d.Plan.Actions = []plan.Action{{
		ID: "reservoir.set", Object: "reservoir", Change: plan.Modify,
		Why:  fmt.Sprintf("is %d MiB, wanted %d MiB", seen.Size()>>20, s.Reservoir>>20),
		Step: reservoir.Set{Size: s.Reservoir, Old: seen.Size()},
	}}
	d.Intent.Changes = []operation.Object{{Kind: "reservoir", Name: "reservoir", Old: fmt.Sprint(seen.Size())}}
	return d, nil
}
