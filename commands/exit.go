package commands

import (
	"errors"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/instance"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/plan"
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

// exitCode is the one place where an error becomes an exit code. What is left
// on the host wins over the plain ways to fail.
func exitCode(err error, left []string) int {
	code := codeOf(err)
	if some, ok := errors.AsType[*instance.SomeError](err); ok && len(left) == 0 {
		return codeOfMany(some)
	}
	switch code {
	case exitFailed, exitLocked, exitDeadline, exitInterrupted:
		// A panic may have left anything.
		if len(left) > 0 || errors.Is(err, plan.ErrPanic) {
			return exitPartial
		}
	}
	return code
}

// codeOfMany is the code of a verb on many that has left nothing half done. What
// keeps all of them from being done for one reason is not cured by running it
// again.
func codeOfMany(some *instance.SomeError) int {
	code := codeOf(some.Failures[0].Err)
	for _, f := range some.Failures[1:] {
		if codeOf(f.Err) != code {
			return exitPartial
		}
	}
	if len(some.Failures) < some.Of && code != exitInterrupted {
		return exitPartial
	}
	return code
}

// codeOf is the code of an error's kind.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	return codes()[kindOf(err)]
}

// codes are the exit codes of the kinds.
func codes() map[fault.Kind]int {
	return map[fault.Kind]int{
		fault.Failed: exitFailed, fault.Usage: exitUsage, fault.Partial: exitPartial, fault.NotFound: exitNotFound, fault.Conflict: exitConflict, fault.Locked: exitLocked,
		fault.Deadline: exitDeadline, fault.Refused: exitRefused, fault.Ledger: exitLedger, fault.Differences: exitDifferences, fault.Interrupted: exitInterrupted,
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// kindOf is fault.Of, with the ledger's.
func kindOf(err error) fault.Kind {
	kind := fault.Of(err)
	switch {
	case isLedger(err):
		return max(kind, fault.Ledger)
	case errors.Is(err, ledger.ErrNoCopy):
		return max(kind, fault.NotFound)
	case errors.Is(err, ledger.ErrAbsent):
		return max(kind, fault.Refused)
	}
	return kind
}

func isLedger(err error) bool {
	for _, kind := range []error{ledger.ErrMissing, ledger.ErrForked, ledger.ErrTwins, ledger.ErrBroken, ledger.ErrOverruled,
		ledger.ErrDamaged, ledger.ErrRewound, ledger.ErrForeign, ledger.ErrContradicted, ledger.ErrUnconfirmed, ledger.ErrUnsound, ledger.ErrChanged, ledger.ErrDead} {
		if errors.Is(err, kind) {
			return true
		}
	}
	absent, ok := errors.AsType[*ledger.AbsentError](err)
	return ok && (len(absent.Places) > 0 || absent.Mark != nil)
}
