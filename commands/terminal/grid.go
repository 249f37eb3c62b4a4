package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// grid is the cells of a table, as people get to see them.
type grid struct {
	heads  []string // empty ones with -H
	labels []string // the headings, by which a cell below its row is known
	right  []bool   // by column: aligned right
	usual  []string // by column: what is left out below a row; nil: nothing is
	rows   [][]string
	styles [][]Style
	names  []string // by row: what it is about
}

// widths are those of the columns.
func (g *grid) widths() []int {
	widths := make([]int, len(g.heads))
	for _, row := range append([][]string{g.heads}, g.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return widths
}

// over is by how much the grid is wider than the width.
func (g *grid) over(width int) int {
	over := len(gap)*(len(g.heads)-1) - width
	for _, w := range g.widths() {
		over += w
	}
	return over
}

// shared is how many rows have one text before it is printed once, with their names.
const shared = 3

// note makes notes of the texts of a column: of those that several rows share, and
// of all if they do not fit. It returns them in lines.
func (g *grid) note(column, width int) [][]string {
	if column < 0 {
		return nil
	}
	texts := make([]string, len(g.rows))
	for i, row := range g.rows {
		texts[i] = row[column]
	}
	notes := g.mark(column, width, texts, shared)
	if g.over(width) > 0 {
		notes = g.mark(column, width, texts, 1)
		g.heads[column] = ""
		for _, row := range g.rows {
			row[column] = strings.TrimPrefix(row[column], "-")
		}
	}
	if len(g.rows) > 0 && g.heads[column] == "" && !slices.ContainsFunc(g.rows, func(row []string) bool { return row[column] != "" }) {
		g.drop(column)
	}
	return notes
}

// mark puts the number of a note in place of each text that enough rows share.
func (g *grid) mark(column, width int, texts []string, enough int) [][]string {
	rows := map[string][]int{}
	for i, text := range texts {
		rows[text] = append(rows[text], i)
	}
	var notes [][]string
	numbered := map[string]string{}
	for i, text := range texts {
		mark := text
		if text != "-" && len(rows[text]) >= enough {
			mark = numbered[text]
		}
		if mark == "" {
			mark = fmt.Sprintf("[%d]", len(notes)+1)
			numbered[text] = mark
			notes = append(notes, hanging(mark+" "+text+g.sharers(rows[text]), width, indent))
		}
		g.rows[i][column] = mark
	}
	return notes
}

// sharers says how many rows share a note, and which, if they are several.
func (g *grid) sharers(rows []int) string {
	if len(rows) < shared {
		return ""
	}
	var names []string
	for _, i := range rows {
		names = append(names, g.names[i])
	}
	return fmt.Sprintf(" (%d: %s)", len(rows), strings.Join(names, " "))
}

// fold takes columns out until the rest fits. It returns the lines below each row that
// have them, with their headings; what says nothing is left out there.
func (g *grid) fold(width int) [][]string {
	below, whole, labels := make([][]string, len(g.rows)), slices.Clone(g.rows), g.labels
	kept := make([]int, len(g.heads))
	for i := range kept {
		kept[i] = i
	}
	var out []int
	for over := g.over(width); over > 0 && len(kept) > 1; over = g.over(width) {
		next := g.foldable(over)
		out = append(out, kept[next])
		kept = slices.Delete(kept, next, next+1)
		g.drop(next)
	}
	slices.Sort(out)
	for i := range g.rows {
		if name := g.rows[i]; len(name) == 1 && ansi.StringWidth(name[0]) > width {
			lines := hanging(name[0], width, indent)
			name[0], below[i] = lines[0], lines[1:]
		}
		var cells []string
		for _, column := range out {
			if value := whole[i][column]; value == orDash("") || g.usual != nil && value == g.usual[column] {
				continue
			}
			cells = append(cells, strings.TrimSpace(strings.ToLower(labels[column])+" "+whole[i][column]))
		}
		below[i] = append(below[i], flowed(cells, width)...)
	}
	return below
}

// foldable is the column to take out next: the last one that is wide enough for the rest
// to fit without it, else the widest. The first is what a row is about.
func (g *grid) foldable(over int) int {
	widths, widest := g.widths(), len(g.heads)-1
	for i := len(widths) - 1; i > 0; i-- {
		if widths[i]+len(gap) >= over {
			return i
		}
		if widths[i] > widths[widest] {
			widest = i
		}
	}
	return widest
}

// flowed are cells side by side, as many as fit into each line.
func flowed(cells []string, width int) []string {
	var lines []string
	line := ""
	for _, cell := range cells {
		if line != "" && len(indent)+ansi.StringWidth(line+gap+cell) <= width {
			line += gap + cell
			continue
		}
		if line != "" {
			lines = append(lines, indent+line)
		}
		wrapped := Wrapped(cell, width-len(indent))
		for _, part := range wrapped[:len(wrapped)-1] {
			lines = append(lines, indent+part)
		}
		line = wrapped[len(wrapped)-1]
	}
	if line != "" {
		lines = append(lines, indent+line)
	}
	return lines
}

// drop takes a column out. The rows are copied: others may have them.
func (g *grid) drop(column int) {
	g.heads = slices.Delete(slices.Clone(g.heads), column, column+1)
	g.labels = slices.Delete(slices.Clone(g.labels), column, column+1)
	g.right = slices.Delete(slices.Clone(g.right), column, column+1)
	for i := range g.rows {
		g.rows[i] = slices.Delete(slices.Clone(g.rows[i]), column, column+1)
		g.styles[i] = slices.Delete(slices.Clone(g.styles[i]), column, column+1)
	}
}
