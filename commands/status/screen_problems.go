package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/status"
)

// problems prints as many problems as fit into so many lines, and counts the rest;
// room below 1 is for all of them.
func (s *screen) problems(room int) {
	var blocks [][]string
	if s.width >= wide {
		blocks = append(blocks, []string{s.style(terminal.Strong, " #   PROBLEM"+strings.Repeat(" ", s.nextColumn()-len(" #   PROBLEM"))+"NEXT")})
	}
	for i, p := range s.Problems {
		blocks = append(blocks, s.problem(i+1, p))
	}
	used := 0
	for i, block := range blocks {
		left := len(blocks) - i
		need := len(block)
		if left > 1 {
			need++ // for the line that counts the rest
		}
		if s.lines > 0 && used+need > max(room, 2) {
			s.out = append(s.out, fmt.Sprintf("   %s %d more: %s", s.sign(s.Problems[len(s.Problems)-left]), left, s.style(terminal.Strong, s.afar.Typed("sledctl status --problems"))))
			return
		}
		s.out = append(s.out, block...)
		used += len(block)
	}
}

// nextColumn is where the commands begin on a wide terminal.
func (s *screen) nextColumn() int { return s.width * 3 / 5 }

func (s *screen) sign(p status.Problem) string {
	if p.Severity == status.Trouble {
		return s.style(terminal.Bad, p.Severity.Sign())
	}
	return s.style(terminal.Warn, p.Severity.Sign())
}

// problem is one problem, with what to type below it or, where both fit, next to it.
func (s *screen) problem(n int, p status.Problem) []string {
	text := s.short(dated(s.Sled.Time, p))
	next := nextOf(p, s.afar)
	head := fmt.Sprintf("%2d %s ", n, s.sign(p))
	const indent = 5
	if gap := s.nextColumn() - indent - ansi.StringWidth(text); s.width >= wide && gap > 1 && ansi.StringWidth(next) <= s.width-s.nextColumn() {
		return []string{head + text + strings.Repeat(" ", gap) + s.style(terminal.Strong, next)}
	}
	var block []string
	for i, line := range terminal.Wrapped(text, s.width-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		block = append(block, head+line)
	}
	for _, line := range terminal.Wrapped(next, s.width-indent) {
		block = append(block, strings.Repeat(" ", indent)+s.style(terminal.Strong, line))
	}
	return block
}

// dated is the text of a problem with how long ago it began: before the reason, if it has one.
func dated(now time.Time, p status.Problem) string {
	age, comma := "", ", "
	switch {
	case p.Since != nil:
		age = terminal.Ago(now, *p.Since)
	case p.NotBefore != nil:
		age = "less than " + terminal.Bound(now, *p.NotBefore) + " ago"
	default:
		return p.Text
	}
	why := ""
	if p.Reason != "" {
		why, comma = ": "+p.Reason, " "
	}
	return strings.TrimSuffix(p.Text, why) + comma + age + why
}

// nextOf is what to do about a problem: by hand first, then what to type.
func nextOf(p status.Problem, afar cli.Afar) string {
	next := afar.Joined(p.Next)
	if p.Hands != "" {
		return p.Hands + ", then: " + next
	}
	return next
}
