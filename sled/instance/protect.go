package instance

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// ProtectedError is an instance that must not be removed.
type ProtectedError struct{ Name string }

// Error names it.
func (e *ProtectedError) Error() string { return fmt.Sprintf("instance %q is protected", e.Name) }

func (*ProtectedError) Kind() fault.Kind { return fault.Refused }

// Hint says how to remove it all the same.
func (e *ProtectedError) Hint() string {
	return "to delete it all the same, add --yes; to remove the protection, run: sledctl instance ensure " + e.Name + " --no-protect"
}

// setProtection changes the protection of an instance that is as wanted otherwise.
// Only the ledger says that one is protected: the host is not asked.
func setProtection(ctx context.Context, env operation.Env, id string, c EnsureRequest) (Result, error) {
	var result record.Record
	report, err := operation.Run(ctx, env, operation.Request[struct{}]{
		Verb: c.Verb, Subject: record.Subject(id), DryRun: c.DryRun,
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(view ledger.View, _ struct{}, at operation.Stamp) (operation.Decision, error) {
			old, err := record.Existing(view, id, c.Wanted.Ref)
			if err != nil {
				return operation.Decision{}, err
			}
			result = old
			result.Protected, result.Generation, result.Updated = *c.Protect, old.Generation+1, at.Now
			var d operation.Decision
			d.OnSuccess, err = result.Replaces(old)
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}
