package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/sledctl/sledctl/illumos/naming"
)

// APIVersion stands in every JSON document that is printed.
const APIVersion = "sledctl/v1"

// List is how objects of one kind are printed.
type List[T any] struct {
	Kind    string // "Instance"; a list of them is an InstanceList
	Name    func(T) string
	Columns []Column[T]
	// Tall, if set, prints the list where its usual columns do not fit the
	// terminal: for names too long to stand next to anything.
	Tall *Tall[T]
	// Table are the columns of a table, and Wide those of a wide one, if they are others
	// than the usual ones, which scripts get.
	Table, Wide []string
	// Summary, if set, stands above a table.
	Summary string
	// Ledger, if set, is what ledger the list was made from: it stands in its
	// JSON.
	Ledger any
}

// Column is one column of a table.
type Column[T any] struct {
	Name  string // lower case: the word in --columns
	Value func(T) string
	// Human, if set, is what people get instead of Value: "3h ago" for a time
	// that scripts get in RFC 3339.
	Human func(T) string
	Style func(T) Style // nil: Plain
	Right bool          // aligned right, as numbers are
	Extra bool          // only if asked for
	// Formerly, if set, is an earlier Name, which --columns takes too.
	Formerly string
	// Note is for sentences: one that several rows share is printed once, below the
	// table, and so are all if the table does not fit.
	Note bool
	// Usual is a value that says so little that it is left out below a row, where the column does
	// not fit; so is an empty one.
	Usual string
}

// shown is what people get to see.
func (c Column[T]) shown(item T) string {
	if c.Human != nil {
		return c.Human(item)
	}
	return c.Value(item)
}

// Check says whether the objects can be printed so: a *FormatError or a
// *ColumnError, before anything has been done.
func (l List[T]) Check(o Output) error {
	if _, err := o.format(&Stream{}); err != nil {
		return err
	}
	_, err := l.columns(o.Columns)
	return err
}

// Print prints a list.
func (l List[T]) Print(s *Stream, o Output, items []T) error {
	if f, err := o.format(s); err != nil || f != FormatJSON {
		return l.print(s, o, items)
	}
	if items == nil {
		items = []T{}
	}
	return writeJSON(s, struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Ledger     any    `json:"ledger,omitempty"`
		Items      []T    `json:"items"`
	}{APIVersion, l.Kind + "List", l.Ledger, items})
}

// PrintOne prints a single object: in JSON without a list around it.
func (l List[T]) PrintOne(s *Stream, o Output, item T) error {
	if f, err := o.format(s); err != nil || f != FormatJSON {
		return l.print(s, o, []T{item})
	}
	var doubts []string
	if o.Unconfirmed != nil {
		doubts = o.Unconfirmed()
	}
	object, err := tagged(l.Kind, doubts, item)
	if err != nil {
		return err
	}
	return writeJSON(s, object)
}

// tagged puts apiVersion and kind, and what is unconfirmed, before the object's
// own keys.
func tagged(kind string, doubts []string, item any) (json.RawMessage, error) {
	own, err := marshal(item)
	if err != nil {
		return nil, err
	}
	rest, isObject := bytes.CutPrefix(own, []byte("{"))
	if !isObject {
		return nil, fmt.Errorf("%s is printed as JSON, but is not an object", kind)
	}
	head, err := marshal(struct {
		APIVersion  string   `json:"apiVersion"`
		Kind        string   `json:"kind"`
		Unconfirmed []string `json:"unconfirmed,omitempty"`
	}{APIVersion, kind, doubts})
	if err != nil {
		return nil, err
	}
	head = bytes.TrimSuffix(head, []byte("}"))
	if !bytes.Equal(rest, []byte("}")) {
		head = append(head, ',')
	}
	return append(head, rest...), nil
}

// marshal leaves < and > as they are: nothing here is HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// writeJSON indents for people only.
func writeJSON(s *Stream, v any) error {
	data, err := marshal(v)
	if err != nil {
		return err
	}
	if s.Terminal {
		var b bytes.Buffer
		if err := json.Indent(&b, data, "", "  "); err != nil {
			return err
		}
		data = b.Bytes()
	}
	_, err = s.Write(append(data, '\n'))
	return err
}

// print is for what is not JSON.
func (l List[T]) print(s *Stream, o Output, items []T) error {
	f, err := o.format(s)
	if err != nil {
		return err
	}
	columns, err := l.columns(l.asked(o, f))
	if err != nil {
		return err
	}
	switch f {
	case FormatName:
		return writeLines(s, items, l.Name)
	case FormatTSV:
		return writeTSV(s, o, columns, items)
	}
	if l.Tall != nil && o.Columns == nil && f != FormatWide && !fits(s, o, columns, items) {
		return l.Tall.print(s, items)
	}
	return l.writeTable(s, o, columns, items)
}

// asked are the columns to print; nil: the usual ones.
func (l List[T]) asked(o Output, f Format) []string {
	switch {
	case o.Columns != nil:
		return o.Columns
	case f == FormatTable:
		return l.Table
	case f == FormatWide && l.Wide != nil:
		return l.Wide
	case f == FormatWide:
		var all []string
		for _, c := range l.Columns {
			all = append(all, c.Name)
		}
		return all
	}
	return nil
}

// columns are those asked for, or the usual ones.
func (l List[T]) columns(asked []string) ([]Column[T], error) {
	var usual []Column[T]
	var known []string
	byName := map[string]Column[T]{}
	for _, c := range l.Columns {
		known = append(known, c.Name)
		byName[c.Name] = c
		if c.Formerly != "" {
			byName[c.Formerly] = c
		}
		if !c.Extra {
			usual = append(usual, c)
		}
	}
	if asked == nil {
		return usual, nil
	}
	if len(asked) == 0 {
		return nil, &ColumnError{Known: known}
	}
	var columns []Column[T]
	for _, name := range asked {
		c, ok := byName[strings.ToLower(name)]
		if !ok {
			return nil, &ColumnError{Column: name, Nearest: naming.Nearest(strings.ToLower(name), known), Known: known}
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func writeLines[T any](w io.Writer, items []T, line func(T) string) error {
	b := bufio.NewWriter(w)
	for _, item := range items {
		b.WriteString(line(item))
		b.WriteByte('\n')
	}
	return b.Flush()
}

// writeTSV writes "-" for what is empty, so that each field is there for a
// shell's read, and escapes what would break a line or field.
func writeTSV[T any](w io.Writer, o Output, columns []Column[T], items []T) error {
	b := bufio.NewWriter(w)
	if !o.NoHeader {
		b.WriteString(strings.Join(headings(columns), "\t") + "\n")
	}
	for _, item := range items {
		for i, c := range columns {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(orDash(escaped(c.Value(item))))
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}

// escaped is a field of tab-separated values: without what would break a line or
// field, or move the cursor of the terminal that a pipe ends at.
func escaped(s string) string {
	plain := 0 // most fields are
	for plain < len(s) && s[plain] >= ' ' && s[plain] <= '~' && s[plain] != '\\' {
		plain++
	}
	if plain == len(s) || !strings.ContainsFunc(s, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func headings[T any](columns []Column[T]) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = strings.ToUpper(c.Name)
	}
	return names
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
