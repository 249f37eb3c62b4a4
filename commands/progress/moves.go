package progress

import (
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/terminal"
)

// Move is a migration on its way: the phases that it has come through. Propolis publishes
// those, and nothing about bytes, so there is no part of a whole to show.
type Move struct {
	Name, To string
	Since    time.Time
	phases   []phase
}

// phase is one that a migration was in since a time.
type phase struct {
	name  string
	since time.Time
}

// Enter takes the phase that a migration is in now; false: it was in that one already.
func (m *Move) Enter(now time.Time, name string) bool {
	if n := len(m.phases); n > 0 && m.phases[n-1].name == name {
		return false
	}
	m.phases = append(m.phases, phase{name, now})
	return true
}

// Plain is the line of a log about the phase that has begun: which, and how long after the
// migration began.
func (m *Move) Plain(now time.Time) string {
	return terminal.Printable(clock(now) + " " + m.Name + " " + m.phase() + " " + Seconds(now.Sub(m.Since)))
}

func (m *Move) phase() string { return m.phases[len(m.phases)-1].name }

// meaning is what the phase does, to the VM before all (propolis lib/propolis/src/migrate). The
// source publishes RamPush once more behind Device, when its VM is paused.
func (m *Move) meaning() string {
	if m.phase() == "RamPush" && slices.ContainsFunc(m.phases, func(p phase) bool { return p.name == "Pause" }) {
		return "memory is sent, the VM is paused"
	}
	return map[string]string{
		"Sync":         "the two Propolis servers agree on the VM",
		"RamPush":      "memory is sent, the VM runs on",
		"Pause":        "the VM is paused",
		"RamPushDirty": "changed memory is sent, the VM is paused",
		"Device":       "devices are sent, the VM is paused",
		"RamPull":      "missing memory is fetched",
		"Server":       "the console's history is sent",
		"Finish":       "the target takes over",
		"Error":        "it has failed",
	}[m.phase()]
}

// Lines are what a terminal shows of one migration: what happens and how long all has taken,
// and below it how long each phase took, the newest if not all fit.
func (m *Move) Lines(now time.Time, width int) []string {
	if len(m.phases) == 0 {
		return nil
	}
	var past []string
	used := 0
	for i, p := range slices.Backward(m.phases) {
		end := now
		if i+1 < len(m.phases) {
			end = m.phases[i+1].since
		}
		text := "  " + p.name + " " + Seconds(end.Sub(p.since))
		if used += ansi.StringWidth(text); used > width {
			break
		}
		past = append(past, text)
	}
	slices.Reverse(past)
	return []string{m.Line(now, width), strings.Join(past, "")}
}

// Line is one migration in one line.
func (m *Move) Line(now time.Time, width int) string {
	if len(m.phases) == 0 {
		return ""
	}
	right := "  " + Seconds(now.Sub(m.Since))
	name, phase, long := terminal.Printable(m.Name), terminal.Printable(m.phase()), m.meaning()
	texts := []string{name + "  " + phase}
	if m.To != "" {
		texts = append(texts, name+" -> "+terminal.Printable(m.To)+"  "+phase)
	}
	if long != "" {
		for _, text := range slices.Clone(texts) {
			texts = append(texts, text+": "+long)
		}
	}
	text := ansi.Truncate(texts[0], max(width-len(right), 0), "…")
	for _, more := range texts {
		if ansi.StringWidth(more)+len(right) <= width && ansi.StringWidth(more) > ansi.StringWidth(text) {
			text = more
		}
	}
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)-len(right))) + right
}

// With are the lines of the board with those of the migrations that are on their way, in at
// most rows lines.
func (b *Board) With(moves []*Move, now time.Time, width, rows int) []string {
	if len(moves) == 1 && !b.OfMany() {
		return moves[0].Lines(now, width)
	}
	lines := b.Lines(now, width, max(rows-len(moves), 1))
	for _, m := range moves {
		if line := m.Line(now, width); line != "" && len(lines) < rows {
			lines = append(lines, line)
		}
	}
	return lines
}
