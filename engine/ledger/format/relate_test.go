package format

import (
	"bytes"
	"testing"
)

// ended is x with an epoch line that leaves only those members.
func ended(t testing.TB, x *Text, copies ...MemberRef) *Text {
	t.Helper()
	e := x.Epoch().Next(copies, nil, "test", "test")
	longer, err := x.Extend(EncodeLine(x.Head(), e.N, noon, []Fact{e.Fact()}))
	try(t, err)
	return longer
}

// other is the text as the second copy's.
func other(t testing.TB, x *Text) *Text {
	t.Helper()
	y, err := Verify(x.As(x.Epochs[0].Copies[1].Copy), nil)
	try(t, err)
	return y
}

func TestWhatACopyIsToTheBest(t *testing.T) {
	x := made(t, []Fact{fact("a", "1")}, []Fact{fact("a", "2")}, []Fact{fact("a", "3")})
	first := x.Epochs[0].Copies[0]
	shorter := func(lines int) *Text {
		y, err := Verify(bytes.Clone(x.data[:x.lines[lines-1].end+1]), nil)
		try(t, err)
		return other(t, y)
	}
	alone := grown(t, ended(t, x, first), fact("a", "4"))
	again := ended(t, alone, first, MemberRef{"new", ""})
	tests := []struct {
		name    string
		best, c *Text
		want    Relation
	}{
		{"the same", x, other(t, x), Equal},
		{"the same, rewritten", rewritten(t, x), other(t, x), Equal},
		{"the same, not rewritten", x, other(t, rewritten(t, x)), Equal},
		{"one line less", x, shorter(3), Behind},
		{"only the first line", x, shorter(1), Behind},
		{"its head is the base", grown(t, rewritten(t, x), fact("b", "1")), other(t, x), Behind},
		{"its head was left out", rewritten(t, x), shorter(3), Behind},
		{"its head was left out, an epoch later", rewritten(t, grown(t, alone, fact("a", "5"))), shorter(3), Behind},
		{"behind a rewrite that it has had", grown(t, rewritten(t, x), fact("b", "1")), other(t, rewritten(t, x)), Behind},
		{"another line at the end", x, grown(t, shorter(3), fact("a", "7")), Forked},
		{"another line, behind a rewrite", grown(t, rewritten(t, x), fact("b", "1")), grown(t, other(t, x), fact("c", "1")), Forked},
		{"a line where the next epoch begins", alone, grown(t, other(t, x), fact("a", "7")), DeadTail},
		{"lines beyond that", alone, grown(t, grown(t, other(t, x), fact("a", "7")), fact("a", "8")), DeadTail},
		{"two epochs later", again, grown(t, other(t, x), fact("a", "7")), DeadTail},
		{"behind a rewrite of the best", rewritten(t, alone), grown(t, other(t, x), fact("a", "7")), DeadTail},
		{"it disagrees before the next epoch", alone, grown(t, grown(t, shorter(3), fact("a", "7")), fact("a", "8")), Forked},
		{"it is a member again", ended(t, alone, first, x.Epochs[0].Copies[1]), grown(t, other(t, x), fact("a", "7")), Forked},
		{"its members were changed too", alone, ended(t, other(t, x), x.Epochs[0].Copies[1]), Forked},
		{"another ledger", x, made(t, []Fact{fact("a", "1")}), Forked},
	}
	for _, test := range tests {
		got, why := Relate(test.best, test.c)
		if got != test.want || (why != "") != (got == Forked) {
			t.Errorf("%s: %d (%s), not %d", test.name, got, why, test.want)
		}
	}
}

func TestMoreEpochsAreBetterThanMoreLines(t *testing.T) {
	x := made(t, []Fact{fact("a", "1")})
	tail := grown(t, grown(t, other(t, x), fact("a", "7")), fact("a", "8"))
	alone := ended(t, x, x.Epochs[0].Copies[0])
	if !alone.Better(tail) || tail.Better(alone) {
		t.Error("lines counted more")
	}
	if !grown(t, x, fact("b", "1")).Better(x) || x.Better(x) {
		t.Error("lines do not count")
	}
}
