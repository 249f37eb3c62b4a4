package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// This file prints tables as libofmt does (usr/src/lib/libofmt/common/ofmt.c),
// for dladm and ipadm. A parsable line has its fields in the order asked for,
// with colons between them; in a line of two or more fields a colon or
// backslash of a value is escaped, in a line of one field nothing is.

// Column is a field that a subcommand knows.
type Column[R any] struct {
	Name  string
	Width int
	Value func(R) string // nil: this distribution lacks it
}

// NewColumn is a column of a table.
func NewColumn[R any](name string, width int, value func(R) string) Column[R] {
	return Column[R]{Name: name, Width: width, Value: value}
}

// UnknownField is the value of a field that could not be read.
const UnknownField = "?"

// ofmtRows is how many rows a page has when standard output is no terminal, its
// header among them; the header is repeated on each page.
const ofmtRows = 24

// Table prints rows under the columns that fields names; nil is all of them. With
// wrap, values break at commas when they are too wide. fatal is why ofmt_check ends
// the command: a column that this distribution lacks.
func Table[R any](known []Column[R], fields *string, parsable, wrap bool, rows []R) (out, fatal string) {
	Simulated(fields != nil || !parsable)
	t := &table[R]{wrap: wrap && !parsable}
	for _, c := range known {
		if fields == nil && c.Value != nil {
			t.columns = append(t.columns, c)
		}
	}
	if fields != nil {
		for name := range strings.SplitSeq(*fields, ",") {
			i := slices.IndexFunc(known, func(c Column[R]) bool { return strings.EqualFold(c.Name, name) })
			Simulated(i >= 0 && (parsable || known[i].Value != nil))
			if known[i].Value == nil {
				return "", "unknown output field: `" + name + "'"
			}
			t.columns = append(t.columns, known[i])
		}
	}
	for i, row := range rows {
		if parsable {
			t.printParsable(row)
		} else {
			t.print(i, row)
		}
	}
	return t.out.String(), ""
}

// table is one that is being printed.
type table[R any] struct {
	columns []Column[R]
	wrap    bool
	out     strings.Builder
}

func (t *table[R]) print(i int, row R) {
	values := make([]string, len(t.columns))
	if i%(ofmtRows-1) == 0 {
		for c, column := range t.columns {
			values[c] = column.Name
		}
		t.line(values)
	}
	for c, column := range t.columns {
		values[c] = cmp.Or(column.Value(row), "--")
	}
	for strings.Join(values, "") != "" {
		now, later := slices.Clone(values), make([]string, len(values))
		for c := range now {
			if t.wrap {
				now[c], later[c] = breakAt(now[c], t.columns[c].Width)
			}
		}
		t.line(now)
		values = later
	}
}

func (t *table[R]) printParsable(row R) {
	values := make([]string, len(t.columns))
	for i, c := range t.columns {
		values[i] = c.Value(row)
		if len(t.columns) > 1 && strings.ContainsAny(values[i], `\:`) {
			values[i] = strings.ReplaceAll(strings.ReplaceAll(values[i], `\`, `\\`), ":", `\:`)
		}
	}
	t.out.WriteString(strings.Join(values, ":") + "\n")
}

// line prints one line of columns. A value that is too wide pushes the next ones
// to the right; each of them becomes narrower, as far as its own value allows.
func (t *table[R]) line(values []string) {
	overflow := 0
	for i, c := range t.columns {
		v, width := values[i], c.Width
		switch {
		case i == len(t.columns)-1:
			t.out.WriteString(v)
		case len(v)+overflow >= width:
			overflow += len(v) - width + 1
			t.out.WriteString(v + " ")
		default:
			give := min(overflow, width-len(v))
			overflow -= give
			fmt.Fprintf(&t.out, "%-*s", width-give, v)
		}
	}
	t.out.WriteByte('\n')
}

// breakAt cuts a list at a comma so that its first part fits the width.
func breakAt(v string, width int) (now, later string) {
	items := strings.Split(v, ",")
	for i := range items {
		now = strings.Join(items[:i+1], ",")
		if i+1 < len(items) && len(now)+1+len(items[i+1]) > width {
			return now + ",", strings.Join(items[i+1:], ",")
		}
	}
	return now, ""
}
