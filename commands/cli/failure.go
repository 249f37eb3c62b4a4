package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/network"
)

// The errors that the command line itself makes.

// UsageError is a command line that cannot be meant.
type UsageError struct{ Text, Advice string }

func (e *UsageError) Error() string { return e.Text }

func (*UsageError) Kind() fault.Kind { return fault.Usage }

// Hint says what would be right.
func (e *UsageError) Hint() string { return e.Advice }

// NotFoundError means that something does not exist that --must-exist, or the
// command, needs.
type NotFoundError struct{ What string }

func (e *NotFoundError) Error() string { return e.What + " does not exist" }

func (*NotFoundError) Kind() fault.Kind { return fault.NotFound }

// ExistsError means that something exists that the command was to create.
type ExistsError struct{ What, Advice string }

func (e *ExistsError) Error() string { return e.What + " exists" }

func (*ExistsError) Kind() fault.Kind { return fault.Conflict }

// Hint says what to do about it.
func (e *ExistsError) Hint() string { return e.Advice }

// RefusedError is something that is not done, with what would allow it.
type RefusedError struct {
	Err    error
	Advice string
}

func (e *RefusedError) Error() string { return e.Err.Error() }

func (*RefusedError) Kind() fault.Kind { return fault.Refused }
func (e *RefusedError) Unwrap() error  { return e.Err }
func (e *RefusedError) Hint() string   { return e.Advice }

// timeoutError is a command for which the time was up that --timeout allows.
type timeoutError struct {
	limit time.Duration
	err   error
}

func (e *timeoutError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("deadline of %s passed: %s", e.limit.Round(time.Millisecond), OwnWords(e.err)), ": "+timeIsUp)
}

// timeIsUp and interrupted stand for what package context says.
const (
	timeIsUp    = "time is up"
	interrupted = "interrupted"
)

// OwnWords returns the text of an error without words of package context.
func OwnWords(err error) string {
	return strings.NewReplacer(context.DeadlineExceeded.Error(), timeIsUp, context.Canceled.Error(), interrupted).Replace(err.Error())
}

func (*timeoutError) Kind() fault.Kind { return fault.Deadline }
func (e *timeoutError) Unwrap() error  { return e.err }

// ErrDifferences is exit 10: nothing failed, and there is something to do.
var ErrDifferences = fault.New(fault.Differences, "there are differences")

// reported is an error together with what its operation came to.
type reported struct {
	err     error
	reports []operation.Report
}

func (e *reported) Error() string { return e.err.Error() }
func (e *reported) Unwrap() error { return e.err }

// WithReport keeps the report next to the error, for the five questions.
func WithReport(err error, reports ...operation.Report) error {
	if err == nil {
		return nil
	}
	return &reported{err: err, reports: reports}
}

// Failure answers five questions: what failed; at which step, after how long; what
// the host printed; what is left on the host; which command to type next.
type Failure struct {
	Kind    string     `json:"kind"`
	Exit    int        `json:"exit"`
	Cause   string     `json:"cause"`
	Step    string     `json:"step,omitempty"`
	Elapsed int64      `json:"elapsed_ms"`
	Message string     `json:"message"`
	Host    *hostWords `json:"host,omitempty"`
	// Problems are all that is wrong with a spec that cannot be used.
	Problems []spec.Problem `json:"problems,omitempty"`
	Left     []string       `json:"left"`
	// Log is the end of the log that shows the reason. Bundles are the files that keep
	// the other evidence from the zone.
	Log     *plan.Quote `json:"log,omitempty"`
	Bundles []string    `json:"bundles,omitempty"`
	Hint    string      `json:"hint,omitempty"`

	changed bool   // an operation had begun to change the host
	trace   string // its id
	timeUp  bool   // that of --timeout
}

type hostWords struct {
	Argv   []string `json:"argv"`
	Exit   int      `json:"exit"`
	Stderr string   `json:"stderr"`
}

// FailureOf returns the report of an error.
func FailureOf(err error, started time.Time, _ bool) Failure {
	if f, ok := SaidByAgent(err); ok {
		return f
	}
	f := Failure{Kind: "Error", Message: OwnWords(err), Left: []string{}, Elapsed: time.Since(started).Milliseconds()}
	if r, ok := errors.AsType[*reported](err); ok {
		for _, report := range r.reports {
			f.Left = append(f.Left, leftBy(report.Outcome)...)
			f.Bundles = append(f.Bundles, bundlesOf(report.Outcome)...)
			if report.ID != "" {
				f.changed, f.trace = true, report.ID
			}
		}
	}
	if step, ok := errors.AsType[*plan.StepError](err); ok {
		f.Step, f.Elapsed = step.Action.Step.Verb()+" of "+step.Action.Object, step.Elapsed.Milliseconds()
		if len(step.Quote.Lines) > 0 {
			f.Log = &step.Quote
		}
	}
	if cmd, ok := errors.AsType[*host.CommandError](err); ok {
		f.Host = &hostWords{Argv: cmd.Command.Argv(), Exit: cmd.Result.Exit, Stderr: strings.TrimSpace(string(cmd.Result.Stderr))}
	}
	if invalid, ok := errors.AsType[*spec.InvalidError](err); ok {
		f.Problems = invalid.Problems
	}
	f.Exit, f.timeUp = exitCode(err, f.Left), Is[*timeoutError](err)
	f.Cause = causeOf(f.Exit)
	f.Hint = joined("; ", hintOf(err, f), f.keptIn())
	return f
}

