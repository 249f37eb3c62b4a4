package commands

import (
	"testing"
)

func TestWrapBreaksParagraphsAndLeavesIndentedLines(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"joined and broken":    {"one two\nthree four five", "one two\nthree four\nfive"},
		"paragraphs":           {"one\n\ntwo", "one\n\ntwo"},
		"indented lines":       {"one two three four\n  a  b  c\nfive", "one two\nthree four\n  a  b  c\nfive"},
		"a long second column": {"  a  bb cc dd", "  a  bb cc\n     dd"},
		"a long indented line": {"  aa bb cc dd", "  aa bb\n    cc dd"},
		"a word that is long":  {"abcdefghijklmnop q", "abcdefghijklmnop\nq"},
		"nothing":              {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wrap(tc.in, 10); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
