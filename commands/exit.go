package commands

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
	exitUsage       = 2
	exitPartial     = 3 // something is left; running it again resumes
	exitNotFound    = 4
	exitConflict    = 5 // exists and differs
	exitLocked      = 6
	exitDeadline    = 7
	exitRefused     = 8 // protected, needs --yes, privileges or bootstrap
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
	plain := slices.Contains([]int{exitFailed, exitLocked, exitDeadline, exitInterrupted}, code)
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
		fault.Failed: exitFailed, fault.Usage: exitUsage, fault.Partial: exitPartial, fault.NotFound: exitNotFound,
		fault.Conflict: exitConflict, fault.Locked: exitLocked, fault.Deadline: exitDeadline, fault.Refused: exitRefused,
		fault.Ledger: exitLedger, fault.Differences: exitDifferences, fault.Interrupted: exitInterrupted,
	}
}

// end tells how the run has ended, and closes what it has opened. It returns the
// exit code.
func (e *Env) end(err error) int {
	e.progress.close()
	defer e.Close()
	err = e.unprinted(err)
	if err == nil {
		return exitOK
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status) // of the command that was run: it has said what it had to say
	}
	f := failureOf(err, e.started, e.output.Format == terminal.FormatJSON)
	f.print(e.Streams.Err, e.output.Format)
	return f.Exit
}

// exitStatus is a command's own exit code, passed on.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit %d", int(s)) }
