package commands

import (
	"context"
	"errors"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/base"
	"github.com/sledctl/sledctl/config"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/instance"
	"github.com/sledctl/sledctl/inventory"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/memory"
	"github.com/sledctl/sledctl/napi"
	"github.com/sledctl/sledctl/network"
	"github.com/sledctl/sledctl/nicsync"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/reap"
	"github.com/sledctl/sledctl/storage"
	"github.com/sledctl/sledctl/terminal"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
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

// codeOf has one case per thing that a script decides on, most special first.
func codeOf(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errDifferences):
		return exitDifferences
	case is[*operation.OutcomeError](err), isLedger(err):
		return exitLedger
	case is[*instance.SomeError](err), is[*storage.PartlyError](err), is[*unprintedError](err):
		return exitPartial
	case is[*operation.LockedError](err):
		return exitLocked
	case isUsage(err):
		return exitUsage
	case isNotFound(err):
		return exitNotFound
	case isConflict(err):
		return exitConflict
	case isRefusal(err):
		return exitRefused
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, host.ErrStillRunning):
		return exitDeadline
	}
	return exitFailed
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isLedger(err error) bool {
	for _, kind := range []error{ledger.ErrMissing, ledger.ErrForked, ledger.ErrTwins, ledger.ErrBroken, ledger.ErrOverruled, ledger.ErrUnsound, ledger.ErrChanged, ledger.ErrDead} {
		if errors.Is(err, kind) {
			return true
		}
	}
	if is[*storage.MarkError](err) {
		return true
	}
	absent, ok := errors.AsType[*ledger.AbsentError](err)
	return ok && (len(absent.Places) > 0 || absent.Mark != nil)
}

func isUsage(err error) bool {
	if is[*storage.OwnError](err) {
		return true
	}
	if link, ok := errors.AsType[*network.LinkError](err); ok {
		return link.There
	}
	if input, ok := errors.AsType[*instance.InputError](err); ok {
		return !input.Absent
	}
	return is[*usageError](err) || is[*spec.InvalidError](err) || is[*spec.TooLargeError](err) || is[*instance.DocumentError](err) || is[*config.Error](err) ||
		is[*vnic.NameError](err) || is[*vnic.MACError](err) || is[*zone.NameError](err) || is[*terminal.ColumnError](err) || is[*terminal.FormatError](err)
}

func isNotFound(err error) bool {
	if input, ok := errors.AsType[*instance.InputError](err); ok {
		return input.Absent
	}
	return is[*instance.NotFoundError](err) || is[*instance.RenamedError](err) || is[*instance.EarlierError](err) ||
		is[*network.LinkError](err) ||
		is[*notFoundError](err) || is[*notSentError](err) ||
		errors.Is(err, ledger.ErrNoCopy) ||
		is[*storage.UnknownError](err)
}

func isConflict(err error) bool {
	return is[*instance.ConflictError](err) || is[*instance.NameTakenError](err) || is[*instance.MACTakenError](err) || is[*instance.DiskTakenError](err) || is[*instance.AddressTakenError](err) || is[*instance.StateError](err) || is[*instance.BrokenError](err) || is[*instance.UnfitError](err) ||
		is[*network.ConflictError](err) || is[*network.ExistsError](err) || is[*network.MACError](err) ||
		is[*storage.ConflictError](err) ||
		is[*existsError](err)
}

func isRefusal(err error) bool {
	return errors.Is(err, host.ErrPrivileges) || errors.Is(err, host.ErrNoCommand) ||
		errors.Is(err, ledger.ErrAbsent) ||
		errors.Is(err, instance.ErrNoPool) || is[*instance.NoBaseError](err) || is[*instance.NotPreparedError](err) || is[*instance.MissingError](err) || is[*instance.UnseenError](err) || is[*instance.ProtectedError](err) || is[*instance.UnadoptedError](err) || is[*instance.LostPoolError](err) || is[*instance.NoRoomError](err) || is[*instance.NarrowLinkError](err) || is[*instance.BootromError](err) || is[*spec.VersionError](err) ||
		is[*instance.MigratingError](err) || is[*instance.AwaitedError](err) || is[*instance.MovedError](err) || is[*instance.UnmovableError](err) || is[*instance.SourceError](err) ||
		is[*terminal.RefusedError](err) ||
		is[*network.NoLinkError](err) || is[*network.ForeignError](err) ||
		is[*base.NotPreparedError](err) || is[*base.NeededError](err) || is[*base.UselessError](err) ||
		is[*inventory.RivalError](err) ||
		is[*reap.NeededError](err) ||
		is[*packaging.MissingError](err) ||
		is[*memory.SizeError](err) ||
		is[*nicsync.UnsupportedError](err) || is[*nicsync.MovingError](err) || is[*nicsync.TooManyError](err) || is[*napi.BarredError](err) ||
		is[*storage.NotBlankError](err) || is[*storage.LockedError](err) ||
		is[*agent.ExposedError](err) ||
		is[*refusedError](err)
}
