package storage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/storage"
)

// checked is what differs, for people: those for an operator first, and below those that one
// remedy is for, what to do and to type.
func checked(drifts []storage.Drift, width int, style func(terminal.Style, string) string) string {
	lines := []string{counted(drifts)}
	ordered := slices.Clone(drifts)
	slices.SortStableFunc(ordered, func(a, b storage.Drift) int { return cmp.Compare(urgency(a), urgency(b)) })
	for i, d := range ordered {
		last := i == len(ordered)-1 || !slices.Equal(d.Said(), ordered[i+1].Said())
		if i == 0 || !slices.Equal(d.Said(), ordered[i-1].Said()) {
			lines = append(lines, "")
		}
		lines = append(lines, aligned(headOf(d), 0, width, style, terminal.Plain)...)
		if d.RepairedBy != repairing {
			lines = append(lines, aligned(reasonOf(d), 4, width, style, terminal.Plain)...)
		}
		for _, said := range d.Said() {
			if last {
				lines = append(lines, aligned(said, 4, width, style, terminal.Strong)...)
			}
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

const repairing = "bootstrap"

// urgency is the place of a difference: what bootstrap repairs comes last.
func urgency(d storage.Drift) int {
	if d.RepairedBy == repairing {
		return 1
	}
	return 0
}

// aligned is a text in lines that begin in this column; none for no text.
func aligned(text string, column, width int, style func(terminal.Style, string) string, with terminal.Style) (lines []string) {
	if text == "" {
		return nil
	}
	for i, line := range terminal.Wrapped(text, width-column) {
		before := strings.Repeat(" ", column)
		if column == 0 && i > 0 {
			before = "    "
		}
		lines = append(lines, before+style(with, line))
	}
	return lines
}

// headOf says what differs.
func headOf(d storage.Drift) string {
	property := ""
	if !slices.Contains([]string{"presence", "health", "contents"}, d.Property) {
		property = d.Property + " is "
	}
	return d.Kind + " " + d.Name + placeOf(d) + ": " + property + cmp.Or(d.Is, "empty") + ", wanted " + cmp.Or(d.Wanted, "empty")
}

// placeOf is where a disk is, or was, and its serial number.
func placeOf(d storage.Drift) string {
	if d.Serial == "" {
		return ""
	}
	return " (" + d.Slot + ", " + d.Serial + ")"
}

// reasonOf says why, without what the head says already.
func reasonOf(d storage.Drift) string {
	reason := d.Reason
	if d.Property == "presence" && d.Serial != "" {
		_, reason, _ = strings.Cut(reason, "with ")
		return "with " + reason
	}
	for _, said := range []string{d.Is + ": ", d.Kind + " is " + d.Is + ": ", d.Kind + " " + d.Name + ": "} {
		reason = strings.TrimPrefix(reason, said)
	}
	if reason == d.Property+" is "+d.Is+", wanted "+d.Wanted {
		return ""
	}
	return reason
}
