package terminal

import (
	"bytes"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Tall is how an object is printed where its table would be wider than the
// terminal: its name on a line of its own, and below it what there is to
// say, wrapped at words.
type Tall[T any] struct {
	Head   func(T) string
	Detail func(T) string
	Style  func(T) Style // of the detail's first word or words, up to the colon
}

// indent is before each line of a detail.
const indent = "    "

// fits says whether the table of these columns can be printed without a cut.
func fits[T any](s *Stream, o Output, columns []Column[T], items []T) bool {
	widths := make([]int, len(columns))
	for i, c := range columns {
		if !o.NoHeader {
			widths[i] = ansi.StringWidth(c.Name)
		}
		for _, item := range items {
			widths[i] = max(widths[i], ansi.StringWidth(orDash(printable(c.shown(item)))))
		}
	}
	whole := len(gap) * (len(columns) - 1)
	for _, w := range widths {
		whole += w
	}
	return whole <= s.Width()
}

func (l *Tall[T]) print(s *Stream, items []T) error {
	var b bytes.Buffer
	for _, item := range items {
		for i, line := range hanging(printable(l.Head(item)), s.Width(), indent) {
			if i == 0 {
				line = s.Style(Strong, line)
			}
			b.WriteString(line + "\n")
		}
		detail := printable(l.Detail(item))
		word, _, _ := strings.Cut(detail, ":")
		lines := Wrapped(detail, s.Width()-len(indent))
		if len(lines) > 0 && strings.HasPrefix(lines[0], word) && l.Style != nil {
			lines[0] = s.Style(l.Style(item), word) + lines[0][len(word):]
		}
		for _, line := range lines {
			b.WriteString(indent + line + "\n")
		}
	}
	_, err := s.Write(b.Bytes())
	return err
}
