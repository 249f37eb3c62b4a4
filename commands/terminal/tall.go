package terminal

import (
	"bytes"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Tall is how an object is printed where its table would be wider than the
// terminal: its name on a line of its own, whole, and below it what there is to
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
		b.WriteString(s.Style(Strong, printable(l.Head(item))) + "\n")
		word, rest, found := strings.Cut(printable(l.Detail(item)), ":")
		if found {
			rest = ":" + rest
		}
		wrapped := ansi.Wordwrap(word+rest, max(s.Width()-len(indent), 1), "")
		if strings.HasPrefix(wrapped, word) && l.Style != nil {
			wrapped = s.Style(l.Style(item), word) + wrapped[len(word):]
		}
		for line := range strings.Lines(wrapped) {
			b.WriteString(indent + strings.TrimRight(line, " \n") + "\n")
		}
	}
	_, err := s.Write(b.Bytes())
	return err
}
