// Package keeper hands sleds and instances over, from one keeper to another.
package keeper

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// SledRequest asks for another keeper of the sled.
type SledRequest struct {
	Verb string
	To   record.Keeper
	// From is who must keep it now; empty: any.
	From record.Keeper
	// Asks is who asks: the keeper itself, or the operator, whose the sled is.
	Asks   record.Keeper
	DryRun bool
}

// ChangedError is a sled that another one keeps than who was named.
type ChangedError struct{ Is, Wanted record.Keeper }

// Error names both.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("the sled is kept by %s, not by %s", e.Is.Text(), e.Wanted.Text())
}

func (*ChangedError) Kind() fault.Kind { return fault.Conflict }

// HandOverSled writes down who keeps the sled. Its instances stay with their keepers. Errors:
// *ChangedError, *record.KeeperError, those of operation.Run.
func HandOverSled(ctx context.Context, env operation.Env, c SledRequest) (record.SledKeeper, operation.Report, error) {
	var now record.SledKeeper
	report, err := operation.Run(ctx, env, operation.Request[struct{}]{
		Verb: c.Verb, Subject: "sled", DryRun: c.DryRun,
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(view ledger.View, _ struct{}, at operation.Stamp) (operation.Decision, error) {
			old, known, err := record.KeeperOf(view)
			switch {
			case err != nil:
				return operation.Decision{}, err
			case c.From != "" && c.From != old.Keeper:
				return operation.Decision{}, &ChangedError{Is: old.Keeper, Wanted: c.From}
			case c.Asks != record.Operator && c.Asks != old.Keeper:
				return operation.Decision{}, &record.KeeperError{Keeper: old.Keeper, Asks: c.Asks}
			}
			if now = old; known && c.To == old.Keeper {
				return operation.Decision{}, nil
			}
			now = record.SledKeeper{Keeper: c.To, Since: at.Now}
			value, err := json.Marshal(now)
			return operation.Decision{OnSuccess: []ledger.Fact{{Key: naming.KeyKeeper, Value: value}}}, err
		},
	})
	return now, report, err
}

// Request asks for another keeper of an instance.
type Request struct {
	Verb string
	Ref  string // NAME or UUID
	To   record.Keeper
	// Generation is that of the new keeper; the operator gives none.
	Generation uint64
	Asks       record.Keeper // as in SledRequest
	DryRun     bool
}

// HandOver writes down who keeps an instance. The host is not asked, and a VM that runs goes on.
// Errors: *record.KeeperError, *record.GenerationError, *record.EndingError, *NoVMError,
// *migration.MigratingError, *instance.AwaitedError.
func HandOver(ctx context.Context, s instance.Settings, env operation.Env, c Request) (instance.Result, error) {
	r, err := instance.FindRecorded(ctx, s, env, c.Ref, c.DryRun)
	if err != nil {
		return instance.Result{}, err
	}
	result := r
	report, err := operation.Run(ctx, env, operation.Request[string]{
		Verb: c.Verb, Subject: record.Subject(r.ID), DryRun: c.DryRun,
		Look: func(context.Context, host.Host) (string, error) { return operation.Boot(env) },
		Decide: func(view ledger.View, boot string, at operation.Stamp) (operation.Decision, error) {
			old, err := record.Existing(view, r.ID, c.Ref)
			if err != nil {
				return operation.Decision{}, err
			}
			next, more, err := handed(view, old, boot, c)
			if result = next; err != nil || next.KeptBy() == old.KeptBy() && next.KeeperGeneration == old.KeeperGeneration {
				return operation.Decision{}, err
			}
			result.Generation, result.Updated = old.Generation+1, at.Now
			var d operation.Decision
			d.OnSuccess, err = result.Replaces(old)
			d.OnSuccess = append(d.OnSuccess, more...)
			return d, err
		},
	})
	return instance.Result{Record: result, Report: report}, err
}

// handed is the record of an instance as it is handed over, and what else is written. It is pure.
func handed(view ledger.View, old record.Record, boot string, c Request) (record.Record, []ledger.Fact, error) {
	awaited := old.Arrival()
	switch {
	case c.Asks != record.Operator && c.Asks != old.KeptBy():
		return old, nil, &record.KeeperError{Name: old.Name, Keeper: old.KeptBy(), Asks: c.Asks}
	case c.To == record.Nexus && old.KeptBy() != record.Nexus:
		return old, nil, &record.InputError{Field: "keeper", Value: string(c.To), Want: "operator or fleet: a control plane registers the VMs that it keeps"}
	case c.To != record.Fleet && c.Generation != 0:
		return old, nil, &record.InputError{Field: "generation", Value: fmt.Sprint(c.Generation), Want: "none: only the fleet gives one"}
	case c.To == old.KeptBy() && c.Generation == old.KeeperGeneration:
		return old, nil, nil
	case old.Ending != nil:
		return old, nil, &record.EndingError{Name: old.Name}
	case old.Migration != nil:
		return old, nil, &migration.MigratingError{Name: old.Name, Migration: *old.Migration}
	case awaited != nil:
		return old, nil, &instance.AwaitedError{Name: old.Name, Migration: awaited.ID}
	case c.To == record.Operator:
		return old.Freed(), nil, nil
	}
	if err := record.CheckGeneration(view, old.ID, c.Generation); err != nil {
		return old, nil, err
	}
	if old.Incarnation == nil || !old.Incarnation.Ensured || old.Incarnation.Boot != boot {
		return old, nil, &NoVMError{Name: old.Name, To: c.To}
	}
	next := old
	next.Keeper, next.KeeperGeneration = c.To, c.Generation
	next.VMM = &record.VMM{PropolisID: old.Incarnation.PropolisID, Boot: boot}
	fact, err := record.GenerationFact(old.ID, c.Generation)
	return next, []ledger.Fact{fact}, err
}

// NoVMError is an instance without a VM, which only the operator can keep: others keep VMs.
type NoVMError struct {
	Name string
	To   record.Keeper
}

// Error names it.
func (e *NoVMError) Error() string {
	return fmt.Sprintf("instance %q has no VM that %s could keep", e.Name, e.To.Text())
}

func (*NoVMError) Kind() fault.Kind { return fault.Refused }

// Hint says what makes one.
func (e *NoVMError) Hint() string { return "to start it, run: sledctl instance start " + e.Name }
