package terminal

import "testing"

// A line is broken at blanks, columns keep their blanks, and a word is never broken.
func TestFoldedBreaksAtBlanks(t *testing.T) {
	for line, want := range map[string]string{
		"":                                 "",
		"short":                            "short",
		"+ zone.clone  zone web1: from x":  "+ zone.clone  zone\n    web1: from x",
		"abcdefghijklmnopqrstuvwxyz":       "abcdefghijklmnopqrstuvwxyz",
		"abcdefghijklmnopqrstuvwxyz a b":   "abcdefghijklmnopqrstuvwxyz\n    a b",
		"  abcdefghijklmnopqrstuvwxyz":     "  abcdefghijklmnopqrstuvwxyz",
		"exactly twenty chars\x1b[0m":      "exactly twenty chars\x1b[0m",
		"a abcdefghijklmnopqrstuvwxyz end": "a\n    abcdefghijklmnopqrstuvwxyz\n    end",
	} {
		if got := Folded(line, 20); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
