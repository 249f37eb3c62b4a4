// Package progress says how far what is being done has come, in an operator's words: the
// VM, which step of how many, what that step does, and for how long.
package progress

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
)

// Board is what is at work, and what it has made. It is not safe for concurrent use.
type Board struct {
	works []*Work // in the order in which they began
	many  *many   // nil: it is about one
}

// Work is one operation.
type Work struct {
	Verb, Name  string
	Since       time.Time
	Step, Steps int // as in plan.Event
	Undoing     bool
	Over        bool          // it has ended
	Done        bool          // and well: what stands was asked for
	Undoes      bool          // what it makes, if it does not come to its end
	Running     []Action      // the last one began last
	Stands      []plan.Action // changes that were made and not undone

	usual func() time.Duration // how long it takes on this sled, once that is asked for
}

// Action is one that is at work.
type Action struct {
	plan.Action
	Since time.Time
	Step  int  // as in plan.Event
	told  bool // by Long
}

// Note takes what has happened.
func (b *Board) Note(now time.Time, e operation.Event) {
	w := b.of(now, e)
	w.Over = e.Kind == operation.Over
	w.Done = w.Over && e.Err == nil
	if w.usual == nil && e.Usual != nil {
		w.usual = sync.OnceValue(e.Usual)
	}
	if b.many != nil {
		b.many.verb = e.Verb
	}
	switch {
	case e.Kind == plan.Finished && e.Action.Change != plan.Wait:
		w.Stands = append(w.Stands, e.Action)
	case e.Kind == plan.Undone:
		w.Stands = slices.DeleteFunc(w.Stands, func(a plan.Action) bool { return a.ID == e.Action.ID && a.Object == e.Action.Object })
	}
	switch e.Kind {
	case plan.Started, plan.Undoing:
		w.Step, w.Steps, w.Undoing, w.Undoes = e.Step, e.Steps, e.Kind == plan.Undoing, e.Undoes
		w.Running = append(w.Running, Action{Action: e.Action, Since: now, Step: e.Step})
	default:
		if i := slices.IndexFunc(w.Running, func(a Action) bool { return a.ID == e.Action.ID }); i >= 0 {
			w.Running = slices.Delete(w.Running, i, i+1)
		}
	}
}

// of is the operation of an event.
func (b *Board) of(now time.Time, e operation.Event) *Work {
	for _, w := range b.works {
		if w.Verb == e.Verb && w.Name == e.Name {
			return w
		}
	}
	w := &Work{Verb: e.Verb, Name: e.Name, Since: now}
	b.works = append(b.works, w)
	return w
}

// All are the operations that there were, in the order in which they began.
func (b *Board) All() []*Work { return b.works }

// AtWork are those of which a step runs.
func (b *Board) AtWork() (at []*Work) {
	for _, w := range b.works {
		if len(w.Running) > 0 {
			at = append(at, w)
		}
	}
	return at
}

// begun is how many have begun and not ended, also where no step of theirs runs just now.
func (b *Board) begun() (n int) {
	for _, w := range b.works {
		if !w.Over {
			n++
		}
	}
	return n
}

// Lines say in at most rows lines, none wider than width columns, what is at work; nothing
// if nothing is. Several operations without a number of all are in one line: that which
// began last, and how many others.
func (b *Board) Lines(now time.Time, width, rows int) []string {
	at := b.AtWork()
	switch {
	case b.many != nil && b.many.verb == "":
		return nil
	case b.many != nil:
		return b.many.lines(now, at, b.begun(), width, rows)
	case len(at) == 0:
		return nil
	case len(at) == 1:
		return []string{at[0].line(now, width)}
	}
	last, more := at[len(at)-1], fmt.Sprintf("  (%d more at work)", len(at)-1)
	return []string{last.line(now, width-len(more)) + more}
}

// line is one operation: its name, the step, how long that and all of it has taken, and how
// long it takes on this sled, where that is known.
func (w *Work) line(now time.Time, width int) string {
	usually := ""
	if w.usual != nil && !w.Undoing {
		if d := w.usual(); d > 0 {
			usually = " of ~" + Seconds(d)
		}
	}
	return w.row(now, width, w.Called(), usually)
}

// row is line with another name in front, and with another end.
func (w *Work) row(now time.Time, width int, called, end string) string {
	a := w.Running[len(w.Running)-1]
	right := fmt.Sprintf("  %6s  %6s%s", Seconds(now.Sub(a.Since)), Seconds(now.Sub(w.Since)), end)
	text := called + "  "
	if w.Undoing {
		text += "undo "
	}
	if w.Steps > 0 {
		text += fmt.Sprintf("%*d/%d  ", len(strconv.Itoa(w.Steps)), w.Step, w.Steps)
	}
	long, short := text+Words(a.Action), text+verbWords(a.Action)
	room := width - len(right)
	if text = long; ansi.StringWidth(text) > room {
		text = short
	}
	if gap := room - ansi.StringWidth(text); gap > 0 {
		text += strings.Repeat(" ", gap)
	}
	return text + right
}

// Called is the name of what the operation is about, or else its verb.
func (w *Work) Called() string {
	if w.Name == "" {
		return w.Verb
	}
	return terminal.ShortPools(nil)(w.Name)
}

// Seconds writes how long something takes that is watched: with a tenth below a minute.
func Seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	}
	return terminal.Elapsed(d)
}