// leftBy is what an operation has left, where a later one failed also what it
// was to make: the command as a whole has come half way.
func leftBy(o plan.Outcome) []string {
	if o.Err() == nil {
		return o.Made()
	}
	return o.Left
}

// causeOf is a word for the exit code, for scripts that read JSON.
func causeOf(exit int) string {
	for kind, code := range codes() {
		if code == exit {
			return kind.String()
		}
	}
	return ""
}

// hintOf is what to type next.
func hintOf(err error, f Failure) string {
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
	case isAbsent && len(absent.Places) == 0 && absent.Tag == nil, errors.Is(err, instance.ErrNoPool), Is[*instance.NoBaseError](err):
		return "sledctl bootstrap prepares the sled"
	case isMany && many.One() != nil:
		f.Exit = codeOf(many.One())
		return hintOf(many.One(), f)
	case errors.As(err, &hinted) && hinted.Hint() != "":
		return hinted.Hint()
	case Is[*network.NoLinkError](err):
		return "set network.control_link in " + ConfigFile
	case errors.Is(err, host.ErrPrivileges):
		return "pfexec sledctl …"
	case errors.Is(err, host.ErrNoCommand):
		return "host.command_path in " + ConfigFile + " says where commands are looked for"
	case isConflicting && conflict.Recreate:
		return "to build it again, add --recreate; or ask for what exists"
	}
	return exitHint(err, f)
}

// resumeHint is the hint after an operation that has left something.
const resumeHint = "to resume, run the same command again; to remove what is left, run: sledctl reap"

// exitHint returns the hint for an exit code, for errors without a hint of their own.
func exitHint(err error, f Failure) string {
	switch {
	case f.Exit == exitPartial:
		return resumeHint
	case f.Exit == ExitLocked:
		return "run the same command again later; or, to wait until the other has ended, add --wait"
	case f.Exit == ExitDeadline:
		return deadlineHint(err, f.timeUp)
	case f.Exit == exitInterrupted && f.changed:
		return "to resume, run the same command again"
	case errors.Is(err, ipadm.ErrDuplicate):
		return "another host has this address: to ask for a different one, add --address"
	case f.Exit == exitFailed && f.changed:
		return "fix the cause and run the same command again; to see what this run did, run: sledctl trace " + f.trace
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

// isLost says whether a sled that had a ledger has none.
func isLost(err error) bool {
	absent, isAbsent := errors.AsType[*ledger.AbsentError](err)
	overruled, isOverruled := errors.AsType[*ledger.SupersededError](err)
	return isAbsent && absent.Tag != nil || isOverruled && len(overruled.Files) == 0
}

// print writes the failure to stderr: for people in lines, for -o json as one
// object.
func (f Failure) print(w *terminal.Stream, format terminal.Format) {
	if format == terminal.FormatJSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(f) // stderr is the last resort
		return
	}
	if f.Exit == exitDifferences {
		return
	}
	line := func(style terminal.Style, what, text string) {
		fmt.Fprintf(w, "sledctl: %s %s\n", w.Style(style, what+":"), terminal.Printable(text))
	}
	message, more, _ := strings.Cut(f.briefly(), "\n  ") // a verb on many has a line for each
	line(terminal.Bad, "error", message)
	for one := range strings.SplitSeq(more, "\n  ") {
		if one != "" {
			fmt.Fprintf(w, "  %s\n", terminal.Printable(one))
		}
	}
	if len(f.Problems) > 1 {
		for _, p := range f.Problems {
			line(terminal.Bad, "problem", p.String())
		}
	}
	if f.Step != "" {
		line(terminal.Plain, "step", fmt.Sprintf("%s, after %s", f.Step, terminal.Elapsed(time.Duration(f.Elapsed)*time.Millisecond)))
	}
	if f.Host != nil {
		f.hostLine(w, line)
	}
	if f.Log != nil {
		line(terminal.Plain, "log", "the end of "+f.Log.File)
		for _, one := range f.Log.Lines {
			fmt.Fprintf(w, "  %s\n", terminal.Printable(propolis.ReadableLine(one)))
		}
	}
	if f.changed || len(f.Left) > 0 {
		left := "nothing"
		if len(f.Left) > 0 {
			left = strings.Join(f.Left, ", ")
		}
		line(terminal.Plain, "left on the host", left)
	}
	if f.Hint != "" {
		line(terminal.Plain, "hint", f.Hint)
	}
}

// briefly is the message, where there are problems to be listed below without
// them.
func (f Failure) briefly() string {
	if len(f.Problems) < 2 {
		return f.Message
	}
	listed := (&spec.InvalidError{Problems: f.Problems}).Listed()
	return strings.Replace(f.Message, ": "+listed, "", 1)
}

func (f Failure) hostLine(_ io.Writer, line func(terminal.Style, string, string)) {
	words := make([]string, len(f.Host.Argv))
	for i, a := range f.Host.Argv {
		words[i] = host.Quote(a)
	}
	said := f.Host.Stderr
	if said == "" {
		said = "(it said nothing)"
	}
	line(terminal.Plain, "host", fmt.Sprintf("%s: exit %d: %s", strings.Join(words, " "), f.Host.Exit, said))
}

// Is says whether an error is, or wraps, one of a type.
func Is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
