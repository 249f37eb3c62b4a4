package top

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
)

// painter colours a text.
type painter func(terminal.Style, string) string

// around are the lines above and below what is looked at: two, a rule, and the keys.
const around = 4

// room is how many lines there are for what is looked at.
func (m *model) room() int { return max(1, m.height-around-len(m.status())) }

// draw is the screen, a line after the other.
func (m *model) draw(paint painter) []string {
	var body []string
	switch p := m.page(); {
	case m.help:
		body = keys()
	case p != nil:
		if p.raw != nil {
			p.lines = wrapped(p.raw, m.width)
		}
		last := max(0, len(p.lines)-m.room())
		if p.first = min(p.first, last); !p.begin && !p.moved {
			p.first = last
		}
		body = p.lines[p.first:]
	default:
		body = m.table(paint)
	}
	lines := []string{m.head(paint), m.second(paint)}
	lines = append(lines, body[:min(len(body), m.room())]...)
	for len(lines) < 2+m.room() {
		lines = append(lines, "")
	}
	lines = append(lines, paint(terminal.Faint, strings.Repeat("-", m.width)))
	for _, said := range m.status() {
		if m.asked != nil {
			said = paint(terminal.Strong, said)
		}
		lines = append(lines, said)
	}
	return append(lines, paint(terminal.Faint, fit(m.hint(), m.width)))
}

// wrapped has no line that is wider than the screen.
func wrapped(raw []string, width int) (lines []string) {
	for _, text := range raw {
		if ansi.StringWidth(text) <= width {
			lines = append(lines, text)
			continue
		}
		lines = append(lines, terminal.Wrapped(text, width)...)
	}
	return lines
}

// fit is as much of a text as one line has.
func fit(text string, width int) string { return ansi.Truncate(text, max(0, width), "") }

// head has the verdict, and the views.
func (m *model) head(paint painter) string {
	left, plain := "", ""
	if words := strings.Fields(m.verdict); len(words) > 1 { // the sled, and the verdict
		look, known := map[string]terminal.Style{"OK": terminal.Good, "ATTENTION": terminal.Warn}[words[1]]
		if !known {
			look = terminal.Bad
		}
		left, plain = paint(terminal.Strong, words[0])+" "+paint(look, words[1]), words[0]+" "+words[1]
	}
	var titles []string
	for i, v := range views {
		title := strconv.Itoa(i+1) + " " + v.title
		if view(i) == m.view {
			title = "[" + strconv.Itoa(i+1) + "]" + v.title
		}
		titles = append(titles, title)
	}
	right := strings.Join(titles, " ") + "   " + m.now.Format("15:04:05")
	if m.paused {
		right = "paused   " + right
	}
	return left + strings.Repeat(" ", max(1, m.width-len(plain)-len(right))) + fit(right, m.width-len(plain)-1)
}

// second says what of the sled is shown.
func (m *model) second(paint painter) string {
	if m.opened != nil {
		return paint(terminal.Strong, fit("sledctl "+m.opened.title, m.width))
	}
	if m.view != viewVMs {
		if words := views[m.view].words; words != nil {
			return paint(terminal.Strong, fit("sledctl "+strings.Join(words, " "), m.width))
		}
		return ""
	}
	count := map[string]int{}
	for _, i := range m.vms {
		count[i.State]++
	}
	var parts []string
	for _, state := range cli.StatesOf(count) {
		parts = append(parts, fmt.Sprintf("%d %s", count[state], state))
	}
	text := fmt.Sprintf("%d VMs: %s", len(m.vms), strings.Join(parts, ", "))
	switch {
	case len(m.vms) == 0:
		text = "no VM"
	}
	picked := ""
	for _, said := range []struct {
		is   bool
		text string
	}{{m.filter != "", "/filter: " + m.filter}, {m.failed, "only failed"}, {m.sort > 0, "sorted by " + sorts[m.sort]}} {
		if said.is {
			picked += "   " + said.text
		}
	}
	if len(text)+len(picked) > m.width {
		text = fmt.Sprintf("%d VMs", len(m.vms))
	}
	return fit(text+picked, m.width)
}

// status are the lines for what is asked, typed or said: one, or as many as it needs.
func (m *model) status() []string {
	text := m.said
	switch {
	case m.typed != nil:
		text = m.typed.prompt + m.typed.text + "_"
	case m.asked != nil:
		text = m.asked.text() + "   run it? [y/N]"
	}
	if ansi.StringWidth(text) <= m.width {
		return []string{text}
	}
	return terminal.Wrapped(text, m.width)
}

func (m *model) hint() string {
	const all = "enter open  e ensure  s stop  l log  c console  d diff  / filter  ? keys  q quit"
	switch {
	case m.typed != nil:
		return "enter takes it  esc gives up  ^U empties the line"
	case m.asked != nil:
		return "y runs it  any other key does not"
	case m.opened != nil || m.help:
		return "up down pgup pgdn move  esc back  q back"
	case m.view != viewVMs:
		return "up down pgup pgdn move  1-5 views  ? keys  q quit"
	case m.width < len(all):
		return "enter open  ? keys  q quit"
	}
	return all
}

// row is a VM as the table shows it.
type row struct {
	cells []string
	style terminal.Style // of the state
}

// titles are the columns before the reason; the numbers stand on the right.
var titles = []string{"NAME", "STATE", "CPUS", "MEMORY", "ADDRESS", "SINCE"}

