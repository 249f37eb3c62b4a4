package progress

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
)

// long is how long a step takes that a log has a line of.
const long = time.Second

// Long are the lines of a log about the steps that have become long, once each.
func (b *Board) Long(now time.Time) (lines []string) {
	for _, w := range b.AtWork() {
		for i := range w.Running {
			a := &w.Running[i]
			if a.told || now.Sub(a.Since) < long {
				continue
			}
			a.told = true
			lines = append(lines, fmt.Sprintf("%s %s %d/%d %s %s", clock(now), w.Called(), a.Step, w.Steps, a.Action.Step.Verb(), Seconds(now.Sub(a.Since))))
		}
	}
	return lines
}

// Ended is the line of a log about an operation that has ended.
func Ended(now time.Time, called string, took time.Duration, err error) string {
	if err == nil {
		return fmt.Sprintf("%s %s ok %s", clock(now), called, Seconds(took))
	}
	cause, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Sprintf("%s %s FAILED %s %s", clock(now), called, Seconds(took), cause)
}

// Stays is the line that a terminal keeps of an operation that has ended well.
func Stays(e operation.Event) string {
	verb := strings.TrimPrefix(e.Verb, "instance ")
	if e.Name == "" {
		return fmt.Sprintf("%s  ok  %s", verb, Seconds(e.Elapsed))
	}
	return fmt.Sprintf("%s  %s  ok  %s", terminal.ShortPools(nil)(e.Name), verb, Seconds(e.Elapsed))
}

func clock(t time.Time) string { return t.Format(time.TimeOnly) }

// entry is an event, for programs.
type entry struct {
	Time    time.Time      `json:"time"`
	Event   plan.EventKind `json:"event"`
	Verb    string         `json:"verb"`
	Name    string         `json:"name,omitempty"`
	Step    int            `json:"step,omitempty"`
	Steps   int            `json:"steps,omitempty"`
	Action  string         `json:"action,omitempty"`
	Object  string         `json:"object,omitempty"`
	Elapsed int64          `json:"elapsed_ms"`
	Error   string         `json:"error,omitempty"`
}

// JSON is an event in one line.
func JSON(now time.Time, e operation.Event) string {
	line := entry{
		Time: now.UTC(), Event: e.Kind, Verb: e.Verb, Name: e.Name, Step: e.Step, Steps: e.Steps,
		Action: e.Action.ID, Object: e.Action.Object, Elapsed: e.Elapsed.Milliseconds(),
	}
	if e.Err != nil {
		line.Error = e.Err.Error()
	}
	return jsonOf(line)
}

func jsonOf(line entry) string {
	text, err := json.Marshal(line)
	if err != nil { // no value of these kinds cannot be written
		panic(err)
	}
	return string(text)
}

// MoveJSON is the phase that a migration has come to, in one line.
func MoveJSON(now time.Time, verb string, m *Move) string {
	return jsonOf(entry{Time: now.UTC(), Event: "phase", Verb: verb, Name: m.Name, Action: m.phase(), Elapsed: now.Sub(m.Since).Milliseconds()})
}
