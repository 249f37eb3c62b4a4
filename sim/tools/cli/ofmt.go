package cli

import (
	"fmt"
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
	Value func(R) string // UnknownField: could not be read
}

// NewColumn is a column of a table.
func NewColumn[R any](name string, width int, value func(R) string) Column[R] {
	return Column[R]{Name: name, Width: width, Value: value}
}

// UnknownField is the value of a field that could not be read.
const UnknownField = "?"

// ofmtRows is how many rows a page has when standard output is no terminal;
// the header is repeated on each page.
const ofmtRows = 24

// Table is an open table.
type Table[R any] struct {
	columns  []Column[R]
	parsable bool
	Wrap     bool // values break at commas when they are too wide
	rows     int
	Out      strings.Builder
}

// OpenTable picks the columns. A nil fields is the default, all of them; the
// error is ofmt_check's, fatal or a warning.
func OpenTable[R any](known []Column[R], fields *string, parsable bool) (t *Table[R], fatal, warning string) {
	t = &Table[R]{parsable: parsable}
	all := fields == nil || strings.EqualFold(*fields, "all")
	switch {
	case parsable && (fields == nil || *fields == ""):
		return nil, "output fields must be specified in parsable mode", ""
	case parsable && all:
		return nil, "output field `all' invalid in parsable mode", ""
	case all:
		t.columns = known
		return t, "", ""
	}
	var bad []string
	for _, name := range strings.FieldsFunc(*fields, func(r rune) bool { return r == ',' }) {
		if c, ok := findColumn(known, name); ok {
			t.columns = append(t.columns, c)
		} else {
			bad = append(bad, " `"+name+"'")
		}
	}
	switch text := "unknown output field" + ofmtPlural(bad) + ":" + strings.Join(bad, ""); {
	case len(t.columns) == 0:
		return nil, "no valid output fields", ""
	case len(bad) > 0 && parsable:
		return nil, text, ""
	case len(bad) > 0:
		return t, "", "ignoring " + text
	}
	return t, "", ""
}

func ofmtPlural(list []string) string {
	if len(list) > 1 {
		return "s"
	}
	return ""
}

func findColumn[R any](known []Column[R], name string) (Column[R], bool) {
	for _, c := range known {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return Column[R]{}, false
}

// Print adds a row.
func (t *Table[R]) Print(row R) {
	if t.parsable {
		t.printParsable(row)
		return
	}
	if t.rows%ofmtRows == 0 {
		t.line(func(c Column[R]) string { return c.Name })
		t.rows++
	}
	t.rows++
	rest := make([]string, len(t.columns))
	t.line(func(c Column[R]) string {
		v := c.Value(row)
		if v == "" {
			v = "--"
		}
		if t.Wrap {
			v, rest[t.index(c.Name)] = breakAt(v, c.Width)
		}
		return v
	})
	for strings.Join(rest, "") != "" {
		t.line(func(c Column[R]) (v string) {
			i := t.index(c.Name)
			v, rest[i] = breakAt(rest[i], c.Width)
			return v
		})
	}
}

func (t *Table[R]) index(name string) int {
	for i, c := range t.columns {
		if c.Name == name {
			return i
		}
	}
	return 0
}

func (t *Table[R]) printParsable(row R) {
	values := make([]string, len(t.columns))
	for i, c := range t.columns {
		values[i] = c.Value(row)
		if len(t.columns) > 1 {
			values[i] = strings.ReplaceAll(strings.ReplaceAll(values[i], `\`, `\\`), ":", `\:`)
		}
	}
	t.Out.WriteString(strings.Join(values, ":") + "\n")
}

// line prints one line of columns. A value that is too wide pushes the next
// ones to the right, which give way as far as their own width allows.
func (t *Table[R]) line(value func(Column[R]) string) {
	overflow := 0
	for i, c := range t.columns {
		v, width := value(c), c.Width
		switch {
		case i == len(t.columns)-1:
			t.Out.WriteString(v)
		case len(v)+overflow >= width:
			overflow += len(v) - width + 1
			t.Out.WriteString(v + " ")
		default:
			give := min(overflow, width-len(v))
			overflow -= give
			fmt.Fprintf(&t.Out, "%-*s", width-give, v)
		}
	}
	t.Out.WriteByte('\n')
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
