package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Follow prints objects one by one, each as it comes: what is printed stays as
// it is. JSON is one object per line, on a terminal too.
func (l List[T]) Follow(s *Stream, o Output) func(T) error {
	var widths []int
	return func(item T) error {
		f, err := o.format(s)
		if err != nil {
			return err
		}
		switch f {
		case FormatJSON:
			data, err := tagged(l.Kind, nil, item)
			if err != nil {
				return err
			}
			_, err = s.Write(append(data, '\n'))
			return err
		case FormatTable, FormatWide:
			columns, err := l.columns(l.asked(o, f))
			if err != nil {
				return err
			}
			var lines string
			if widths == nil {
				widths = make([]int, len(columns))
				if !o.NoHeader {
					lines = padded(widths, headings(columns), func(_ int, cell string) string { return s.Style(Strong, cell) })
				}
			}
			row := make([]string, len(columns))
			for i, c := range columns {
				row[i] = orDash(printable(c.shown(item)))
			}
			lines += padded(widths, row, func(i int, cell string) string {
				if style := columns[i].Style; style != nil {
					return s.Style(style(item), cell)
				}
				return cell
			})
			_, err = s.Write([]byte(lines))
			return err
		}
		err = l.print(s, o, []T{item})
		o.NoHeader = true
		return err
	}
}

// followWidth is how wide a column is at least: the next objects' cells are not
// known yet.
const followWidth = 10

// padded is a line of cells, each as wide as its column, which never gets
// narrower.
func padded(widths []int, cells []string, style func(i int, cell string) string) string {
	var b strings.Builder
	for i, cell := range cells {
		width := ansi.StringWidth(cell)
		b.WriteString(style(i, cell))
		if i == len(cells)-1 {
			break
		}
		widths[i] = max(widths[i], followWidth, width)
		b.WriteString(strings.Repeat(" ", widths[i]-width) + gap)
	}
	return b.String() + "\n"
}
