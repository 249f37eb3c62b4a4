package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/failure"
)

// End prints the failure, if there is one, and closes what the run has opened. It
// returns the exit code.
func (e *Env) End(err error) int {
	e.Progress.close()
	defer e.Close()
	err = e.unprinted(err)
	if err == nil {
		return failure.ExitOK
	}
	if status, ok := errors.AsType[ExitStatus](err); ok {
		return int(status) // of the command that was run: it has said what it had to say
	}
	f := failureOf(err, e.started)
	if f.Exit == failure.ExitUsage && f.Hint == "" {
		f.Hint = usageHint(e.Called)
	}
	f.Hint = e.Afar.Typed(f.Hint)
	printFailure(f, e.Streams.Err, e.Output.Format)
	return f.Exit
}

// usageHint returns the hint for a command line that cannot be used. Called is the
// command that was found in it.
func usageHint(called string) string {
	return "to see the arguments and flags, run: " + cmp.Or(called, "sledctl") + " --help"
}

// ExitStatus is a command's own exit code, passed on.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit %d", int(s)) }

func (ExitStatus) Kind() fault.Kind { return fault.Failed }
