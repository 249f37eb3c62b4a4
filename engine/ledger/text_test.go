package ledger

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/sledctl/sledctl/engine/ledger/format"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// made is a text of one copy with the given appends behind its epoch line.
func made(t testing.TB, appends ...[]Fact) *format.Text {
	t.Helper()
	x := format.New([]string{"", ""}, Epoch{N: 1, ID: format.NewID(), Who: "test", Why: "test"}, noon)
	for _, facts := range appends {
		x = grown(t, x, facts...)
	}
	return x
}

// grown is a text with one more append.
func grown(t testing.TB, x *format.Text, facts ...Fact) *format.Text {
	t.Helper()
	facts, err := format.CheckFacts(facts)
	try(t, err)
	longer, err := x.Extend(format.EncodeLine(x.Head(), x.Epoch().N, noon, facts))
	try(t, err)
	return longer
}

func fact(key, value string) Fact { return Fact{Key: key, Value: json.RawMessage(value)} }

func gone(key string) Fact { return Fact{Key: key} }

// firstLines is the file of a text that ends with its line n.
func firstLines(x *format.Text, n int) []byte {
	return bytes.Join(bytes.SplitAfter(x.Data(), []byte{'\n'})[:1+n], nil)
}
