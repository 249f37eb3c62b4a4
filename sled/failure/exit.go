package failure

import (
	"errors"
	"slices"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance"
)

// The exit codes. They are part of the command line's contract, and the agent's
// answers have them, too.
const (
	ExitOK          = 0
	ExitFailed      = 1 // nothing is left behind
	ExitUsage       = 2
	ExitPartial     = 3 // something is left; running it again resumes
	ExitNotFound    = 4
	ExitConflict    = 5 // exists and differs
	ExitLocked      = 6
	ExitDeadline    = 7
	ExitRefused     = 8 // protected, needs --yes, privileges or bootstrap
	ExitLedger      = 9
	ExitDifferences = 10
	ExitTrouble     = 11 // of status --check
	ExitInterrupted = 130
)

// Exit is the one place where an error becomes an exit code. What is left on
// the host wins over the plain ways to fail; a panic may have left anything.
func Exit(err error, left []string) int {
	some, many := errors.AsType[*instance.PartialError](err)
	if many && len(left) == 0 {
		return codes()[some.Common()]
	}
	code := codeOf(err)
	plain := slices.Contains([]int{ExitFailed, ExitLocked, ExitDeadline, ExitInterrupted}, code)
	if plain && (len(left) > 0 || errors.Is(err, plan.ErrPanic)) {
		return ExitPartial
	}
	return code
}

func codeOf(err error) int {
	if err == nil {
		return ExitOK
	}
	return codes()[fault.Of(err)]
}

// codes are the exit codes of the kinds.
func codes() map[fault.Kind]int {
	return map[fault.Kind]int{
		fault.Failed: ExitFailed, fault.Usage: ExitUsage, fault.Partial: ExitPartial, fault.NotFound: ExitNotFound,
		fault.Conflict: ExitConflict, fault.Locked: ExitLocked, fault.Deadline: ExitDeadline, fault.Refused: ExitRefused,
		fault.Ledger: ExitLedger, fault.Differences: ExitDifferences, fault.Trouble: ExitTrouble, fault.Interrupted: ExitInterrupted,
	}
}

// causeOf is the name of an exit code, for scripts that read JSON.
func causeOf(exit int) string {
	for kind, code := range codes() {
		if code == exit {
			return kind.String()
		}
	}
	return ""
}
