package ofmt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRowsAreReadAsTheyAreEscaped(t *testing.T) {
	tests := []struct {
		name, out string
		fields    int
		want      [][]string // nil: an error
	}{
		{"no lines", "", 2, [][]string{}},
		{"two lines", "net0:up\nnet1:down\n", 2, [][]string{{"net0", "up"}, {"net1", "down"}}},
		{"empty fields", "net0::\n", 3, [][]string{{"net0", "", ""}}},
		{"an empty line of two fields", ":\n", 2, [][]string{{"", ""}}},
		{"escaped colons", `v0:2\:8\:20\:a1\:0\:f:7` + "\n", 3, [][]string{{"v0", "2:8:20:a1:0:f", "7"}}},
		{"escaped backslashes", `a\\:\\\:b` + "\n", 2, [][]string{{`a\`, `\:b`}}},
		{"a blank and a tab are plain", "a b:\t\n", 2, [][]string{{"a b", "\t"}}},
		{"no newline at the end", "net0:up", 2, nil},
		{"the second line is cut off", "net0:up\nne", 2, nil},
		{"an empty line", "\n", 2, nil},
		{"a field too few", "net0\n", 2, nil},
		{"a field too many", "net0:up:1500\n", 2, nil},
		{"a backslash before a letter", `a\b:c` + "\n", 2, nil},
		{"a backslash at the end", `a:b\` + "\n", 2, nil},
	}
	for _, test := range tests {
		rows, err := Rows([]byte(test.out), test.fields)
		if (err == nil) != (test.want != nil) {
			t.Errorf("%s: error %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(test.want, append([][]string{}, rows...)); diff != "" && err == nil {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// FuzzRow escapes two fields as libofmt does, and reads them back.
func FuzzRow(f *testing.F) {
	f.Add("2:8:20", `a\b`)
	f.Fuzz(func(t *testing.T, a, b string) {
		escape := strings.NewReplacer(`\`, `\\`, ":", `\:`)
		row, err := Row(escape.Replace(a)+":"+escape.Replace(b), 2)
		if err != nil || row[0] != a || row[1] != b {
			t.Errorf("%q %q came back as %q, %v", a, b, row, err)
		}
	})
}

// FuzzRows reads anything: a row has its fields, or there is an error.
func FuzzRows(f *testing.F) {
	for _, seed := range []string{"net0:up\n", `v0:2\:8` + "\n", "\\", "a:b\\:c\\\\d\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, out string) {
		rows, err := Rows([]byte(out), 2)
		if err == nil && len(rows) != strings.Count(out, "\n") {
			t.Errorf("%q: %d rows", out, len(rows))
		}
		for _, row := range rows {
			if len(row) != 2 {
				t.Errorf("%q: row %q", out, row)
			}
		}
	})
}
