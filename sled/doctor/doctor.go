// Package doctor says whether a host is able to run VMs for sledctl, before the first VM
// is made and every day after. It changes nothing on the sled.
//
// Checks lists the checks. Each names the questions whose answers it needs; Examine asks
// every question once, all side by side, and gives the answers to the checks, which are
// pure. What could not be asked is a warning, and never taken for well.
package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host/fault"
)

// Verdict is what a check comes to.
type Verdict string

// The verdicts, from good to bad.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn" // VMs may run; or the check could not ask
	Fail Verdict = "fail" // VMs cannot run, or are in danger
)

// Check is one thing that must hold.
type Check struct {
	ID    string
	Group string
	About string     // what must hold, as a sentence without its full stop
	Asks  []Question // whose answers Judge reads
	Judge func(Seen) Finding
}

// Finding is what a check found.
type Finding struct {
	Verdict  Verdict
	Evidence string
	// Hands is what to do by hand before Next; empty: nothing.
	Hands string
	// Next are the commands that repair it, as they can be typed; none: the page says how.
	Next []string
}

// Checked is a check with what it found.
type Checked struct {
	ID       string   `json:"id"`
	Group    string   `json:"group"`
	Verdict  Verdict  `json:"verdict"`
	Evidence string   `json:"evidence"`
	Hands    string   `json:"hands,omitempty"`
	Next     []string `json:"next"`
	Page     string   `json:"page"` // of the manual, on this check
}

// Repair is how a finding is repaired, as a sentence that starts with a verb.
func (c Checked) Repair() string {
	var how []string
	if c.Hands != "" {
		how = append(how, c.Hands)
	}
	if len(c.Next) > 0 {
		how = append(how, "run: "+strings.Join(c.Next, " && "))
	}
	if how == nil {
		return "read " + c.Page
	}
	return strings.Join(how, ", then ")
}

// Result is what all checks found.
type Result struct {
	Time    time.Time `json:"time"`
	Elapsed int64     `json:"elapsed_ms"`
	Verdict Verdict   `json:"verdict"` // the worst of the checks
	Checks  []Checked `json:"checks"`  // the worst first
	Ignored []string  `json:"ignored"`
}

// Count is how many checks came to a verdict.
func (r Result) Count(v Verdict) (n int) {
	for _, c := range r.Checks {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// Line is the result in a few words.
func (r Result) Line() string {
	var said []string
	for _, v := range []Verdict{Fail, Warn} {
		if n := r.Count(v); n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, v))
		}
	}
	said = append(said, fmt.Sprintf("%d ok", r.Count(OK)))
	if n := len(r.Ignored); n > 0 {
		said = append(said, fmt.Sprintf("%d ignored", n))
	}
	return strings.Join(said, ", ")
}

// Err is nil unless a check failed.
func (r Result) Err() error {
	if r.Verdict != Fail {
		return nil
	}
	return &FailedError{Result: r}
}

// FailedError means that the host cannot run VMs as it is.
type FailedError struct{ Result Result }

// Error names the checks that failed.
func (e *FailedError) Error() string {
	var ids []string
	for _, c := range e.Result.Checks {
		if c.Verdict == Fail {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 1 {
		return "check failed: " + ids[0] + ": " + e.Result.Checks[0].Evidence
	}
	return fmt.Sprintf("%d checks failed: %s", len(ids), strings.Join(ids, ", "))
}

func (*FailedError) Kind() fault.Kind { return fault.Refused }

// Hint is how the first of them is repaired.
func (e *FailedError) Hint() string { return e.Result.Checks[0].Repair() }

// UnknownCheckError is a check to ignore that does not exist.
type UnknownCheckError struct{ ID string }

func (e *UnknownCheckError) Error() string { return fmt.Sprintf("no check is called %q", e.ID) }

func (*UnknownCheckError) Kind() fault.Kind { return fault.Usage }

// Hint names the command that shows the checks.
func (*UnknownCheckError) Hint() string { return "to list the checks, run: sledctl doctor -o name" }

// without are the checks but for those to ignore. Errors: *UnknownCheckError.
func without(all []Check, ignore []string) ([]Check, error) {
	for _, id := range ignore {
		if !slices.ContainsFunc(all, func(c Check) bool { return c.ID == id }) {
			return nil, &UnknownCheckError{ID: id}
		}
	}
	return slices.DeleteFunc(all, func(c Check) bool { return slices.Contains(ignore, c.ID) }), nil
}

// judge gives the answers to the checks. It is pure.
func judge(checks []Check, seen Seen) []Checked {
	all := make([]Checked, 0, len(checks))
	for _, c := range checks {
		f := finding(c, seen)
		all = append(all, Checked{
			ID: c.ID, Group: c.Group, Verdict: f.Verdict, Evidence: f.Evidence, Hands: f.Hands, Next: append([]string{}, f.Next...), Page: "docs/doctor.md#" + c.ID,
		})
	}
	slices.SortStableFunc(all, func(a, b Checked) int { return rank(b.Verdict) - rank(a.Verdict) })
	return all
}

// finding is what a check finds, or why it could not ask.
func finding(c Check, seen Seen) Finding {
	for _, q := range c.Asks {
		if err := seen.Unknown[q]; err != nil {
			return Finding{Verdict: Warn, Evidence: "could not ask: " + err.Error()}
		}
	}
	return c.Judge(seen)
}

func rank(v Verdict) int { return slices.Index([]Verdict{OK, Warn, Fail}, v) }

func fine(format string, args ...any) Finding {
	return Finding{Verdict: OK, Evidence: fmt.Sprintf(format, args...)}
}

func warns(format string, args ...any) Finding {
	return Finding{Verdict: Warn, Evidence: fmt.Sprintf(format, args...)}
}

func fails(format string, args ...any) Finding {
	return Finding{Verdict: Fail, Evidence: fmt.Sprintf(format, args...)}
}

// byHand adds what to do by hand, and then adds the commands to type.
func (f Finding) byHand(what string) Finding { f.Hands = what; return f }

func (f Finding) then(next ...string) Finding { f.Next = next; return f }
