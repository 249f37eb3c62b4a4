package terminal

import (
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Style is a meaning that colour supports. Colour never carries it alone.
type Style int

// The styles.
const (
	Plain  Style = iota
	Good         // running, created
	Warn         // changed, degraded
	Bad          // failed, removed
	Strong       // headings, names
	Faint        // what matters less
)

// newRenderer has its profile set, and uses only the sixteen colours that every
// terminal's own theme keeps readable on its background.
func newRenderer(w io.Writer, color bool) *lipgloss.Renderer {
	profile := termenv.Ascii
	if color {
		profile = termenv.ANSI
	}
	r := lipgloss.NewRenderer(w, termenv.WithProfile(profile))
	r.SetColorProfile(profile)
	r.SetHasDarkBackground(true) // said, so that the terminal is never asked
	return r
}

// Style colours text, if the stream has colours. Lines are coloured one by
// one, and no others are added.
func (s *Stream) Style(style Style, text string) string {
	if !s.Color || style == Plain || text == "" {
		return text
	}
	of := s.styles.NewStyle().TabWidth(lipgloss.NoTabConversion)
	switch style {
	case Good:
		of = of.Foreground(lipgloss.Color("2"))
	case Warn:
		of = of.Foreground(lipgloss.Color("3"))
	case Bad:
		of = of.Foreground(lipgloss.Color("1"))
	case Strong:
		of = of.Bold(true)
	case Faint:
		of = of.Faint(true)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = of.Render(line)
		}
	}
	return strings.Join(lines, "\n")
}
