// Package ofmt reads what libofmt prints for programs: the output of dladm and ipadm
// with -p and -o. It is pure.
//
// Each line is a row, colons separate its fields, and libofmt puts a backslash before
// each colon and backslash in a field (usr/src/lib/libofmt/common/ofmt.c,
// ofmt_print_field). A row of one field is the exception: libofmt does not escape it,
// so do not read it with this package.
package ofmt

import (
	"bytes"
	"fmt"
	"strings"
)

// Rows reads lines of that many fields, two or more. Output that does not end with a
// newline was cut off, which is an error.
func Rows(out []byte, fields int) ([][]string, error) {
	text, lines := string(out), bytes.Count(out, []byte{'\n'})
	rows, all := make([][]string, 0, lines), make([]string, 0, lines*fields) // at once: a sled has thousands
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		if !ended {
			return nil, fmt.Errorf("line %q does not end", line)
		}
		row, err := appendRow(all[len(all):], line, fields)
		if err != nil {
			return nil, err
		}
		rows, all = append(rows, row), all[:len(all)+fields]
	}
	return rows, nil
}

// Row reads one line of that many fields, without its newline.
func Row(line string, fields int) ([]string, error) {
	return appendRow(make([]string, 0, fields), line, fields)
}

func appendRow(row []string, line string, fields int) ([]string, error) {
	row = row[:0:min(fields, cap(row))] // a field too many goes elsewhere
	from, escaped := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ':':
			row = append(row, field(line[from:i], escaped))
			from, escaped = i+1, false
		case c != '\\':
		case i+1 < len(line) && (line[i+1] == ':' || line[i+1] == '\\'):
			i++
			escaped = true
		default:
			return nil, fmt.Errorf("line %q: a backslash before a character that needs none", line)
		}
	}
	row = append(row, field(line[from:], escaped))
	if len(row) != fields {
		return nil, fmt.Errorf("line %q: %d fields, not %d", line, len(row), fields)
	}
	return row, nil
}

// field is a field without the backslashes that escape something.
func field(text string, escaped bool) string {
	if !escaped {
		return text
	}
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			i++
		}
		plain = append(plain, text[i])
	}
	return string(plain)
}
