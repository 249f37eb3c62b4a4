package format

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// made is a text of one copy with the given appends behind its epoch line.
func made(t testing.TB, appends ...[]Fact) *Text {
	t.Helper()
	x := New([]string{"", ""}, Epoch{N: 1, ID: NewID(), Who: "test", Why: "test"}, noon)
	for _, facts := range appends {
		x = grown(t, x, facts...)
	}
	return x
}

// grown is a text with one append more.
func grown(t testing.TB, x *Text, facts ...Fact) *Text {
	t.Helper()
	if facts, ok := CheckFacts(facts); ok == nil {
		longer, err := x.Extend(EncodeLine(x.Head(), x.Epoch().N, noon, facts))
		if err != nil {
			t.Fatal(err)
		}
		return longer
	}
	t.Fatalf("bad facts: %v", facts)
	return nil
}

func fact(key, value string) Fact { return Fact{key, json.RawMessage(value)} }

func gone(key string) Fact { return Fact{Key: key} }

func TestLineIsWrittenInAFixedOrder(t *testing.T) {
	facts, err := CheckFacts([]Fact{fact("instance/1", `{ "name" : "web1",`+"\n"+` "n": [1, 2] }`), gone("hold/x")})
	if err != nil {
		t.Fatal(err)
	}
	line := string(EncodeLine(Head{6, strings.Repeat("a", hashLen)}, 2, noon, facts))
	want := `","seq":7,"epoch":2,"time":"2026-03-01T12:00:00.123456Z","facts":[` +
		`{"key":"instance/1","value":{"name":"web1","n":[1,2]}},{"key":"hold/x","value":null}]}` + "\n"
	if !strings.HasPrefix(line, openHash) {
		t.Fatalf("no hash first: %s", line)
	}
	if diff := cmp.Diff(want, line[hashEnd:]); diff != "" {
		t.Error(diff)
	}
	var decoded struct{ Hash string }
	if err := json.Unmarshal([]byte(line), &decoded); err != nil || len(decoded.Hash) != hashLen {
		t.Errorf("not JSON: %v", err)
	}
}

func TestHashCoversTheLineBeforeAndTheRestOfThisOne(t *testing.T) {
	facts := []Fact{fact("a", "1")}
	hash := func(prev Head, facts []Fact, at time.Time) string {
		return string(EncodeLine(prev, 1, at, facts)[len(openHash):hashEnd])
	}
	base := Head{1, strings.Repeat("0", hashLen)}
	first := hash(base, facts, noon)
	for name, other := range map[string]string{
		"hash before": hash(Head{1, strings.Repeat("1", hashLen)}, facts, noon),
		"number":      hash(Head{2, base.Hash}, facts, noon),
		"time":        hash(base, facts, noon.Add(time.Microsecond)),
		"facts":       hash(base, []Fact{fact("a", "2")}, noon),
	} {
		if other == first {
			t.Errorf("another %s makes the same hash", name)
		}
	}
	if hash(base, facts, noon) != first {
		t.Error("the same line has two hashes")
	}
}

func TestKeysAndValuesThatCannotBeWritten(t *testing.T) {
	for name, f := range map[string]Fact{
		"empty key":     fact("", "1"),
		"long key":      fact(strings.Repeat("k", maxKey+1), "1"),
		"quote":         fact(`a"b`, "1"),
		"backslash":     fact(`a\b`, "1"),
		"newline":       fact("a\nb", "1"),
		"not ASCII":     fact("größe", "1"),
		"the ledger's":  fact("members", "1"),
		"no JSON":       fact("a", "{"),
		"empty value":   {"a", json.RawMessage{}},
		"two values":    fact("a", "1 2"),
		"trailing text": fact("a", `{"b":1}x`),
	} {
		if _, err := CheckFacts([]Fact{fact("fine", "1"), f}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestFactsAreCutAsTheyWereWritten(t *testing.T) {
	values := []string{
		`null`, `true`, `0`, `-1.5e+9`, `""`, `"a\"b"`, `"\\"`, `"\\\""`, `"}],{\"key\":\"x\",\"value\":1}"`,
		`[]`, `{}`, `[[],{},[{"key":"k","value":[1,"]"]}]]`, `{"key":"k","value":{"a":"{[\\"}}`, `"größe"`,
	}
	var facts []Fact
	for i, v := range values {
		facts = append(facts, fact(fmt.Sprint("key/", i), v))
	}
	line := EncodeLine(Head{1, firstHash("x")}, 1, noon, facts)
	f, ok := cutLine(line[:len(line)-1])
	if !ok {
		t.Fatal("not cut")
	}
	if diff := cmp.Diff(facts, cutAll(t, f.facts)); diff != "" {
		t.Error(diff)
	}
}

func cutAll(t testing.TB, rest []byte) []Fact {
	t.Helper()
	var out []Fact
	for len(rest) > 0 {
		key, value, more, ok := cutFact(rest)
		if !ok {
			t.Fatalf("not cut: %s", rest)
		}
		out, rest = append(out, fact(string(key), string(value))), more
	}
	return out
}

func TestWhatIsNotBuiltAsALineIsNotCut(t *testing.T) {
	whole := string(EncodeLine(Head{8, firstHash("x")}, 3, noon, []Fact{fact("a", "1")}))
	whole = whole[:len(whole)-1]
	if _, ok := cutLine([]byte(whole)); !ok {
		t.Fatal("the whole line is not cut")
	}
	bad := map[string]string{
		"blank":         strings.Replace(whole, `"seq":`, `"seq": `, 1),
		"leading zero":  strings.Replace(whole, `"seq":9`, `"seq":09`, 1),
		"no number":     strings.Replace(whole, `"seq":9`, `"seq":`, 1),
		"huge number":   strings.Replace(whole, `"seq":9`, `"seq":99999999999999999999`, 1),
		"other order":   strings.Replace(whole, `"seq":9,"epoch":3`, `"epoch":3,"seq":9`, 1),
		"other end":     whole + " ",
		"another field": strings.Replace(whole, `,"facts"`, `,"more":1,"facts"`, 1),
	}
	for n := range len(whole) {
		bad[fmt.Sprintf("the first %d bytes", n)] = whole[:n]
	}
	for name, line := range bad {
		if _, ok := cutLine([]byte(line)); ok {
			t.Errorf("%s: cut", name)
		}
	}
}

// randomJSON is a value of any kind.
func randomJSON(r *rand.Rand, depth int) any {
	words := []string{"", "key", "value", "facts", `"`, `\`, `{"key":"`, `]}`, "\n", "é", "\u2028", "<&>"}
	switch kind := r.IntN(6); {
	case depth == 0 || kind < 3:
		return []any{nil, true, r.IntN(1 << 30), r.Float64(), words[r.IntN(len(words))]}[r.IntN(5)]
	case kind == 3:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomJSON(r, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(4) {
		object[words[r.IntN(len(words))]] = randomJSON(r, depth-1)
	}
	return object
}

func TestRandomFactsComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var facts []Fact
		for i := range 1 + r.IntN(5) {
			value, err := json.MarshalIndent(randomJSON(r, 4), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			facts = append(facts, fact(fmt.Sprint("k", i), string(value)))
		}
		facts, err := CheckFacts(facts)
		if err != nil {
			t.Fatal(err)
		}
		x := grown(t, made(t), facts...)
		f, _ := cutLine(x.Line(1))
		if diff := cmp.Diff(facts, cutAll(t, f.facts)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func try(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