func (m *model) row(i cli.Instance) row {
	address, _, _ := strings.Cut(i.Address, "/")
	cells := []string{
		terminal.Printable(i.Name), cli.ShownState(i), strconv.Itoa(i.CPUs), terminal.FormatSize(i.Memory), terminal.Printable(address), cli.ShownSince(m.now, i),
	}
	return row{cells, cli.StateStyle(i)}
}

// table is the VMs around the cursor. A reason is wrapped where it stands; where there is
// no room next to the columns, it stands below its VM.
func (m *model) table(paint painter) []string {
	rows, widths := make([]row, len(m.vms)), make([]int, len(titles))
	for c, title := range titles {
		widths[c] = len(title)
	}
	for i, vm := range m.vms {
		rows[i] = m.row(vm)
		for c, cell := range rows[i].cells {
			widths[c] = max(widths[c], ansi.StringWidth(cell))
		}
	}
	widths = fitting(widths, m.width)
	lines := make([][]string, len(rows))
	for i, r := range rows {
		r.cells = r.cells[:len(widths)]
		lines[i] = m.rowLines(r, m.vms[i], widths, paint)
	}
	var out []string
	if m.trouble != "" { // what was seen before stays below it
		for _, text := range terminal.Wrapped(m.trouble, m.width) {
			out = append(out, paint(terminal.Bad, text))
		}
	}
	m.first = firstSeen(lines, m.first, max(0, m.index()), max(1, m.room()-1-len(out)))
	out = append(out, paint(terminal.Strong, fit(" "+line(titles[:len(widths)], widths)+"  REASON", m.width)))
	for _, l := range lines[min(m.first, len(lines)):] {
		out = append(out, l...)
	}
	return out
}

// fitting are the columns that a line has room for, behind the sign of a row: at least the first two.
func fitting(widths []int, width int) []int {
	used := 1
	for n, w := range widths {
		if used += w + 2; used-2 > width && n >= 2 {
			return widths[:n]
		}
	}
	return widths
}

// firstSeen is the first row to show, so that the row at is seen wholly.
func firstSeen(lines [][]string, first, at, room int) int {
	if at <= first {
		return at
	}
	used := 0
	for i := at; i >= 0; i-- {
		if used += len(lines[i]); used > room {
			return max(first, min(i+1, at))
		}
		if i == first {
			return first
		}
	}
	return first
}

// line is cells next to each other.
func line(cells []string, widths []int) string {
	var b strings.Builder
	for c, cell := range cells {
		space := strings.Repeat(" ", max(0, widths[c]-ansi.StringWidth(cell)))
		if c > 0 {
			b.WriteString("  ")
		}
		if titles[c] == "CPUS" || titles[c] == "MEMORY" {
			b.WriteString(space + cell)
		} else {
			b.WriteString(cell + space)
		}
	}
	return b.String()
}

// narrow is the least width of a reason next to the columns.
const narrow = 16

func (m *model) rowLines(r row, vm cli.Instance, widths []int, paint painter) []string {
	sign := " "
	switch {
	case vm.Name == m.at:
		sign = ">"
	case m.marked[vm.Name]:
		sign = "+"
	}
	text := sign + line(r.cells, widths)
	used := ansi.StringWidth(text) + 2
	if state := r.cells[1]; r.style != terminal.Plain {
		before := 1 + widths[0] + 2
		text = ansi.Cut(text, 0, before) + paint(r.style, state) + ansi.Cut(text, before+ansi.StringWidth(state), used)
	}
	if m.marked[vm.Name] {
		text = paint(terminal.Strong, ansi.Strip(text))
	}
	reason, indent := m.reason(vm), used
	if reason == "" {
		return []string{text}
	}
	if m.width-used < narrow {
		out := []string{text}
		for _, part := range terminal.Wrapped(reason, m.width-5) {
			out = append(out, "     "+part)
		}
		return out
	}
	var out []string
	for n, part := range terminal.Wrapped(reason, m.width-indent) {
		if n == 0 {
			out = append(out, text+"  "+part)
		} else {
			out = append(out, strings.Repeat(" ", indent)+part)
		}
	}
	return out
}

// shared is from how many VMs on a reason stands at the first of them, and where the cursor is.
const shared = 3

// reason is why a VM is as it is.
func (m *model) reason(vm cli.Instance) string {
	alike, first := 0, ""
	for _, other := range m.vms {
		if other.Reason == vm.Reason {
			if alike++; alike == 1 {
				first = other.Name
			}
		}
	}
	if vm.Reason != "" && alike >= shared && vm.Name != first && vm.Name != m.at {
		return "as " + terminal.Printable(first)
	}
	return terminal.Printable(terminal.ShortPools(nil)(vm.Reason))
}

// keys explains the keys.
func keys() []string {
	return strings.Split(strings.Trim(`
1-5, tab           the views: VMs, storage, operations at work, events, log
up down pgup pgdn  move; so do j k g G
enter              open: sledctl instance get; esc goes back
/                  filter as instance list --filter does; esc shows all again
o                  sort by the next column
f                  only those that instance ensure --failed would start
space              mark; a verb is then about all that are marked
e s r x m          ensure, stop, reboot, delete, migrate: the command is shown,
                   and runs when you type y
l d                log, and what differs
L c                follow the log (^C ends it), console (~. leaves it)
p                  pause
w                  write the screen to a file
q                  quit`, "\n"), "\n")
}
