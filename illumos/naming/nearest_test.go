package naming

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	known := []string{"list", "get", "ensure", "start", "stop", "delete", "adopt", "migrate"}
	for word, want := range map[string]string{
		"lsit": "list", "ls": "", "ensur": "ensure", "enusre": "ensure", "Ensure": "ensure", "strat": "start", "stpo": "stop",
		"remove": "", "bogus": "", "": "", "migraet": "migrate", "gt": "get", "deleted": "delete", "list": "list",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	if got := Nearest("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("of equals: %q", got)
	}
}

func TestDistanceIsAMetricOfEdits(t *testing.T) {
	word := rapid.StringMatching(`[ab世]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := []rune(word.Draw(t, "a")), []rune(word.Draw(t, "b"))
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (string(a) == string(b)) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) {
			t.Fatalf("%q to %q: %d", string(a), string(b), d)
		}
		if len(a) > 0 {
			i := rapid.IntRange(0, len(a)-1).Draw(t, "i")
			if one := distance(a, append(append([]rune{}, a[:i]...), a[i+1:]...)); one != 1 {
				t.Fatalf("one letter less of %q: %d", string(a), one)
			}
		}
	})
}
