package agent

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/failure"
)

// failed is the answer to a request that did on the sled what a command does, and
// failed: with the status that fits, and with what the command would have printed.
func failed(err error, reports ...operation.Report) *api.Error {
	d := failure.Of(failure.WithReport(err, reports...), begun(reports))
	said, _ := json.Marshal(d) // of strings and numbers: it cannot fail
	return &api.Error{Status: statusOf(d.Exit), Code: d.Cause, Message: err.Error(), Cause: err, Failure: said}
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
