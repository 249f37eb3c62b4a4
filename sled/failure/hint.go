package failure

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/reap"
	"github.com/sledctl/sledctl/sled/storage"
)

// hintOf returns what to do about an error. A hint starts with a verb and, if a command
// helps, ends with that command. Errors that know what would help have a method Hint;
// the rest is here. Every exit code other than 0, 10 and 130 has a hint; that of a
// wrong command line comes from the command line.
func hintOf(err error, d Document) string {
	if many, is := errors.AsType[*instance.PartialError](err); is && !isLost(err) {
		return manyHint(many, d)
	}
	return cmp.Or(causeHint(err), exitHint(err, d))
}

// causeHint returns the hint of what failed; empty: it has none of its own.
func causeHint(err error) string {
	var hinted interface{ Hint() string }
	absent, isAbsent := errors.AsType[*ledger.AbsentError](err)
	conflict, isConflicting := errors.AsType[*instance.ConflictError](err)
	refused, isRefused := errors.AsType[*RefusedError](err)
	switch {
	case isLost(err): // whatever else is wrong, this comes first
		return (&ledger.SupersededError{}).Hint()
	case isRefused && refused.Advice != "":
		return refused.Advice
	case isAbsent && len(absent.Places) == 0 && absent.Tag == nil, errors.Is(err, instance.ErrNoPool), is[*instance.NoBaseError](err):
		return PrepareHint
	case errors.As(err, &hinted) && hinted.Hint() != "":
		return hinted.Hint()
	case is[*network.NoLinkError](err):
		return "set network.control_link in " + naming.ConfigFile + ", then run: sledctl bootstrap"
	case errors.Is(err, host.ErrPrivileges):
		return "to get the privileges, run: pfexec sledctl …"
	case errors.Is(err, host.ErrNoCommand):
		return "install the command, or add its directory to host.command_path in " + naming.ConfigFile + "; then run the same command again"
	case isConflicting && conflict.Recreate:
		return "to build it again, add --recreate; or ask for what exists"
	}
	return typeHint(err)
}

// typeHint returns the hint for errors of packages that know no commands.
func typeHint(err error) string {
	for _, of := range []struct {
		is   func(error) bool
		hint string
	}{
		{is[*record.NotFoundError], "to list the instances, run: sledctl instance list"},
		{is[*record.RenamedError], "to list the instances with their names, run: sledctl instance list"},
		{is[*instance.NameTakenError], "choose another name; to list those in use, run: sledctl instance list"},
		{is[*instance.AddressTakenError], "choose another address; to list those in use, run: sledctl instance list"},
		{is[*instance.MACTakenError], "choose another MAC; to list those in use, run: sledctl vnic list"},
		{is[*instance.DiskTakenError], "choose another disk; to see who has which, run: sledctl instance list -o json"},
		{is[*instance.StateError], "to see the states, run: sledctl instance list"},
		{is[*instance.MissingError], "install what is missing, then run: sledctl bootstrap"},
		{is[*migration.UnmovableError], "to see what the instance has, run: sledctl instance get NAME -o json"},
		{is[*base.NotPreparedError], "to prepare the pool, run: sledctl bootstrap"},
		{is[*base.NeededError], "to see which zones need the base, run: sledctl base list -o json"},
		{is[*reap.NeededError], "to see which instance needs the zone, run: sledctl zone list"},
		{is[*network.ConflictError], "remove what is in the way, then run: sledctl bootstrap"},
		{is[*network.ExistsError], "choose another name; to list the VNICs, run: sledctl vnic list"},
		{is[*network.MACError], "choose another MAC; to list those in use, run: sledctl vnic list"},
		{is[*network.ForeignError], "choose a VNIC of sledctl, which changes no foreign ones; to see them all, run: dladm show-vnic"},
		{is[*storage.ConflictError], "to see what differs and who can repair it, run: sledctl storage check"},
		{is[*storage.UnknownError], "to list the disks, run: sledctl storage list"},
		{is[*spec.VersionError], "to list every problem, run: sledctl propolis spec validate FILE"},
		{is[*spec.InvalidError], "correct the spec; to check it, run: sledctl propolis spec validate FILE"},
		{func(err error) bool { return errors.Is(err, ledger.ErrNoCopy) }, "to list the copies, run: sledctl ledger check"},
	} {
		if of.is(err) {
			return of.hint
		}
	}
	return ""
}

// PrepareHint is the hint on a sled that is not prepared.
const PrepareHint = "to prepare the sled, run: sledctl bootstrap"

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
		return "to ask for an address that no other host has, add --address"
	case d.Exit == ExitFailed && d.Changed:
		return "fix the cause and run the same command again; to see what this run did, run: sledctl trace " + d.trace
	}
	return map[int]string{
		ExitFailed:   "fix the cause and run the same command again; to see its steps, add --verbose",
		ExitNotFound: "to list the instances, run: sledctl instance list",
		ExitConflict: "ask for what exists, or for another name; to list the instances, run: sledctl instance list",
		ExitRefused:  "fix the cause and run the same command again",
		ExitLedger:   "to compare the copies of the ledger, run: sledctl ledger check",
	}[d.Exit]
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
	return isAbsent && absent.Tag != nil && !ledger.Newer(err) || isOverruled && len(overruled.Files) == 0
}
