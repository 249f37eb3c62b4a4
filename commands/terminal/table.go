package terminal

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// The gap between two columns.
const gap = "  "

// writeTable writes a table that fits the width: no line is ever wrapped.
func writeTable[T any](s *Stream, o Output, columns []Column[T], items []T) error {
	var rows [][]string
	if !o.NoHeader {
		rows = append(rows, headings(columns))
	}
	for _, item := range items {
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = orDash(printable(c.shown(item)))
		}
		rows = append(rows, row)
	}
	whole := make([]bool, len(columns))
	for i, c := range columns {
		whole[i] = c.Whole
	}
	fit(rows, whole, s.Width())
	for i, row := range rows {
		for j, c := range columns {
			style := Strong
			if n := i - (len(rows) - len(items)); n >= 0 {
				style = Plain
				if c.Style != nil {
					style = c.Style(items[n])
				}
			}
			row[j] = s.Style(style, row[j])
		}
	}
	return render(s, columns, rows)
}

// Printable is a text of others, of a host command, a guest or a peer, as one
// line that does not move the cursor: its lines are set apart by semicolons, and
// other control characters are question marks.
func Printable(s string) string {
	return printable(strings.NewReplacer("\r\n", "; ", "\n", "; ", "\t", " ").Replace(strings.TrimSpace(s)))
}

// printable keeps what a guest or a log may hold from moving the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s)
}

// short is how far a column is cut before one that should stay whole is.
const short = 8

// fit cuts cells until the table is no wider than width, the widest column
// first, of equals the last; those that should stay whole come behind.
func fit(rows [][]string, whole []bool, width int) {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	over := len(gap)*(len(widths)-1) - width
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := widestOf(widths, whole)
		if widths[widest] == 1 {
			break
		}
		widths[widest]--
	}
	for _, row := range rows {
		for i := range row {
			row[i] = ansi.Truncate(row[i], widths[i], "…")
		}
	}
}

// widestOf is the column that is cut next.
func widestOf(widths []int, whole []bool) int {
	widest, among := 0, false
	for i, w := range widths {
		spared := whole[i] || w <= short
		if !spared && (!among || w >= widths[widest]) {
			widest, among = i, true
		}
	}
	if among {
		return widest
	}
	for i, w := range widths {
		if w >= widths[widest] {
			widest = i
		}
	}
	return widest
}

// render has tablewriter align the cells, and nothing else.
func render[T any](s *Stream, columns []Column[T], rows [][]string) error {
	row := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone},
		Alignment:  tw.CellAlignment{PerColumn: make([]tw.Align, len(columns))},
		Padding:    tw.CellPadding{PerColumn: make([]tw.Padding, len(columns))},
	}
	for i, c := range columns {
		row.Alignment.PerColumn[i] = tw.AlignLeft
		if c.Right {
			row.Alignment.PerColumn[i] = tw.AlignRight
		}
		row.Padding.PerColumn[i] = tw.Padding{Right: gap, Overwrite: true}
	}
	if last := len(columns) - 1; last >= 0 {
		row.Padding.PerColumn[last].Right = ""
	}
	var b bytes.Buffer
	table := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithRowConfig(row),
		tablewriter.WithTrimSpace(tw.Off),
	)
	for _, row := range rows {
		if err := table.Append(row); err != nil {
			return err
		}
	}
	if err := table.Render(); err != nil {
		return err
	}
	var out bytes.Buffer
	for line := range bytes.Lines(b.Bytes()) {
		out.Write(bytes.TrimRight(line, " \n"))
		out.WriteByte('\n')
	}
	_, err := s.Write(out.Bytes())
	return err
}
