package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
)

type pet struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Feet int    `json:"feet"`
	Note string `json:"note,omitempty"`
}

func pets() List[pet] {
	return List[pet]{
		Kind: "Pet",
		Name: func(p pet) string { return p.Name },
		Columns: []Column[pet]{
			{Name: "name", Value: func(p pet) string { return p.Name }},
			{
				Name: "feet", Value: func(p pet) string { return fmt.Sprint(p.Feet) }, Right: true,
				Human: func(p pet) string { return fmt.Sprintf("%d feet", p.Feet) },
				Style: func(p pet) Style {
					if p.Feet == 3 {
						return Bad
					}
					return Good
				},
			},
			{Name: "note", Value: func(p pet) string { return p.Note }},
			{Name: "id", Value: func(p pet) string { return p.ID }, Extra: true},
		},
	}
}

func zoo() []pet {
	return []pet{{"1", "rex", 4, "a <good> dog"}, {"2", "tripod", 13, ""}}
}

func printed(t *testing.T, p Pretended, o Output, items []pet) string {
	t.Helper()
	s, out, stderr := Buffers(p)
	if err := pets().Print(s.Out, o, items); err != nil {
		t.Fatal(err)
	}
	if stderr.Len() != 0 {
		t.Errorf("on stderr: %q", stderr)
	}
	return out.String()
}

