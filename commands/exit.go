package commands

import (
	"errors"
	"slices"

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
