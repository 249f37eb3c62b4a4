package terminal

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// The gap between two columns.
const gap = "  "

// writeTable writes a table that fits the width, and cuts nothing. What
// does not fit next to the rest stands below its row, and a Note below the table.
func (l List[T]) writeTable(s *Stream, o Output, columns []Column[T], items []T) error {
	g := grid{heads: headings(columns), labels: headings(columns)}
	for _, item := range items {
		row, styles := make([]string, len(columns)), make([]Style, len(columns))
		for i, c := range columns {
			row[i] = orDash(printable(c.shown(item)))
			if c.Style != nil {
				styles[i] = c.Style(item)
			}
		}
		g.rows, g.styles, g.names = append(g.rows, row), append(g.styles, styles), append(g.names, printable(l.Name(item)))
	}
	for _, c := range columns {
		g.right, g.usual = append(g.right, c.Right), append(g.usual, c.Usual)
	}
	if o.NoHeader {
		g.heads = make([]string, len(columns))
	}
	notes := g.note(slices.IndexFunc(columns, func(c Column[T]) bool { return c.Note }), s.Width())
	folded := g.fold(s.Width())
	lines, err := g.render(s, o.NoHeader)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if l.Summary != "" && !o.NoHeader {
		summary := []string{l.Summary}
		if ansi.StringWidth(l.Summary) > s.Width() {
			summary = hanging(l.Summary, s.Width(), indent)
		}
		out.WriteString(strings.Join(summary, "\n") + "\n\n")
	}
	if !o.NoHeader {
		out.WriteString(lines[0] + "\n")
		lines = lines[1:]
	}
	for i, line := range lines {
		out.WriteString(line + "\n")
		for _, below := range folded[i] {
			out.WriteString(below + "\n")
		}
	}
	if len(notes) > 0 {
		out.WriteByte('\n')
	}
	for _, note := range notes {
		out.WriteString(strings.Join(note, "\n") + "\n")
	}
	_, err = s.Write(out.Bytes())
	return err
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

// render has tablewriter align the cells, and nothing else: a line for each row.
func (g *grid) render(s *Stream, noHeader bool) ([]string, error) {
	row := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone},
		Alignment:  tw.CellAlignment{PerColumn: make([]tw.Align, len(g.right))},
		Padding:    tw.CellPadding{PerColumn: make([]tw.Padding, len(g.right))},
	}
	for i, right := range g.right {
		row.Alignment.PerColumn[i] = tw.AlignLeft
		if right {
			row.Alignment.PerColumn[i] = tw.AlignRight
		}
		row.Padding.PerColumn[i] = tw.Padding{Right: gap, Overwrite: true}
	}
	if last := len(g.right) - 1; last >= 0 {
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
	for _, row := range g.styled(s, noHeader) {
		if err := table.Append(row); err != nil {
			return nil, err
		}
	}
	if err := table.Render(); err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return lines, nil
}

// styled are the rows, and before them the headings, with their colours.
func (g *grid) styled(s *Stream, noHeader bool) [][]string {
	var rows [][]string
	if !noHeader {
		heads := make([]string, len(g.heads))
		for i, head := range g.heads {
			heads[i] = s.Style(Strong, head)
		}
		rows = append(rows, heads)
	}
	for i, row := range g.rows {
		cells := make([]string, len(row))
		for j, cell := range row {
			cells[j] = s.Style(g.styles[i][j], cell)
		}
		rows = append(rows, cells)
	}
	return rows
}
