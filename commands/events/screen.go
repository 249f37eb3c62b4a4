package events

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/events"
)

// kind is that of an event in JSON.
const kind = "Event"

func eventList() terminal.List[events.Event] {
	type column = terminal.Column[events.Event]
	return terminal.List[events.Event]{Kind: kind, Name: func(v events.Event) string { return v.ID }, Columns: []column{
		{Name: "time", Value: func(v events.Event) string { return v.Start.Format(time.RFC3339) }},
		{Name: "who", Value: func(v events.Event) string { return v.By.User }},
		{Name: "via", Value: func(v events.Event) string { return string(v.By.Via) }},
		{Name: "verb", Value: func(v events.Event) string { return v.Verb }},
		{Name: "object", Value: func(v events.Event) string { return v.Object.Name }},
		{Name: "result", Value: func(v events.Event) string { return string(v.Result) }},
		{Name: "exit", Value: func(v events.Event) string { return strconv.Itoa(v.Exit) }, Right: true},
		{Name: "took_ms", Value: tookMillis, Right: true},
		{Name: "changed", Value: func(v events.Event) string { return v.Text(true) }},
		{Name: "error", Value: func(v events.Event) string { return v.Error }},
		{Name: "id", Value: func(v events.Event) string { return v.ID }},
	}}
}

func tookMillis(v events.Event) string {
	took, known := v.Took()
	if !known {
		return ""
	}
	return strconv.FormatInt(took.Milliseconds(), 10)
}

// screen is events as people see them. It is pure.
type screen struct {
	width int
	whole bool // with what differs from one incarnation to the next
	style func(terminal.Style, string) string
	zone  *time.Location // of the clock times
	now   time.Time
	short func(string) string // shortens the names of pools
}

// wide is from which width on a line has the date, the way and the id.
const wide = 120

func screenOf(e *cli.Env) screen {
	return screen{width: e.Streams.Out.Width(), whole: e.Output.Format == terminal.FormatWide, style: e.Streams.Out.Style, zone: e.Now().Location(), now: e.Now()}
}

// what is the verb, without the word that stands for most.
func what(v events.Event) string { return strings.TrimPrefix(v.Verb, "instance ") }

func (s screen) text(all []events.Event) string {
	if len(all) == 0 {
		return "no event\n"
	}
	head, rows := s.rows(all)
	for _, r := range rows {
		head = append(head, r.Lines...)
	}
	return strings.Join(head, "\n") + "\n"
}

// Row is an event as people see it.
type Row struct {
	ID    string
	Lines []string
	Main  int // the line that has the time; the day may stand above it
}

// rows are the events, below the lines of the head.
func (s screen) rows(all []events.Event) (head []string, shown []Row) {
	var pools []string
	for _, v := range all {
		pools = append(pools, terminal.PoolNames(v.Object.Name+" "+v.Error+" "+v.Text(true))...)
	}
	slices.Sort(pools)
	s.short = terminal.ShortPools(slices.Compact(pools))
	heads := []string{"TIME", "WHO", "WHAT", "OBJECT", "RESULT", "TOOK"}
	if s.width >= wide {
		heads = []string{"TIME", "WHO", "VIA", "WHAT", "OBJECT", "RESULT", "TOOK"}
	}
	rows := [][]string{heads}
	for _, v := range all {
		rows = append(rows, s.cells(v))
	}
	widths := make([]int, len(heads))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	for i, v := range all {
		r := Row{ID: v.ID}
		if s.width < wide && s.newDay(all, i) {
			r.Lines, r.Main = append(r.Lines, s.style(terminal.Faint, v.Start.In(s.zone).Format(time.DateOnly))), 1
		}
		r.Lines = append(r.Lines, s.line(rows[i+1], widths, styleOf(v), orDash(s.short(terminal.Printable(v.Text(s.whole)))), orDash(idOf(v)))...)
		if v.Error != "" {
			r.Lines = append(r.Lines, s.below(s.short(terminal.Printable(v.Error)), widths)...)
		}
		shown = append(shown, r)
	}
	return s.line(heads, widths, terminal.Plain, "CHANGED", "ID"), shown
}

