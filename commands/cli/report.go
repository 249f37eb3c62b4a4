package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/progress"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/failure"
)

// labelWidth is the width of the labels of a report.
const labelWidth = 7

// report is a failure for people, in lines that fit their terminal.
type report struct {
	strings.Builder
	to    *terminal.Stream
	width int
}

// reported is a failure for people: what failed, where, what the host said, what is left
// and what to type, each on lines of its own, which are wrapped at words.
func reported(f failure.Document, w *terminal.Stream) string {
	r := report{to: w, width: w.Width()}
	message, more, _ := strings.Cut(cmp.Or(f.Said, briefly(f)), "\n  ") // a verb on many has a line for each
	r.line("error", terminal.Bad, message)
	for one := range strings.SplitSeq(more, "\n  ") {
		r.below(2, one)
	}
	if len(f.Problems) > 1 {
		for _, p := range f.Problems {
			r.line("problem", terminal.Bad, p.String())
		}
	}
	if step := f.Step; step != "" {
		if f.Said != "" {
			step, _, _ = strings.Cut(step, " of ") // the message names the instance
		}
		r.line("step", terminal.Plain, fmt.Sprintf("%s, after %s", step, terminal.Elapsed(time.Duration(f.Elapsed)*time.Millisecond)))
	}
	if f.Host != nil {
		r.host(*f.Host)
	}
	if f.Log != nil {
		r.line("log", terminal.Plain, "the end of "+f.Log.File)
		for _, one := range f.Log.Lines {
			r.below(2, propolis.ReadableLine(one))
		}
	}
	r.left(f)
	r.next(f)
	return r.String()
}

// inWords is what happened to one instance: its name, what sledctl was doing, and what the
// host answered: "web1: cannot clone the zone from propolis_base_1: out of space". It is empty
// if the message is no step's alone.
func inWords(err error, f failure.Document) string {
	if f.Subject == nil || f.Subject.Kind != "instance" {
		return ""
	}
	text := ""
	step, failed := errors.AsType[*plan.StepError](err)
	switch {
	case Is[*interruptedError](err) && !failed:
		text = ErrInterrupted.Error()
	case Is[*interruptedError](err) && step.Action.Change == plan.Wait:
		text = ErrInterrupted.Error() + " while " + doing(step.Action)
	case failed && f.Message == failure.Text(step):
		text = doing(step.Action) + ": " + answered(step.Err)
	default:
		return ""
	}
	return f.Subject.Name + ": " + text
}

// doing is what could not be done, or what was waited for.
func doing(a plan.Action) string {
	words := progress.Words(a)
	if awaited, ok := strings.CutPrefix(words, "wait for "); ok {
		awaited, _, _ = strings.Cut(awaited, ": ") // why it is waited for
		return "waiting for " + awaited
	}
	return "cannot " + words
}

// answered is why a step failed, without the name of the command, which has a line of its own.
func answered(err error) string {
	cause := failure.Text(err)
	if cmd, ok := errors.AsType[*host.CommandError](err); ok && err.Error() == cmd.Error() {
		return strings.TrimPrefix(cause, cmd.Command.Program+": ")
	}
	return cause
}

// line is a label and its text, of which all lines begin in one column.
func (r *report) line(label string, style terminal.Style, text string) {
	width := max(labelWidth, len(label)+1)
	lines := terminal.Wrapped(terminal.Printable(text), r.width-width)
	fmt.Fprintf(r, "%s%s%s\n", r.to.Style(style, label), strings.Repeat(" ", width-len(label)), strings.Join(lines, "\n"+strings.Repeat(" ", width)))
}

// below is a text without a label, indented; what is wrapped is so further.
func (r *report) below(indent int, text string) {
	if text == "" {
		return
	}
	lines := terminal.Wrapped(terminal.Printable(text), r.width-indent-2)
	r.WriteString(strings.Repeat(" ", indent) + strings.Join(lines, "\n"+strings.Repeat(" ", indent+2)) + "\n")
}

// host is the command that failed, and what it printed.
func (r *report) host(h failure.HostOutput) {
	words := make([]string, len(h.Argv))
	for i, a := range h.Argv {
		words[i] = host.Quote(a)
	}
	said := h.Stderr
	if said == "" {
		said = "(it said nothing)"
	}
	r.line("host", terminal.Plain, strings.Join(words, " "))
	r.line("", terminal.Plain, fmt.Sprintf("exit %d: %s", h.Exit, said))
}

func (r *report) left(f failure.Document) {
	switch {
	case len(f.Leftovers) > 0:
		r.line("left", terminal.Plain, strings.Join(f.Leftovers, ", "))
	case f.Changed:
		r.line("left", terminal.Plain, "nothing")
	}
}

// next is what to do, each command on a line of its own, so that it can be copied, also where
// it is wider than the terminal; behind it, or below, stands what it is for.
func (r *report) next(f failure.Document) {
	label := "next"
	for _, n := range failure.NextOf(f.Hint) {
		switch {
		case n.Command == "":
			r.line(label, terminal.Strong, n.For)
		default:
			fmt.Fprintf(r, "%s%s%s", r.to.Style(terminal.Strong, label), strings.Repeat(" ", labelWidth-len(label)), n.Command)
			if n.For != "" && labelWidth+len(n.Command)+len(n.For)+3 <= r.width {
				r.WriteString("   " + terminal.Printable(n.For) + "\n")
				break
			}
			r.WriteString("\n")
			r.below(labelWidth+2, n.For)
		}
		label = ""
	}
}
