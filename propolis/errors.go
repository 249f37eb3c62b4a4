package propolis

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/peer/dropshot"
)

// What a server's refusal means. They are found in an *Error by errors.Is.
var (
	// ErrNoInstance is a server that answers and has no machine: never had, or
	// lost it with its process.
	ErrNoInstance = errors.New("there is no machine")
	// ErrAlreadyInitialized is an Ensure where there is a machine, which may
	// be the one that is meant: nothing was compared.
	ErrAlreadyInitialized = errors.New("there is a machine already")
	// ErrForbidden is a change that the state does not allow; see Error.Reason.
	ErrForbidden = errors.New("not in this state")
)

// ErrReply is an answer that no Propolis server gives: something else listens
// there, or it is of another version.
var ErrReply = errors.New("not the answer of a Propolis server")

// AskedError is a question that failed, of whatever kind.
type AskedError struct {
	Name string // whose server was asked
	Err  error
}

// Error names who was asked.
func (e *AskedError) Error() string { return "Propolis of " + e.Name + ": " + e.Err.Error() }

func (*AskedError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *AskedError) Unwrap() error { return e.Err }

// OtherError is a server that has a VM, but not the one that is meant: it is the server
// of another instance.
type OtherError struct{ ID, Want string }

// Error names both.
func (e *OtherError) Error() string {
	return fmt.Sprintf("it has VM %s, not %s: the server of another instance answers at this address", e.ID, e.Want)
}

func (*OtherError) Kind() fault.Kind { return fault.Failed }

// Error is a request that a server answered with an error. Its Code is one of
// the server's few (NoInstance, AlreadyInitialized, Internal), or prose, or
// empty. For a 500 the server's log is the only place that says why.
type Error struct {
	dropshot.Refusal
	// Cause is what the log says about a 500; empty if it could not be read.
	Cause string
}

// Error is the reason, with the cause where there is one.
func (e *Error) Error() string {
	if e.Cause == "" {
		return e.Refusal.Error()
	}
	return fmt.Sprintf("%s %s: %d: %s", e.Method, e.Path, e.Status, e.Cause)
}

func (*Error) Kind() fault.Kind { return fault.Failed }

// Hint returns what to do about CPUs that the build does not have (its limit is what it tells,
// lib/propolis/src/vcpu.rs), and about memory that the server did not get: the kernel
// says ENOSPC, and a published server (feature omicron-build) takes memory from
// the reservoir only, which is empty by default. Empty for all else.
//
// Guess os-error-28-is-the-reservoir: "os error 28" in a server's answer to a new VM means the VMM
// reservoir: the hint names it.
// Check: `rsrvrctl -q` after such a start
func (e *Error) Hint() string {
	if _, most, refused := strings.Cut(e.Cause, " virtual CPUs requested, but only up to "); refused {
		return "ask for fewer CPUs: this build of propolis-server has at most " + strings.TrimSuffix(most, " supported") + "; Oxide's published build has at most 254"
	}
	if !strings.Contains(e.Cause, "(os error 28)") {
		return ""
	}
	return "to see the VMM reservoir, run: rsrvrctl -q; to enlarge it, set instance.reservoir and run: sledctl bootstrap"
}

// Unwrap gives what it means, if that is known.
//
// Guess server-without-machine-destroyed-it: a server without a machine (424, 410) has destroyed
// it. One that crashed looks the same to a command that waits for *destroyed*; a connection that is
// refused or breaks does not.
// Check: kill propolis-server during `instance stop`
func (e *Error) Unwrap() error {
	switch {
	case e.Status == http.StatusFailedDependency, strings.EqualFold(e.Code, "NoInstance"):
		return ErrNoInstance
	case e.Status == http.StatusConflict, strings.EqualFold(e.Code, "AlreadyInitialized"):
		return ErrAlreadyInitialized
	case e.Status == http.StatusForbidden:
		return ErrForbidden
	}
	return nil
}

// StateError is a machine that came to a final state which nobody waited for.
type StateError struct {
	State      string
	Generation uint64
	Wanted     []string
}

// Error names both.
func (e *StateError) Error() string {
	return fmt.Sprintf("the machine is %s, and will not be %s", e.State, strings.Join(e.Wanted, " or "))
}

func (*StateError) Kind() fault.Kind { return fault.Failed }
