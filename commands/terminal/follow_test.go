package terminal

import (
	"strings"
	"testing"
)

func followed(t *testing.T, p Pretended, o Output) string {
	t.Helper()
	s, out, _ := Buffers(p)
	print := pets().Follow(s.Out, o)
	for _, pet := range append(zoo(), pet{"3", "a-very-long-name", 2, "x\x1b"}) {
		if err := print(pet); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestFollow(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		o        Output
		want     string
	}{
		{true, Output{}, `
NAME        FEET        NOTE
rex         4 feet      a <good> dog
tripod      13 feet     -
a-very-long-name  2 feet      x?
`},
		{true, Output{NoHeader: true, Columns: []string{"id", "name"}}, "\n1           rex\n2           tripod\n3           a-very-long-name\n"},
		{false, Output{}, "\nNAME\tFEET\tNOTE\nrex\t4\ta <good> dog\ntripod\t13\t-\na-very-long-name\t2\tx\\x1b\n"},
		{false, Output{Format: FormatName}, "\nrex\ntripod\na-very-long-name\n"},
		{true, Output{Format: FormatJSON}, `
{"apiVersion":"sledctl/v1","kind":"Pet","id":"1","name":"rex","feet":4,"note":"a <good> dog"}
{"apiVersion":"sledctl/v1","kind":"Pet","id":"2","name":"tripod","feet":13}
{"apiVersion":"sledctl/v1","kind":"Pet","id":"3","name":"a-very-long-name","feet":2,"note":"x\u001b"}
`},
	} {
		if got := followed(t, Pretended{Terminal: c.terminal}, c.o); got != strings.TrimPrefix(c.want, "\n") {
			t.Errorf("%+v:\n%s", c.o, got)
		}
	}
	s, _, _ := Buffers(Pretended{})
	if err := pets().Follow(s.Out, Output{Format: "xml"})(pet{}); err == nil {
		t.Error("a format that does not exist")
	}
}
