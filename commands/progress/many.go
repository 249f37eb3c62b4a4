package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// many is a verb on many instances.
type many struct {
	verb   string // empty: none has begun
	of     int    // instances
	since  time.Time
	ended  []time.Duration // how long each took that has ended
	failed []failure
}

// failure is why some were not done.
type failure struct {
	cause string
	names []string
}

// Begin says that a verb is done with so many instances. The operations tell which.
func (b *Board) Begin(now time.Time, of int) { b.many = &many{of: of, since: now} }

// End takes how it went with one of them.
func (b *Board) End(name string, took time.Duration, err error) {
	m := b.many
	m.ended = append(m.ended, took)
	for _, w := range b.works {
		w.Over = w.Over || w.Name == name
	}
	if err == nil {
		return
	}
	cause, _, _ := strings.Cut(err.Error(), "\n")
	for i := range m.failed {
		if m.failed[i].cause == cause {
			m.failed[i].names = append(m.failed[i].names, name)
			return
		}
	}
	m.failed = append(m.failed, failure{cause, []string{name}})
}

// OfMany says whether a verb is done with many instances.
func (b *Board) OfMany() bool { return b.many != nil }

// Finish is the last of a verb on many.
func (b *Board) Finish() { b.many = nil }

// lines are the counts, those at work that began first, and why others failed.
func (m *many) lines(now time.Time, at []*Work, begun, width, rows int) []string {
	lines := append([]string{m.head(now, begun, width)}, m.atWork(now, at, width, max(1, rows-1-len(m.failed)))...)
	for _, f := range m.failed {
		lines = append(lines, fmt.Sprintf("FAILED %s: %s", strings.Join(f.names, ", "), f.cause))
	}
	return lines
}

// head counts: "ensure   12 of 33 done, 8 at work, 13 wait, 2 failed   9.1s  ~14s left".
func (m *many) head(now time.Time, at, width int) string {
	failed := 0
	for _, f := range m.failed {
		failed += len(f.names)
	}
	text := fmt.Sprintf("%s   %d of %d done, %d at work, %d wait", m.verb, len(m.ended)-failed, m.of, at, m.waiting(at))
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	right := "  " + Seconds(now.Sub(m.since))
	if left := m.left(at); left > 0 {
		right += fmt.Sprintf("  ~%s left", left)
	}
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)-len(right))) + right
}

// waiting is how many are not begun while so many are at work.
func (m *many) waiting(begun int) int { return max(0, m.of-len(m.ended)-begun) }

// left is how long the others take, as those that have ended: 0, until four have.
func (m *many) left(at int) time.Duration {
	if len(m.ended) < 4 || at == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(m.ended))
	rounds := float64(m.of-len(m.ended)) / float64(at)
	return time.Duration(rounds * float64(sorted[len(sorted)/2])).Round(time.Second)
}

// atWork has a row for each, or for as many as there is room for.
func (m *many) atWork(now time.Time, at []*Work, width, rows int) (lines []string) {
	column := 0
	for _, w := range at {
		column = max(column, ansi.StringWidth(w.Called()))
	}
	for i, w := range at {
		if i == rows-1 && len(at) > rows {
			return append(lines, fmt.Sprintf("  (%d more at work)", len(at)-i))
		}
		lines = append(lines, w.row(now, width, fmt.Sprintf("  %-*s", column, w.Called()), ""))
	}
	return lines
}
