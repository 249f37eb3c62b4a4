package host

import (
	"slices"
	"strings"
	"time"
)

// Event is one thing that was done on a traced host, or tried.
type Event struct {
	Action  string    `json:"action,omitempty"` // the plan's id for what it was part of
	Line    Line      `json:"line"`
	Exit    int       `json:"exit,omitempty"`    // of a command
	Unknown bool      `json:"unknown,omitempty"` // see Result
	Status  int       `json:"status,omitempty"`  // of a request's answer
	Stderr  string    `json:"stderr,omitempty"`  // the end of it, at most 4 KiB
	Error   string    `json:"error,omitempty"`   // why it was not done, or not to its end
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
}

// maxStderrTail is how much of a command's stderr an event keeps, in bytes.
const maxStderrTail = 4 << 10

// Busy is how long the events kept us waiting for something outside: the union
// of the times of commands and requests. Files are our own work.
func Busy(events []Event) time.Duration {
	outside := slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Line.Kind == LineFile })
	slices.SortFunc(outside, func(a, b Event) int { return a.Start.Compare(b.Start) })
	var busy time.Duration
	var until time.Time
	for _, e := range outside {
		start := e.Start
		if start.Before(until) {
			start = until
		}
		if e.End.After(start) {
			busy += e.End.Sub(start)
			until = e.End
		}
	}
	return busy
}

// Short is the line as a trace has it: a request is only "METHOD /path", since
// a plan may not know yet which address it goes to. Other lines are as they
// are. An explained line and its event's have equal short lines.
func (l Line) Short() Line {
	rest, isCurl := strings.CutPrefix(l.Text, "curl -sS -X ")
	if l.Kind != LineRequest || !isCurl {
		return l
	}
	method, _, _ := strings.Cut(rest, " ")
	url := strings.TrimSuffix(rest[strings.LastIndex(rest, "://")+len("://"):], "'")
	_, path, _ := strings.Cut(url, "/")
	l.Text = method + " /" + path
	return l
}
