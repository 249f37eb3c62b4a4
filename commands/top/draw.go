package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
)

// painter colours a text.
type painter func(terminal.Style, string) string

// unpainted is a painter for what is only measured.
func unpainted(_ terminal.Style, text string) string { return text }

// room is how many lines there are for what is looked at.
func (m *model) room() int {
	return max(1, m.height-len(m.above(unpainted))-len(m.below(unpainted)))
}

// above are the lines above what is looked at.
func (m *model) above(paint painter) []string {
	return append([]string{m.head(paint)}, m.second(paint)...)
}

// below are the lines below it.
func (m *model) below(paint painter) []string {
	lines := append([]string{paint(terminal.Faint, strings.Repeat("-", m.width))}, m.status(paint)...)
	return append(lines, paint(terminal.Faint, m.hint()))
}

// draw is the screen, a line after the other.
func (m *model) draw(paint painter) []string {
	lines, below := m.above(paint), m.below(paint)
	var body []string
	switch p := m.page(); {
	case m.help:
		body = keys()
	case p != nil:
		if p.raw != nil {
			p.lines = wrapped(p.raw, m.width)
		}
		body = p.seen(m.room())
	default:
		if !m.still {
			m.drawn = m.table(paint)
		}
		body = m.drawn
	}
	lines = append(lines, body[:min(len(body), m.room())]...)
	for len(lines) < m.height-len(below) {
		lines = append(lines, "")
	}
	return append(lines, below...)
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

// whole is a text in as many lines as it needs, one at least, all in one style: nothing of
// what somebody decides by is cut.
func whole(text string, width int, style terminal.Style, paint painter) (lines []string) {
	for _, line := range wrapped([]string{text}, width) {
		lines = append(lines, paint(style, line))
	}
	return lines
}

// fit is as much of a text as one line has.
func fit(text string, width int) string { return ansi.Truncate(text, max(0, width), "") }

// head has the verdict, and the views.
func (m *model) head(paint painter) string {
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
	name, word, count := cmp.Or(m.afar.Name(), m.verdict.name), m.verdict.word, m.verdict.count()
	plain := strings.TrimSpace(name + " " + word + count)
	if len(plain)+len(right) >= m.width {
		plain, count = strings.TrimSpace(name+" "+word), ""
	}
	look, known := map[string]terminal.Style{"OK": terminal.Good, "ATTENTION": terminal.Warn}[word]
	if !known {
		look = terminal.Bad
	}
	left := ""
	if word != "" {
		left = paint(terminal.Strong, name) + " " + paint(look, word) + count
	}
	return left + strings.Repeat(" ", max(1, m.width-len(plain)-len(right))) + fit(right, m.width-len(plain)-1)
}

// second says what of the sled is shown.
func (m *model) second(paint painter) []string {
	switch {
	case m.opened != nil:
		return whole(m.afar.Typed("sledctl "+m.opened.title), m.width, terminal.Strong, paint)
	case m.view != viewVMs && views[m.view].words != nil:
		return whole(m.text(views[m.view].words), m.width, terminal.Strong, paint)
	case m.view != viewVMs:
		return []string{""}
	}
	count := map[string]int{}
	for _, i := range m.vms {
		count[i.State]++
	}
	var parts []string
	for _, state := range cli.StatesOf(count) {
		parts = append(parts, fmt.Sprintf("%d %s", count[state], state))
	}
	vms := fmt.Sprintf("%d VMs", len(m.vms))
	if (m.filter != "" || m.failed) && m.verdict.vms >= len(m.vms) {
		vms = fmt.Sprintf("%d of %d VMs", len(m.vms), m.verdict.vms)
	}
	text := vms + ": " + strings.Join(parts, ", ")
	if len(m.vms) == 0 {
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
	if ansi.StringWidth(text+picked) > m.width {
		text = vms
	}
	return whole(text+picked, m.width, terminal.Plain, paint)
}

// status are the lines for what is asked, typed or said.
func (m *model) status(paint painter) []string {
	switch {
	case m.typed != nil:
		return strings.Split(ansi.Hardwrap(m.typed.prompt+m.typed.text+"_", max(1, m.width), true), "\n")
	case m.asked != nil:
		return m.question(*m.asked, paint)
	}
	return whole(m.said, m.width, terminal.Plain, paint)
}

// question shows a command, and asks whether it is wanted.
func (m *model) question(c command, paint painter) []string {
	const asks = "run it? [y/N]"
	text := m.text(c.words)
	if line := text + "   " + asks; ansi.StringWidth(line) <= m.width {
		return []string{paint(terminal.Strong, line)}
	}
	return append(whole(text, m.width, terminal.Strong, paint), paint(terminal.Strong, asks))
}

// hint are the keys that matter here; a narrow terminal has room for fewer.
func (m *model) hint() string {
	text := m.hints()
	for ansi.StringWidth(text) > m.width && strings.Contains(text, "  ") {
		entries := strings.Split(text, "  ")
		text = strings.Join(slices.Delete(entries, max(0, len(entries)-3), max(1, len(entries)-2)), "  ") // how one leaves stays
	}
	return fit(text, m.width)
}

func (m *model) hints() string {
	switch {
	case m.typed != nil:
		return "enter takes it  esc gives up  ^U empties the line"
	case m.asked != nil:
		return "y runs it  any other key does not"
	case m.opened != nil || m.help:
		return "up down pgup pgdn move  esc back  q back"
	case m.view != viewVMs && len(m.pages[m.view].items) > 0:
		return "enter open  up down pgup pgdn move  1-5 views  ? keys  q quit"
	case m.view != viewVMs:
		return "up down pgup pgdn move  1-5 views  ? keys  q quit"
	}
	return "enter open  e ensure  s stop  l log  c console  d diff  / filter  ? keys  q quit"
}

// atWork are operations, the longest at work first, as lines of a page, and what can be
// opened in it.
func atWork(now time.Time, all []operation.Holder, width int) (lines []string, items []item) {
	if len(all) == 0 {
		return []string{"no operation is at work"}, nil
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b operation.Holder) int { return a.Since.Compare(b.Since) })
	rows, widths := [][]string{{"OBJECT", "VERB", "FOR", "BY", "STEP"}}, make([]int, 4)
	for _, h := range all {
		step := "-"
		if h.Steps > 0 {
			step = fmt.Sprintf("%d/%d %s", h.At, h.Steps, h.Step)
		}
		if h.Group != 0 {
			step += fmt.Sprintf("; its last command is process %d (%s)", h.Group, h.Command)
		}
		by := fmt.Sprintf("%s, pid %d", cmp.Or(h.User, "-"), h.PID)
		name := terminal.ShortPools(nil)(cmp.Or(h.Name, h.Subject))
		rows = append(rows, []string{name, strings.TrimPrefix(h.Verb, "instance "), terminal.Elapsed(max(0, now.Sub(h.Since)).Truncate(time.Second)), by, step})
	}
	for _, row := range rows {
		for c := range widths {
			row[c] = terminal.Printable(row[c])
			widths[c] = max(widths[c], ansi.StringWidth(row[c]))
		}
	}
	for n, row := range rows {
		text := ""
		for c, w := range widths {
			text += row[c] + strings.Repeat(" ", w-ansi.StringWidth(row[c])+2)
		}
		if n > 0 {
			i := item{line: len(lines), open: []string{"events"}}
			if h := all[n-1]; strings.HasPrefix(h.Subject, "instance/") {
				i.open = []string{"instance", "get", cmp.Or(h.Name, strings.TrimPrefix(h.Subject, "instance/"))}
			}
			items = append(items, i)
		}
		lines = append(lines, hung(text, terminal.Printable(row[4]), width)...)
	}
	return lines, items
}

// hung is a text that begins on a line and is wrapped there, or below it where there is
// no room.
func hung(line, text string, width int) []string {
	used := ansi.StringWidth(line)
	if width-used < narrow {
		out := []string{strings.TrimRight(line, " ")}
		for _, part := range terminal.Wrapped(text, width-5) {
			out = append(out, "     "+part)
		}
		return out
	}
	var out []string
	for n, part := range terminal.Wrapped(text, width-used) {
		if n == 0 {
			out = append(out, line+part)
		} else {
			out = append(out, strings.Repeat(" ", used)+part)
		}
	}
	return out
}

// shared is from how many VMs on a reason stands at the first of them, and where the cursor is.
const shared = 3

// sharing is how many VMs have a reason, and the first of them.
type sharing struct {
	vms   int
	first string
}

// shares are the reasons of VMs.
func shares(vms []cli.Instance) map[string]sharing {
	all := map[string]sharing{}
	for _, vm := range vms {
		s := all[vm.Reason]
		if s.vms++; s.vms == 1 {
			s.first = vm.Name
		}
		all[vm.Reason] = s
	}
	return all
}

// reason is why a VM is as it is.
func (m *model) reason(vm cli.Instance) string {
	if vm.Reason == "" {
		return ""
	}
	if s := m.shares[vm.Reason]; s.vms >= shared && vm.Name != s.first && vm.Name != m.at {
		return "as " + terminal.Printable(s.first)
	}
	return terminal.Printable(terminal.ShortPools(nil)(vm.Reason))
}

// keys explains the keys.
func keys() []string {
	return strings.Split(strings.Trim(`
1-5, tab           the views: VMs, storage, operations at work, events, log
up down pgup pgdn  move; so do j k g G
enter              open: instance get of a VM or of an operation at work,
                   trace of an event; esc goes back
/                  filter as instance list --filter does; esc shows all again
o                  sort by the next column
f                  only those that instance ensure --failed would start
space              mark; a verb is then about all that are marked
e s r x m          ensure, stop, reboot, delete, migrate: the command is shown,
                   and runs when you type y
l d                log, and what differs
as NAME            the reason is that of VM NAME, higher up; the cursor shows it
L c                follow the log (^C ends it), console (~. leaves it)
p                  pause
w                  write the screen to a file
q                  quit`, "\n"), "\n")
}