// below is text below a line: at the column CHANGED, where that has room, else indented.
func (s screen) below(text string, widths []int) []string {
	by := indent
	if at := sum(widths); s.width >= wide && s.width-at >= leastRoom {
		by = at
	}
	lines := terminal.Wrapped(text, s.width-by)
	for i := range lines {
		lines[i] = strings.Repeat(" ", by) + lines[i]
	}
	return lines
}

// sum is how wide the columns are together, each with the gap behind it.
func sum(widths []int) (all int) {
	for _, width := range widths {
		all += width + 2
	}
	return all
}

// idOf are the digits of an id that sledctl trace takes; empty: it has none.
func idOf(v events.Event) string {
	id, _, _ := strings.Cut(v.ID, "-")
	return id
}

// idWidth is how wide a column of them is.
const idWidth = 8

// leastRoom is as little as the column CHANGED has.
const leastRoom = 20

// indent is how far what stands below a line is indented.
const indent = 10

// newDay reports whether the n-th event is of another day than the one before it, or, of
// the first, than today.
func (s screen) newDay(all []events.Event, n int) bool {
	before := s.now
	if n > 0 {
		before = all[n-1].Start
	}
	return before.In(s.zone).Format(time.DateOnly) != all[n].Start.In(s.zone).Format(time.DateOnly)
}

func (s screen) cells(v events.Event) []string {
	took := "-"
	if d, known := v.Took(); known {
		took = terminal.Elapsed(d)
	}
	at := v.Start.In(s.zone)
	who, object := orDash(terminal.Printable(v.By.User)), orDash(s.short(terminal.Printable(v.Object.Name)))
	if s.width < wide {
		return []string{at.Format(time.TimeOnly), who, what(v), object, resultOf(v), took}
	}
	if v.By.From != "" {
		who += " (" + terminal.Printable(v.By.From) + ")"
	}
	return []string{at.Format(time.DateTime), who, orDash(string(v.By.Via)), what(v), object, resultOf(v), took}
}

// resultOf is a result as people see it: what went wrong is upper case.
func resultOf(v events.Event) string {
	switch v.Result {
	case operation.Failed, operation.Interrupted:
		return fmt.Sprintf("FAILED %d", v.Exit)
	case events.Died:
		return "DIED"
	case events.Running:
		return fmt.Sprintf("running (pid %d)", v.PID)
	}
	return string(v.Result)
}

func styleOf(v events.Event) terminal.Style {
	switch {
	case v.Bad():
		return terminal.Bad
	case v.Result == operation.Done:
		return terminal.Good
	}
	return terminal.Plain
}

// line is a row with what changed next to it, or below where that has no room, and with the
// id where lines are wide.
func (s screen) line(cells []string, widths []int, style terminal.Style, changed, id string) []string {
	var plain, shown strings.Builder
	for i, cell := range cells {
		pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2)
		plain.WriteString(cell + pad)
		if i == len(cells)-2 {
			cell = s.style(style, cell)
		}
		shown.WriteString(cell + pad)
	}
	used, end := ansi.StringWidth(plain.String()), 0
	if s.width >= wide {
		end = 2 + idWidth
	}
	room := s.width - used - end
	var lines []string
	switch {
	case room < 0: // a name is too long to stand next to anything
		return hung(terminal.Wrapped(strings.Join(append(strings.Fields(plain.String()), changed, id), "  "), s.width-indent), "", indent)
	case room < leastRoom && changed != "CHANGED" && changed != "-":
		lines = append([]string{strings.TrimRight(shown.String(), " ")}, indented(terminal.Wrapped(changed, s.width-indent))...)
	case room < leastRoom:
		lines = []string{strings.TrimRight(shown.String(), " ")}
	default:
		lines = hung(terminal.Wrapped(changed, room), shown.String(), used)
	}
	if end > 0 {
		lines[0] += strings.Repeat(" ", max(0, s.width-idWidth-ansi.StringWidth(lines[0]))) + id
	}
	return lines
}

// hung is lines of which the first one stands behind a beginning, and the others below it.
func hung(lines []string, first string, by int) []string {
	for i := range lines {
		if i == 0 {
			lines[i] = first + lines[i]
		} else {
			lines[i] = strings.Repeat(" ", by) + lines[i]
		}
	}
	return lines
}

func indented(lines []string) []string {
	for i := range lines {
		lines[i] = strings.Repeat(" ", indent) + lines[i]
	}
	return lines
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
