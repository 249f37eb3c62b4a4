// Package failure makes the document that reports why an operation failed: which
// exit code it has, at which step it failed and after how long, what the host
// printed, what is left on the host, and which command to type next.
//
// The command line prints it, and the agent answers with it, so that sledctl on
// another computer ends as it would on the sled.
package failure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
)

// Document is a failure, as -o json prints it.
type Document struct {
	Kind    string `json:"kind"`
	Exit    int    `json:"exit"`
	Cause   string `json:"cause"`
	Step    string `json:"step,omitempty"`
	Elapsed int64  `json:"elapsed_ms"`
	Message string `json:"message"`
	// Subject is what the operation was about that failed.
	Subject *Subject    `json:"subject,omitempty"`
	Host    *HostOutput `json:"host,omitempty"`
	// Problems are all that is wrong with a spec that cannot be used.
	Problems  []spec.Problem `json:"problems,omitempty"`
	Leftovers []string       `json:"left"`
	// Log is the end of the log that explains the failure, and Bundles are the files
	// in which the rest of the zone's evidence is kept.
	Log     *plan.Quote `json:"log,omitempty"`
	Bundles []string    `json:"bundles,omitempty"`
	Hint    string      `json:"hint,omitempty"`
	// Next are the commands of the hint, and Groups the causes of a verb on many.
	Next   []string  `json:"next,omitempty"`
	Groups []groupOf `json:"groups,omitempty"`

	Changed bool `json:"-"` // an operation had begun to change the host
	// Said is the message in an operator's words, for a terminal; empty: there are none.
	Said string `json:"-"`

	trace  string // its id
	timeUp bool   // that of --timeout
}

// Subject is an object by name.
type Subject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id"`
}

// subjectOf is that of a report, if that is about one object.
func subjectOf(r operation.Report) *Subject {
	kind, id, one := strings.Cut(r.Subject, "/")
	if !one || r.Name == "" {
		return nil
	}
	return &Subject{kind, r.Name, id}
}

// HostOutput is the host command that failed.
type HostOutput struct {
	Argv   []string `json:"argv"`
	Exit   int      `json:"exit"`
	Stderr string   `json:"stderr"`
}

// Of returns the document for an error of what began at a time. The reports come
// with the error, if WithReport has added them.
func Of(err error, started time.Time) Document {
	d := Document{Kind: "Error", Message: Text(err), Leftovers: []string{}, Elapsed: time.Since(started).Milliseconds()}
	if r, ok := errors.AsType[*reportedError](err); ok {
		for _, report := range r.reports {
			d.Leftovers = append(d.Leftovers, leftBy(report.Outcome)...)
			d.Bundles = append(d.Bundles, bundlesOf(report.Outcome)...)
			if d.Subject == nil {
				d.Subject = subjectOf(report)
			}
			if report.ID != "" {
				d.Changed, d.trace = true, report.ID
			}
		}
	}
	if step, ok := errors.AsType[*plan.StepError](err); ok {
		d.Step, d.Elapsed = step.Action.Step.Verb()+" of "+step.Action.Object, step.Elapsed.Milliseconds()
		if len(step.Quote.Lines) > 0 {
			d.Log = &step.Quote
		}
	}
	if cmd, ok := errors.AsType[*host.CommandError](err); ok {
		d.Host = &HostOutput{Argv: cmd.Command.Argv(), Exit: cmd.Result.Exit, Stderr: strings.TrimSpace(string(cmd.Result.Stderr))}
	}
	if invalid, ok := errors.AsType[*spec.InvalidError](err); ok {
		d.Problems = invalid.Problems
	}
	d.Exit, d.timeUp = Exit(err, d.Leftovers), is[*TimeoutError](err)
	d.Cause = causeOf(d.Exit)
	d.Hint = joined("; ", hintOf(err, d), d.bundleHint())
	for _, next := range NextOf(d.Hint) {
		if next.Command != "" {
			d.Next = append(d.Next, next.Command)
		}
	}
	if many, ok := errors.AsType[*instance.PartialError](err); ok {
		d.Subject = nil // the groups tell
		for _, g := range many.Groups() {
			d.Groups = append(d.Groups, groupOf{len(g.Names), Text(g.Err), g.Names})
		}
	}
	return d
}

// leftBy returns what an operation has left; if a later one failed, that includes
// what it was to make: the command as a whole has come half way. Next to that, it may name what the
// command could not take back.
func leftBy(o plan.Outcome) []string {
	if o.Err() == nil {
		return append(o.Made(), o.Leftovers...)
	}
	return o.Leftovers
}

// bundlesOf are the files in which a failed operation kept the evidence of a zone
// before it removed that zone.
func bundlesOf(o plan.Outcome) []string {
	var files []string
	for _, a := range o.Kept {
		if step, ok := a.Step.(bundle.Take); ok {
			files = append(files, step.Path())
		}
	}
	return files
}

// bundleHint names the command that gets what the removed zones could tell.
func (d Document) bundleHint() string {
	switch len(d.Bundles) {
	case 0:
		return ""
	case 1:
		id := bundle.IDOf(d.Bundles[0])
		return fmt.Sprintf("to read what its zone could tell, run: sledctl zone bundle get %s %[1]s.tar.gz", id)
	}
	return fmt.Sprintf("to list the %d bundles of what the zones could tell, run: sledctl zone bundle list", len(d.Bundles))
}

func joined(between string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), between)
}
