package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Format is how objects are printed: the value of -o.
type Format string

// The formats.
const (
	FormatAuto  Format = ""      // FormatTable on a terminal, else FormatTSV
	FormatTable Format = "table" // for people
	FormatWide  Format = "wide"  // a table with more columns
	FormatJSON  Format = "json"
	FormatTSV   Format = "tsv"  // one line each, fields separated by tabs
	FormatName  Format = "name" // one name per line
)

// Formats are the values that -o takes.
func Formats() []string {
	return []string{string(FormatTable), string(FormatWide), string(FormatJSON), string(FormatTSV), string(FormatName)}
}

// FormatError is a format that does not exist: a usage error.
type FormatError struct{ Format, Nearest string }

// Error names the right ones.
func (e *FormatError) Error() string {
	return unknownWord("output format", e.Format, e.Nearest, Formats())
}

func (*FormatError) Kind() fault.Kind { return fault.Usage }

// ColumnError is a column that the objects do not have: a usage error.
type ColumnError struct {
	Column, Nearest string
	Known           []string
}

// Error names the right ones.
func (e *ColumnError) Error() string { return unknownWord("column", e.Column, e.Nearest, e.Known) }

func (*ColumnError) Kind() fault.Kind { return fault.Usage }

func unknownWord(what, word, nearest string, known []string) string {
	if nearest != "" {
		return fmt.Sprintf("unknown %s %q: did you mean %q?", what, word, nearest)
	}
	return fmt.Sprintf("unknown %s %q: want one of %s", what, word, strings.Join(known, ", "))
}

// Output is what the flags say about printing objects.
type Output struct {
	Format   Format   // -o
	NoHeader bool     // -H
	Columns  []string // --columns; nil: the usual ones
	// Unconfirmed, if set, says why an object may not be as it is printed: one of
	// JSON has that next to its own keys.
	Unconfirmed func() []string
}

// Table says whether the objects are printed for people, and not for scripts.
func (o Output) Table(s *Stream) bool {
	f, err := o.format(s)
	return err == nil && (f == FormatTable || f == FormatWide)
}

// Screen says whether people get more than a table: nothing was asked for, and it is a
// terminal.
func (o Output) Screen(s *Stream) bool {
	return o.Format == FormatAuto && o.Columns == nil && s.Terminal
}

// Fold breaks lines for a screen, at blanks, and leaves some columns free; it is nil where the
// stream is no screen.
func (o Output) Fold(s *Stream) func(line string, free int) string {
	if !o.Screen(s) {
		return nil
	}
	return func(line string, free int) string { return Folded(line, s.Width()-free) }
}

// format is the one that a stream gets.
func (o Output) format(s *Stream) (Format, error) {
	switch {
	case o.Format == FormatAuto && s.Terminal:
		return FormatTable, nil
	case o.Format == FormatAuto:
		return FormatTSV, nil
	case slices.Contains(Formats(), string(o.Format)):
		return o.Format, nil
	}
	return "", &FormatError{Format: string(o.Format), Nearest: naming.Nearest(string(o.Format), Formats())}
}
