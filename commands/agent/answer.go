package agent

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/documents"
)

// agentDocument reads what an agent is sent.
func agentDocument(e *cli.Env, data []byte) (instance.Wanted, error) {
	w, err := documents.ParseSent(data, terminal.ParseSize)
	if err != nil {
		return w, description.ErrorOf("the body", err)
	}
	if w.MachineText != nil && w.MachineFile == "" {
		w.MachineFile = "spec of the body"
	}
	return description.WithMachine(e, w)
}

// begun is when the first of operations was.
func begun(reports []operation.Report) time.Time {
	for _, r := range reports {
		if !r.Started.IsZero() {
			return r.Started
		}
	}
	return time.Now()
}

// agentFailure is the status, code and body of what a command would have said.
func agentFailure(err error, reports ...operation.Report) (status int, code string, said json.RawMessage) {
	f := cli.FailureOf(cli.WithReport(err, reports...), begun(reports), false)
	said, _ = json.Marshal(f)
	status = map[int]int{
		cli.ExitUsage: http.StatusBadRequest, cli.ExitNotFound: http.StatusNotFound, cli.ExitConflict: http.StatusConflict, cli.ExitLocked: http.StatusLocked,
		cli.ExitRefused: http.StatusForbidden, cli.ExitDeadline: http.StatusGatewayTimeout,
	}[f.Exit]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	return status, f.Cause, said
}
