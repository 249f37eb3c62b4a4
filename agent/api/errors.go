package api

import (
	"encoding/json"
	"net/http"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/peer/dropshot"
)

// The codes by which the control plane tells errors apart (omicron
// sled-agent/src/sim/http_entrypoints.rs and sled-agent/src/instance.rs).
const (
	CodeNoSuchInstance = "NO_SUCH_INSTANCE"
	CodeInternal       = "Internal"
	CodeChannelFull    = "INSTANCE_CHANNEL_FULL"
)

// Error is an answer that is an error.
type Error struct {
	Status int
	Code   string // may be empty
	// Message is for people. A 404, 500 or 503 has only the text of its status; the
	// reason is in the log.
	Message string
	Cause   error // for the log; may be nil
	// Failure is what a command reports for it; nil: nothing.
	Failure json.RawMessage
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

func (*Error) Kind() fault.Kind { return fault.Failed }

// Body is what is sent of it.
func (e *Error) Body(requestID string) any {
	body := dropshot.Body{RequestID: requestID, Code: e.Code, Message: e.Message}
	if e.Failure != nil {
		return Failure{body, e.Failure}
	}
	return body
}

// BadRequest is a request that cannot be understood.
func BadRequest(message string) *Error {
	return &Error{Status: http.StatusBadRequest, Message: message}
}

// StatusOnly returns an error whose client learns the status and no more.
func StatusOnly(status int, code string, cause error) *Error {
	return &Error{Status: status, Code: code, Message: http.StatusText(status), Cause: cause}
}

// NoSuchInstance is the error for an unknown VM: the control plane takes the VM
// for gone.
func NoSuchInstance() *Error { return StatusOnly(http.StatusNotFound, CodeNoSuchInstance, nil) }

// Internal is a failure of the agent itself.
func Internal(cause error) *Error {
	return StatusOnly(http.StatusInternalServerError, CodeInternal, cause)
}
