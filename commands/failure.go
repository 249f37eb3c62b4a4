package commands

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

// usageError is a command line that cannot be meant.
type usageError struct{ text, hint string }

func (e *usageError) Error() string { return e.text }

func (*usageError) Kind() fault.Kind { return fault.Usage }

// Hint says what would be right.
func (e *usageError) Hint() string { return e.hint }

// notFoundError is something that --must-exist, or the command, needs.
type notFoundError struct{ what string }

func (e *notFoundError) Error() string { return e.what + " is not there" }

func (*notFoundError) Kind() fault.Kind { return fault.NotFound }

// existsError is something that is there already.
type existsError struct{ what, hint string }

func (e *existsError) Error() string { return e.what + " exists" }

func (*existsError) Kind() fault.Kind { return fault.Conflict }

// Hint says what to do about it.
func (e *existsError) Hint() string { return e.hint }

// refusedError is something that is not done, with what would allow it.
type refusedError struct {
	err  error
	hint string
}

func (e *refusedError) Error() string { return e.err.Error() }

func (*refusedError) Kind() fault.Kind { return fault.Refused }
func (e *refusedError) Unwrap() error  { return e.err }
func (e *refusedError) Hint() string   { return e.hint }

// timeoutError is a command for which the time was up that --timeout allows.
type timeoutError struct {
	limit time.Duration
	err   error
}

func (e *timeoutError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("deadline of %s passed: %s", e.limit.Round(time.Millisecond), ownWords(e.err)), ": "+timeIsUp)
}

// timeIsUp and interrupted stand for what package context says.
const (
	timeIsUp    = "time is up"
	interrupted = "interrupted"
)

// ownWords returns the text of an error without words of package context.
func ownWords(err error) string {
	return strings.NewReplacer(context.DeadlineExceeded.Error(), timeIsUp, context.Canceled.Error(), interrupted).Replace(err.Error())
}

func (*timeoutError) Kind() fault.Kind { return fault.Deadline }
func (e *timeoutError) Unwrap() error  { return e.err }

// errDifferences is exit 10: nothing failed, and there is something to do.
var errDifferences = fault.New(fault.Differences, "there are differences")

// reported is an error together with what its operation came to.
type reported struct {
	err     error
	reports []operation.Report
}

func (e *reported) Error() string { return e.err.Error() }
func (e *reported) Unwrap() error { return e.err }

// withReport keeps the report next to the error, for the five questions.
func withReport(err error, reports ...operation.Report) error {
	if err == nil {
		return nil
	}
	return &reported{err: err, reports: reports}
}

// failure answers five questions: what failed; at which step, after how long;
// what the host said, in its words; what is left on the host; what to type
// next.
type failure struct {
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
	// Log is the end of the log that tells why, and Bundles are the files in which
	// the rest of what the zone could tell is kept.
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

func failureOf(err error, started time.Time, _ bool) failure {
	if f, ok := saidByAgent(err); ok {
		return f
	}
	f := failure{Kind: "Error", Message: ownWords(err), Left: []string{}, Elapsed: time.Since(started).Milliseconds()}
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
	f.Exit, f.timeUp = exitCode(err, f.Left), is[*timeoutError](err)
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
func hintOf(err error, f failure) string {
	var hinted interface{ Hint() string }
	absent, isAbsent := errors.AsType[*ledger.AbsentError](err)
	many, isMany := errors.AsType[*instance.PartialError](err)
	conflict, isConflicting := errors.AsType[*instance.ConflictError](err)
	refused, isRefused := errors.AsType[*refusedError](err)
	switch {
	case isLost(err): // whatever else is wrong, this comes first
		return (&ledger.SupersededError{}).Hint()
	case isRefused && refused.hint != "":
		return refused.hint
	case isAbsent && len(absent.Places) == 0 && absent.Tag == nil, errors.Is(err, instance.ErrNoPool), is[*instance.NoBaseError](err):
		return "sledctl bootstrap prepares the sled"
	case isMany && many.One() != nil:
		f.Exit = codeOf(many.One())
		return hintOf(many.One(), f)
	case errors.As(err, &hinted) && hinted.Hint() != "":
		return hinted.Hint()
	case is[*network.NoLinkError](err):
		return "set network.control_link in " + configFile
	case errors.Is(err, host.ErrPrivileges):
		return "pfexec sledctl …"
	case errors.Is(err, host.ErrNoCommand):
		return "host.command_path in " + configFile + " says where commands are looked for"
	case isConflicting && conflict.Recreate:
		return "to build it again, add --recreate; or ask for what exists"
	}
	return exitHint(err, f)
}

// exitHint is what to type next after an exit, where the error itself does not say.
func exitHint(err error, f failure) string {
	switch {
	case f.Exit == exitPartial:
		return "run it again: it goes on from here; or sledctl reap takes away what is left"
	case f.Exit == exitLocked:
		return "run it again when it has ended; --wait waits for that"
	case f.Exit == exitDeadline:
		return deadlineHint(err, f.timeUp)
	case f.Exit == exitInterrupted && f.changed:
		return "run it again: it begins where it was"
	case errors.Is(err, ipadm.ErrDuplicate):
		return "another host has this address; --address asks for another one"
	case f.Exit == exitFailed && f.changed:
		return "nothing stays of it: run it again once the cause is gone; sledctl trace " + f.trace + " shows each command"
	}
	return ""
}

// deadlineHint says whose limit it was: one that is built in, no --timeout changes.
func deadlineHint(err error, timeUp bool) string {
	limit, ours := errors.AsType[*plan.LimitError](err)
	switch {
	case timeUp:
		return "run it again; where --timeout was too short, with a longer one"
	case ours:
		return fmt.Sprintf("run it again; the limit of %s for %s is sledctl's own, and no --timeout changes it", limit.Limit, limit.Verb)
	}
	return "run it again"
}

// isLost says whether a sled that had a state file has none.
func isLost(err error) bool {
	absent, isAbsent := errors.AsType[*ledger.AbsentError](err)
	overruled, isOverruled := errors.AsType[*ledger.SupersededError](err)
	return isAbsent && absent.Tag != nil || isOverruled && len(overruled.Files) == 0
}

// print writes the failure to stderr: for people in lines, for -o json as one
// object.
func (f failure) print(w *terminal.Stream, format terminal.Format) {
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
func (f failure) briefly() string {
	if len(f.Problems) < 2 {
		return f.Message
	}
	listed := (&spec.InvalidError{Problems: f.Problems}).Listed()
	return strings.Replace(f.Message, ": "+listed, "", 1)
}

func (f failure) hostLine(_ io.Writer, line func(terminal.Style, string, string)) {
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

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
