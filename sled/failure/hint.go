package failure

import (
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/network"
)

// hintOf is what to type next.
func hintOf(err error, d Document) string {
	var hinted interface{ Hint() string }
	absent, isAbsent := errors.AsType[*ledger.AbsentError](err)
	many, isMany := errors.AsType[*instance.PartialError](err)
	conflict, isConflicting := errors.AsType[*instance.ConflictError](err)
	refused, isRefused := errors.AsType[*RefusedError](err)
	switch {
	case isLost(err): // whatever else is wrong, this comes first
		return (&ledger.SupersededError{}).Hint()
	case isRefused && refused.Advice != "":
		return refused.Advice
	case isAbsent && len(absent.Places) == 0 && absent.Tag == nil, errors.Is(err, instance.ErrNoPool), is[*instance.NoBaseError](err):
		return "sledctl bootstrap prepares the sled"
	case isMany && many.One() != nil:
		d.Exit = codeOf(many.One())
		return hintOf(many.One(), d)
	case errors.As(err, &hinted) && hinted.Hint() != "":
		return hinted.Hint()
	case is[*network.NoLinkError](err):
		return "set network.control_link in " + naming.ConfigFile
	case errors.Is(err, host.ErrPrivileges):
		return "pfexec sledctl …"
	case errors.Is(err, host.ErrNoCommand):
		return "host.command_path in " + naming.ConfigFile + " says where commands are looked for"
	case isConflicting && conflict.Recreate:
		return "to build it again, add --recreate; or ask for what exists"
	}
	return exitHint(err, d)
}

// ResumeHint is the hint after an operation that has left something.
const ResumeHint = "to resume, run the same command again; to remove what is left, run: sledctl reap"

// exitHint returns the hint for an exit code, for errors without a hint of their own.
func exitHint(err error, d Document) string {
	switch {
	case d.Exit == ExitPartial:
		return ResumeHint
	case d.Exit == ExitLocked:
		return "run the same command again later; or, to wait until the other has ended, add --wait"
	case d.Exit == ExitDeadline:
		return deadlineHint(err, d.timeUp)
	case d.Exit == ExitInterrupted && d.Changed:
		return "to resume, run the same command again"
	case errors.Is(err, ipadm.ErrDuplicate):
		return "another host has this address: to ask for a different one, add --address"
	case d.Exit == ExitFailed && d.Changed:
		return "fix the cause and run the same command again; to see what this run did, run: sledctl trace " + d.trace
	}
	return ""
}

// deadlineHint returns the hint for a limit that has passed: --timeout changes only
// its own, and none of those that are built in.
func deadlineHint(err error, timeUp bool) string {
	limit, builtIn := errors.AsType[*plan.LimitError](err)
	switch {
	case timeUp:
		return "to resume, run the same command again, with a longer --timeout if it was too short"
	case builtIn:
		return fmt.Sprintf("to try once more, run the same command again; --timeout does not change the limit of %s for %s", limit.Limit, limit.Verb)
	}
	return "to try once more, run the same command again"
}

// isLost reports whether a sled that had a ledger has none.
func isLost(err error) bool {
	absent, isAbsent := errors.AsType[*ledger.AbsentError](err)
	overruled, isOverruled := errors.AsType[*ledger.SupersededError](err)
	return isAbsent && absent.Tag != nil || isOverruled && len(overruled.Files) == 0
}
