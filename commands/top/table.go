package top

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
)

// row is a VM as the table shows it.
type row struct {
	cells []string
	style terminal.Style // of the state
}

// column is one of the table, before the reason.
type column struct {
	title string
	right bool // numbers stand there
	cell  func(cli.Instance) string
}

// roomy is from which width on the address has a column next to what a VM uses.
const roomy = 110

// columns are those that are shown: of what VMs use where the kernel tells it.
func (m *model) columns() []column {
	counted := !m.is.at.IsZero()
	var all []column
	for _, c := range []struct {
		column
		shown bool
	}{
		{column{"NAME", false, func(i cli.Instance) string { return terminal.Printable(i.Name) }}, true},
		{column{"STATE", false, cli.ShownState}, true},
		{column{"CPU%", true, m.cpuOf}, counted},
		{column{"CPUS", true, func(i cli.Instance) string { return strconv.Itoa(i.CPUs) }}, true},
		{column{"MEMORY", true, func(i cli.Instance) string { return terminal.FormatSize(i.Memory) }}, true},
		{column{"NET in/out", true, m.netOf}, counted},
		{column{"ADDRESS", false, func(i cli.Instance) string {
			address, _, _ := strings.Cut(i.Address, "/")
			return terminal.Printable(address)
		}}, !counted || m.width >= roomy},
		{column{"SINCE", false, func(i cli.Instance) string { return cli.ShownSince(m.now, i) }}, true},
	} {
		if c.shown {
			all = append(all, c.column)
		}
	}
	return all
}

func (m *model) row(columns []column, i cli.Instance) row {
	r := row{style: cli.StateStyle(i)}
	for _, c := range columns {
		r.cells = append(r.cells, c.cell(i))
	}
	return r
}

// table is the VMs around the cursor. A reason is wrapped where it stands; where there is
// no room next to the columns, it stands below its VM.
func (m *model) table(paint painter) []string {
	columns := m.columns()
	rows, widths, titles := make([]row, len(m.vms)), make([]int, len(columns)), make([]string, len(columns))
	for c, column := range columns {
		titles[c], widths[c] = column.title, len(column.title)
	}
	for i, vm := range m.vms {
		rows[i] = m.row(columns, vm)
		for c, cell := range rows[i].cells {
			widths[c] = max(widths[c], ansi.StringWidth(cell))
		}
	}
	widths = fitting(widths, m.width)
	columns = columns[:len(widths)]
	laid := make([][]string, len(rows)) // those that are seen: a sled has many VMs
	lines := func(i int) []string {
		if laid[i] == nil {
			rows[i].cells = rows[i].cells[:len(widths)]
			laid[i] = m.rowLines(rows[i], m.vms[i], columns, widths, paint)
		}
		return laid[i]
	}
	var out []string
	if m.trouble != "" { // what was seen before stays below it
		out = whole(m.trouble, m.width, terminal.Bad, paint)
	}
	room := m.room()
	m.first = firstSeen(func(i int) int { return len(lines(i)) }, m.first, max(0, m.index()), max(1, room-1-len(out)))
	out = append(out, paint(terminal.Strong, fit(" "+line(titles[:len(widths)], columns, widths)+"  REASON", m.width)))
	for i := m.first; i < len(rows) && len(out) < room; i++ {
		out = append(out, lines(i)...)
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

// firstSeen is the first row to show, so that the row at is seen wholly. It is given how
// many lines a row has.
func firstSeen(lines func(int) int, first, at, room int) int {
	if at <= first {
		return at
	}
	used := 0
	for i := at; i >= 0; i-- {
		if used += lines(i); used > room {
			return max(first, min(i+1, at))
		}
		if i == first {
			return first
		}
	}
	return first
}

// line is cells next to each other.
func line(cells []string, columns []column, widths []int) string {
	var b strings.Builder
	for c, cell := range cells {
		space := strings.Repeat(" ", max(0, widths[c]-ansi.StringWidth(cell)))
		if c > 0 {
			b.WriteString("  ")
		}
		if columns[c].right {
			b.WriteString(space + cell)
		} else {
			b.WriteString(cell + space)
		}
	}
	return b.String()
}

// narrow is the least width of a reason next to the columns.
const narrow = 16

func (m *model) rowLines(r row, vm cli.Instance, columns []column, widths []int, paint painter) []string {
	sign := " "
	switch {
	case vm.Name == m.at:
		sign = ">"
	case m.marked[vm.Name]:
		sign = "+"
	}
	text := sign + line(r.cells, columns, widths)
	used := ansi.StringWidth(text) + 2
	if state := r.cells[1]; r.style != terminal.Plain {
		before := 1 + widths[0] + 2
		text = ansi.Cut(text, 0, before) + paint(r.style, state) + ansi.Cut(text, before+ansi.StringWidth(state), used)
	}
	if m.marked[vm.Name] {
		text = paint(terminal.Strong, ansi.Strip(text))
	}
	if reason := m.reason(vm); reason != "" {
		return hung(text+"  ", reason, m.width)
	}
	return []string{text}
}
