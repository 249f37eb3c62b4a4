package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/failure"
)

// The errors that the command line itself makes.

// UsageError is a command line that cannot be meant.
type UsageError struct{ Text, Advice string }

func (e *UsageError) Error() string { return e.Text }

func (*UsageError) Kind() fault.Kind { return fault.Usage }

// Hint says what would be right.
func (e *UsageError) Hint() string { return e.Advice }

// NotFoundError means that something does not exist that --must-exist, or the
// command, needs. List is the command that shows what exists, and Near what was
// probably meant.
type NotFoundError struct{ What, List, Near string }

func (e *NotFoundError) Error() string { return e.What + " does not exist" }

func (*NotFoundError) Kind() fault.Kind { return fault.NotFound }

// Hint names the command that shows what exists.
func (e *NotFoundError) Hint() string {
	switch {
	case e.List == "":
		return ""
	case e.Near != "":
		return "did you mean " + e.Near + "? to see what exists, run: " + e.List
	}
	return "to see what exists, run: " + e.List
}

// ExistsError means that something exists that the command was to create.
type ExistsError struct{ What, Advice string }

func (e *ExistsError) Error() string { return e.What + " exists" }

func (*ExistsError) Kind() fault.Kind { return fault.Conflict }

// Hint says what to do about it.
func (e *ExistsError) Hint() string { return e.Advice }

// ErrDifferences is exit 10: nothing failed, and there is something to do.
var ErrDifferences = fault.New(fault.Differences, "there are differences")

// ErrTrouble is exit 11: nothing failed, and the sled is in trouble.
var ErrTrouble = fault.New(fault.Trouble, "the sled is in trouble")

// failureOf returns the report of an error. If the command ran at an agent, it is the
// agent's report.
func failureOf(err error, started time.Time) failure.Document {
	if d, ok := SaidByAgent(err); ok {
		return d
	}
	d := failure.Of(err, started)
	d.Said = inWords(err, d)
	return d
}

// printFailure writes the failure to stderr: as lines, with -o json as one object.
func printFailure(f failure.Document, w *terminal.Stream, format terminal.Format) {
	if format == terminal.FormatJSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(f) // stderr is the last resort
		return
	}
	if f.Exit == failure.ExitDifferences || f.Exit == failure.ExitTrouble {
		return
	}
	if w.Terminal {
		_, _ = w.Write([]byte(reported(f, w))) // stderr is the last resort
		return
	}
	line := func(style terminal.Style, what, text string) {
		fmt.Fprintf(w, "sledctl: %s %s\n", w.Style(style, what+":"), terminal.Printable(text))
	}
	message, more, _ := strings.Cut(briefly(f), "\n  ") // a verb on many has a line for each
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
		hostLine(f, line)
	}
	if f.Log != nil {
		line(terminal.Plain, "log", "the end of "+f.Log.File)
		for _, one := range f.Log.Lines {
			fmt.Fprintf(w, "  %s\n", terminal.Printable(propolis.ReadableLine(one)))
		}
	}
	if f.Changed || len(f.Leftovers) > 0 {
		left := "nothing"
		if len(f.Leftovers) > 0 {
			left = strings.Join(f.Leftovers, ", ")
		}
		line(terminal.Plain, "left on the host", left)
	}
	if f.Hint != "" {
		line(terminal.Plain, "hint", f.Hint)
	}
}

// briefly is the message, without the problems if they are listed below it.
func briefly(f failure.Document) string {
	if len(f.Problems) < 2 {
		return f.Message
	}
	listed := (&spec.InvalidError{Problems: f.Problems}).Listed()
	return strings.Replace(f.Message, ": "+listed, "", 1)
}

func hostLine(f failure.Document, line func(terminal.Style, string, string)) {
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

// Is reports whether an error is, or wraps, one of a type.
func Is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
