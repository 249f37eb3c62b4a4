package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance"
)

// The exit codes. They are part of the command line's contract.
const (
	exitOK          = 0
	exitFailed      = 1 // nothing is left behind
	ExitUsage       = 2
	exitPartial     = 3 // something is left; running it again resumes
	ExitNotFound    = 4
	ExitConflict    = 5 // exists and differs
	ExitLocked      = 6
	ExitDeadline    = 7
	ExitRefused     = 8 // protected, needs --yes, privileges or bootstrap
	exitLedger      = 9
	exitDifferences = 10
	exitInterrupted = 130
)

// exitCode is the one place where an error becomes an exit code. What is left on
// the host wins over the plain ways to fail; a panic may have left anything.
func exitCode(err error, left []string) int {
	some, many := errors.AsType[*instance.PartialError](err)
	if many && len(left) == 0 {
		return codes()[some.Common()]
	}
	code := codeOf(err)
	plain := slices.Contains([]int{exitFailed, ExitLocked, ExitDeadline, exitInterrupted}, code)
	if plain && (len(left) > 0 || errors.Is(err, plan.ErrPanic)) {
		return exitPartial
	}
	return code
}

func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	return codes()[fault.Of(err)]
}

// codes are the exit codes of the kinds.
func codes() map[fault.Kind]int {
	return map[fault.Kind]int{
		fault.Failed: exitFailed, fault.Usage: ExitUsage, fault.Partial: exitPartial, fault.NotFound: ExitNotFound,
		fault.Conflict: ExitConflict, fault.Locked: ExitLocked, fault.Deadline: ExitDeadline, fault.Refused: ExitRefused,
		fault.Ledger: exitLedger, fault.Differences: exitDifferences, fault.Interrupted: exitInterrupted,
	}
}

// End prints the failure, if there is one, and closes what the run has opened. It
// returns the exit code.
func (e *Env) End(err error) int {
	e.Progress.close()
	defer e.Close()
	err = e.unprinted(err)
	if err == nil {
		return exitOK
	}
	if status, ok := errors.AsType[ExitStatus](err); ok {
		return int(status) // of the command that was run: it has said what it had to say
	}
	f := FailureOf(err, e.started, e.Output.Format == terminal.FormatJSON)
	f.print(e.Streams.Err, e.Output.Format)
	return f.Exit
}

// ExitStatus is a command's own exit code, passed on.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit %d", int(s)) }

func (ExitStatus) Kind() fault.Kind { return fault.Failed }
