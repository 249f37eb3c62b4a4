package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// failed is the answer to a request that did on the sled what a command does, and
// failed: with the status that fits, and with what the command would have printed.
func failed(err error, reports ...operation.Report) *api.Error {
	d := failure.Of(failure.WithReport(err, reports...), begun(reports))
	said, _ := json.Marshal(d) // of strings and numbers: it cannot fail
	if e := keepers(err); e != nil {
		e.Failure = said
		return e
	}
	return &api.Error{Status: statusOf(d.Exit), Code: d.Cause, Message: err.Error(), Cause: err, Failure: said}
}

// keepers is the answer where another one keeps what is asked for, or a generation has passed;
// nil: err is neither.
func keepers(err error) *api.Error {
	if kept, ok := errors.AsType[*record.KeeperError](err); ok {
		return api.Kept(kept)
	}
	if passed, ok := errors.AsType[*record.GenerationError](err); ok {
		return api.Passed(passed)
	}
	return nil
}

// statusOf is the status of an answer where a command would have ended with a code.
func statusOf(exit int) int {
	switch exit {
	case failure.ExitUsage:
		return http.StatusBadRequest
	case failure.ExitNotFound:
		return http.StatusNotFound
	case failure.ExitConflict:
		return http.StatusConflict
	case failure.ExitLocked:
		return http.StatusLocked
	case failure.ExitRefused:
		return http.StatusForbidden
	case failure.ExitDeadline:
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// begun is when the first of the operations began.
func begun(reports []operation.Report) time.Time {
	for _, r := range reports {
		if !r.Started.IsZero() {
			return r.Started
		}
	}
	return time.Now()
}

// answer is the answer to a request that an operation did not carry out. What a
// Propolis refuses, is refused with its message (omicron sled-agent/src/instance.rs).
//
// Guess control-plane-asks-again-after-503: a control plane asks again where a `DELETE` or a state
// is answered with 503.
// Check: unregister the target of a migration while its memory moves
func answer(err error) *api.Error {
	if refused, ok := errors.AsType[*propolis.Error](err); ok && (refused.Status/100 == 4 || refused.Status == http.StatusServiceUnavailable) {
		return &api.Error{Status: refused.Status, Message: refused.Reason(), Cause: err}
	}
	if state, ok := errors.AsType[*instance.StateError](err); ok && state.State != record.Creating && state.State != record.Stopped {
		return &api.Error{Status: http.StatusForbidden, Message: state.Error(), Cause: err} // as its Propolis would
	}
	if _, ok := errors.AsType[*record.NotFoundError](err); ok {
		return api.NoSuchInstance()
	}
	if _, ok := errors.AsType[*migration.MigratingError](err); ok {
		return api.StatusOnly(http.StatusServiceUnavailable, "", err) // it passes
	}
	if _, ok := errors.AsType[*record.EndingError](err); ok {
		return api.StatusOnly(http.StatusGone, api.CodeNoSuchInstance, err)
	}
	if e := keepers(err); e != nil {
		return e
	}
	if status := wrong(err); status != 0 {
		return &api.Error{Status: status, Message: err.Error(), Cause: err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return api.StatusOnly(http.StatusServiceUnavailable, "", fmt.Errorf("it goes on, but its end was not waited for: %w", err))
	}
	return api.Internal(err)
}

// wrong is the status of a request that cannot be served, or is for a foreign VM; 0 of
// anything else.
func wrong(err error) int {
	if _, bad := errors.AsType[*record.InputError](err); bad {
		return http.StatusBadRequest
	}
	if _, bad := errors.AsType[*spec.InvalidError](err); bad {
		return http.StatusBadRequest
	}
	var registered *instance.RegisteredError
	var address *instance.AddressTakenError
	var mac *instance.MACTakenError
	var disk *instance.DiskTakenError
	var id *instance.PropolisTakenError
	if errors.As(err, &id) || errors.As(err, &registered) || errors.As(err, &address) || errors.As(err, &mac) || errors.As(err, &disk) {
		return http.StatusConflict
	}
	return 0
}