func TestPrint(t *testing.T) {
	onTerminal := Pretended{Terminal: true}
	for name, c := range map[string]struct {
		p    Pretended
		o    Output
		want string
	}{
		"tsv in a pipe": {Pretended{}, Output{}, "NAME\tFEET\tNOTE\nrex\t4\ta <good> dog\ntripod\t13\t-\n"},
		"no header":     {Pretended{}, Output{NoHeader: true}, "rex\t4\ta <good> dog\ntripod\t13\t-\n"},
		"columns":       {Pretended{}, Output{Columns: []string{"id", "NAME"}}, "ID\tNAME\n1\trex\n2\ttripod\n"},
		"table on a terminal": {onTerminal, Output{}, "" +
			"NAME       FEET  NOTE\n" +
			"rex      4 feet  a <good> dog\n" +
			"tripod  13 feet  -\n"},
		"table without header": {onTerminal, Output{NoHeader: true}, "rex      4 feet  a <good> dog\ntripod  13 feet  -\n"},
		"tsv on a terminal":    {onTerminal, Output{Format: FormatTSV, NoHeader: true}, "rex\t4\ta <good> dog\ntripod\t13\t-\n"},
		"table in a pipe": {Pretended{}, Output{Format: FormatTable, Columns: []string{"name", "id"}}, "" +
			"NAME    ID\n" +
			"rex     1\n" +
			"tripod  2\n"},
		"names": {onTerminal, Output{Format: FormatName}, "rex\ntripod\n"},
		"json in a pipe": {Pretended{}, Output{Format: FormatJSON}, `{"apiVersion":"sledctl/v1","kind":"PetList","items":[` +
			`{"id":"1","name":"rex","feet":4,"note":"a <good> dog"},{"id":"2","name":"tripod","feet":13}]}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, printed(t, c.p, c.o, zoo())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrintNothing(t *testing.T) {
	for format, want := range map[Format]string{
		FormatTable: "NAME  FEET  NOTE\n", FormatTSV: "NAME\tFEET\tNOTE\n", FormatName: "",
		FormatJSON: `{"apiVersion":"sledctl/v1","kind":"PetList","items":[]}` + "\n",
	} {
		if got := printed(t, Pretended{}, Output{Format: format}, nil); got != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
	if got := printed(t, Pretended{}, Output{Format: FormatTable, NoHeader: true}, nil); got != "" {
		t.Errorf("a table of nothing: %q", got)
	}
}

func TestPrintOne(t *testing.T) {
	s, out, _ := Buffers(Pretended{})
	if err := pets().PrintOne(s.Out, Output{Format: FormatJSON}, zoo()[1]); err != nil {
		t.Fatal(err)
	}
	if want := `{"apiVersion":"sledctl/v1","kind":"Pet","id":"2","name":"tripod","feet":13}` + "\n"; out.String() != want {
		t.Errorf("got %s", out)
	}
	out.Reset()
	if err := pets().PrintOne(s.Out, Output{Format: FormatName}, zoo()[1]); err != nil || out.String() != "tripod\n" {
		t.Errorf("got %q, %v", out, err)
	}
	s, out, _ = Buffers(Pretended{Terminal: true})
	empty := List[struct{}]{Kind: "Nothing"}
	if err := empty.PrintOne(s.Out, Output{Format: FormatJSON}, struct{}{}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"apiVersion\": \"sledctl/v1\",\n  \"kind\": \"Nothing\"\n}\n"; out.String() != want {
		t.Errorf("on a terminal: %s", out)
	}
	if err := (List[int]{Kind: "Number"}).PrintOne(s.Out, Output{Format: FormatJSON}, 3); err == nil {
		t.Error("a number passed for an object")
	}
}

func TestUnknownWordsAreNamedBeforeAnythingIsPrinted(t *testing.T) {
	s, out, _ := Buffers(Pretended{})
	for _, c := range []struct {
		o    Output
		want string
	}{
		{Output{Columns: []string{"name", "fete"}}, `unknown column "fete": did you mean "feet"?`},
		{Output{Columns: []string{"zzzzzz"}}, `unknown column "zzzzzz": want one of name, feet, note, id`},
		{Output{Format: "jsn"}, `unknown output format "jsn": did you mean "json"?`},
		{Output{Format: "yaml"}, `unknown output format "yaml": want one of table, wide, json, tsv, name`},
	} {
		for _, err := range []error{pets().Check(c.o), pets().Print(s.Out, c.o, zoo()), pets().PrintOne(s.Out, c.o, pet{})} {
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			_, column := errors.AsType[*ColumnError](err)
			_, format := errors.AsType[*FormatError](err)
			if !column && !format {
				t.Errorf("%T", err)
			}
		}
	}
	if out.Len() != 0 {
		t.Errorf("printed %q", out)
	}
	if err := pets().Check(Output{Format: FormatJSON, Columns: []string{"id"}}); err != nil {
		t.Error(err)
	}
}

func TestTSVKeepsLinesAndFieldsWhole(t *testing.T) {
	got := printed(t, Pretended{}, Output{NoHeader: true}, []pet{{Name: "a\tb", Note: "c\nd\\e\r"}})
	if got != "a\\tb\t0\tc\\nd\\\\e\\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestTableIsColouredWithoutMovingColumns(t *testing.T) {
	items := append(zoo(), pet{Name: "stool", Feet: 3})
	plain := printed(t, Pretended{Terminal: true}, Output{}, items)
	coloured := printed(t, Pretended{Terminal: true, Environ: []string{"TERM=xterm-256color"}}, Output{}, items)
	if !strings.Contains(coloured, "\x1b[31m3 feet\x1b[0m") && !strings.Contains(coloured, "\x1b[31m") {
		t.Errorf("nothing is red: %q", coloured)
	}
	var stripped []string
	for line := range strings.Lines(ansi.Strip(coloured)) {
		stripped = append(stripped, strings.TrimRight(line, " \n"))
	}
	if diff := cmp.Diff(plain, strings.Join(stripped, "\n")+"\n"); diff != "" {
		t.Error(diff)
	}
}

func TestTableLetsNobodyMoveTheCursor(t *testing.T) {
	got := printed(t, Pretended{Terminal: true}, Output{NoHeader: true}, []pet{{Name: "a\x1b[2Jb\nc\x9b\td"}})
	if strings.ContainsAny(strings.TrimSuffix(got, "\n"), "\x1b\n\t\u009b") || strings.Contains(got, "\x9b") {
		t.Errorf("got %q", got)
	}
}

func TestJSONIsIndentedForPeople(t *testing.T) {
	got := printed(t, Pretended{Terminal: true}, Output{Format: FormatJSON}, zoo())
	var back struct {
		Items []pet `json:"items"`
	}
	if err := json.Unmarshal([]byte(got), &back); err != nil || cmp.Diff(zoo(), back.Items) != "" {
		t.Errorf("got %s, %v", got, err)
	}
	if !strings.Contains(got, "\n  \"kind\": \"PetList\",\n") {
		t.Errorf("got %s", got)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestPrintTellsWhatItCouldNotWrite(t *testing.T) {
	for _, format := range Formats() {
		s := newStream(brokenPipe{}, false, nil, func() int { return 0 })
		if err := pets().Print(s, Output{Format: Format(format)}, zoo()); err == nil || err.Error() != "broken pipe" {
			t.Errorf("%s: got %v", format, err)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	var items []pet
	for i := range 10_000 {
		items = append(items, pet{Name: fmt.Sprintf("pet-%d", i), Feet: i, Note: "note"})
	}
	for b.Loop() {
		s, _, _ := Buffers(Pretended{Terminal: true})
		if err := pets().Print(s.Out, Output{}, items); err != nil {
			b.Fatal(err)
		}
	}
}
