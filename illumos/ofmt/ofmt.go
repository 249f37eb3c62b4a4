// Package ofmt reads what libofmt prints for programs: the output of dladm and ipadm
// with -p and -o. It is pure.
//
// Each line is a row, colons separate its fields, and libofmt puts a backslash before
// each colon and backslash in a field (usr/src/lib/libofmt/common/ofmt.c,
// ofmt_print_field). A row of one field is the exception: libofmt does not escape it,
// so do not read it with this package.
package ofmt

import (
	"fmt"
	"strings"
)

// Rows reads lines of that many fields, two or more. Output that does not end with a
// newline was cut off, which is an error.
func Rows(out []byte, fields int) ([][]string, error) {
	var rows [][]string
	for line := range strings.Lines(string(out)) {
		line, ended := strings.CutSuffix(line, "\n")
		if !ended {
			return nil, fmt.Errorf("line %q does not end", line)
		}
		row, err := Row(line, fields)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Row reads one line of that many fields, without its newline.
func Row(line string, fields int) ([]string, error) {
	row := make([]string, 0, fields)
	var field []byte
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ':':
			row, field = append(row, string(field)), field[:0]
		case c != '\\':
			field = append(field, c)
		case i+1 < len(line) && (line[i+1] == ':' || line[i+1] == '\\'):
			i++
			field = append(field, line[i])
		default:
			return nil, fmt.Errorf("line %q: a backslash before a character that needs none", line)
		}
	}
	row = append(row, string(field))
	if len(row) != fields {
		return nil, fmt.Errorf("line %q: %d fields, not %d", line, len(row), fields)
	}
	return row, nil
}
