package cli

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestNamesAreInOrderAndThoseThatAreAlikeAsTheyCame(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		names := make([]string, r.IntN(40))
		for i := range names {
			names[i] = strings.Repeat("web-", r.IntN(4)) + []string{"", "a", "b", "a\x00", "\xff", "é"}[r.IntN(6)]
		}
		want := slices.Clone(names)
		slices.Sort(want)
		order := OrderOf(len(names), func(i int) string { return names[i] })
		for n, at := range order {
			if names[at] != want[n] {
				t.Fatalf("%q: %q is in place %d, want %q", names, names[at], n, want[n])
			}
			if n > 0 && names[order[n-1]] == names[at] && order[n-1] > at {
				t.Fatalf("%q: %d before %d", names, order[n-1], at)
			}
		}
		if got := ByName(names, func(s string) string { return s }); !slices.Equal(got, want) {
			t.Fatalf("%q", got)
		}
	}
}
