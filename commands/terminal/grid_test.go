package terminal

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// bare is a text without blanks, colours and letters that a terminal does not show.
func bare(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, ansi.Strip(s))
}

// No line of a table is wider than the terminal, and no cell is cut.
func TestATableFitsAndIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zä世/ ]{0,60}`)
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pet {
			return pet{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Feet: rapid.IntRange(0, 9999).Draw(t, "feet"), Note: text.Draw(t, "note")}
		}), 1, 5).Draw(t, "items")
		width := rapid.IntRange(15, 120).Draw(t, "width")
		list := pets()
		list.Columns[2].Note = rapid.Bool().Draw(t, "notes")
		s, out, _ := Buffers(Pretended{Terminal: true, Width: width, Environ: []string{"TERM=xterm"}})
		if err := list.Print(s.Out, Output{Columns: []string{"id", "name", "feet", "note"}}, items); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if w := ansi.StringWidth(strings.TrimSuffix(line, "\n")); w > width {
				t.Fatalf("%d columns of %d: %q", w, width, line)
			}
		}
		for _, p := range items {
			for _, cell := range []string{p.ID, p.Name, p.Note} {
				if !strings.Contains(bare(out.String()), bare(cell)) {
					t.Fatalf("%q is not complete:\n%s", cell, out)
				}
			}
		}
	})
}

// usual gives a column a value that says little.
func usual(l List[pet], column, value string) List[pet] {
	l.Columns = slices.Clone(l.Columns)
	for i := range l.Columns {
		if l.Columns[i].Name == column {
			l.Columns[i].Usual = value
		}
	}
	return l
}

func notedPets() List[pet] {
	l := pets()
	l.Columns[2].Note = true
	return l
}

func TestTablesInWhichNotAllFits(t *testing.T) {
	lame := pet{Name: "rex", Feet: 3, Note: "has hurt one of its feet"}
	well := pet{Name: "tom", Feet: 4}
	named := func(p pet, name string) pet { p.Name = name; return p }
	for name, c := range map[string]struct {
		width int
		list  List[pet]
		o     Output
		items []pet
		want  []string
	}{
		"a note that fits stands in its row": {80, notedPets(), Output{}, []pet{lame, well}, []string{
			"NAME    FEET  NOTE",
			"rex   3 feet  has hurt one of its feet",
			"tom   4 feet  -",
		}},
		"what does not is a note below": {30, notedPets(), Output{}, []pet{well, lame}, []string{
			"NAME    FEET",
			"tom   4 feet",
			"rex   3 feet  [1]",
			"",
			"[1] has hurt one of its feet",
		}},
		"notes are wrapped at words": {20, notedPets(), Output{}, []pet{lame}, []string{
			"NAME    FEET",
			"rex   3 feet  [1]",
			"",
			"[1] has hurt one of",
			"    its feet",
		}},
		"what two share is one note, what three share has their names, also if all fits": {80, notedPets(), Output{}, []pet{lame, named(lame, "ben"), named(lame, "max"), well}, []string{
			"NAME    FEET  NOTE",
			"rex   3 feet  [1]",
			"ben   3 feet  [1]",
			"max   3 feet  [1]",
			"tom   4 feet  -",
			"",
			"[1] has hurt one of its feet (3: rex ben max)",
		}},
		"two do not": {30, notedPets(), Output{NoHeader: true}, []pet{lame, named(lame, "ben")}, []string{
			"rex  3 feet  [1]",
			"ben  3 feet  [1]",
			"",
			"[1] has hurt one of its feet",
		}},
		"of columns without notes the widest goes below": {26, pets(), Output{}, []pet{lame, well}, []string{
			"NAME    FEET",
			"rex   3 feet",
			"    note has hurt one of",
			"    its feet",
			"tom   4 feet",
		}},
		"what is usual is left out below": {26, usual(pets(), "feet", "4 feet"), Output{}, []pet{named(lame, "a name of 26 characters now"), named(well, "a name of 26 characters too")}, []string{
			"NAME",
			"a name of 26 characters",
			"    now",
			"    feet 3 feet",
			"    note has hurt one of",
			"    its feet",
			"a name of 26 characters",
			"    too",
		}},
		"a name that is wider than the terminal is wrapped": {12, pets(), Output{Columns: []string{"name", "feet"}}, []pet{named(well, "a/long/path/of/it")}, []string{
			"NAME",
			"a/long/path/",
			"    of/it",
			"    feet 4",
			"    feet",
		}},
	} {
		s, out, _ := Buffers(Pretended{Terminal: true, Width: c.width})
		if err := c.list.Print(s.Out, c.o, c.items); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestATableMayHaveOtherColumnsThanScriptsGet(t *testing.T) {
	l := pets()
	l.Table, l.Wide, l.Summary = []string{"name", "id"}, []string{"feet", "name"}, "1 pet"
	for name, c := range map[string]struct {
		p    Pretended
		o    Output
		want string
	}{
		"table":               {Pretended{Terminal: true}, Output{}, "1 pet\n\nNAME  ID\nrex   1\n"},
		"without headings":    {Pretended{Terminal: true}, Output{NoHeader: true}, "rex  1\n"},
		"wide":                {Pretended{Terminal: true}, Output{Format: FormatWide}, "1 pet\n\n  FEET  NAME\n4 feet  rex\n"},
		"pipe":                {Pretended{}, Output{}, "NAME\tFEET\tNOTE\nrex\t4\t-\n"},
		"columns that we ask": {Pretended{Terminal: true}, Output{Columns: []string{"feet"}}, "1 pet\n\n  FEET\n4 feet\n"},
	} {
		s, out, _ := Buffers(c.p)
		if err := l.Print(s.Out, c.o, []pet{{"1", "rex", 4, ""}}); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, out, c.want)
		}
	}
	s, out, _ := Buffers(Pretended{Terminal: true})
	if err := pets().Print(s.Out, Output{Format: FormatWide}, []pet{{"1", "rex", 4, ""}}); err != nil || out.String() != "NAME    FEET  NOTE  ID\nrex   4 feet  -     1\n" {
		t.Errorf("a wide table has all columns, unless it says which: %v\n%s", err, out)
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, nil},
		{"  one two  three", 9, []string{"one two", "three"}},
		{"zpool clear oxp_6eb758c7-ee2e-4e47", 25, []string{"zpool clear", "oxp_6eb758c7-ee2e-4e47"}},
		{"see /a/long/path", 8, []string{"see", "/a/long/", "path"}},
		{"abcdefgh", 3, []string{"abc", "def", "gh"}},
		{"世界", 1, []string{"世", "界"}},
	} {
		if diff := cmp.Diff(c.want, Wrapped(c.text, c.width)); diff != "" {
			t.Errorf("%q in %d (-want +got):\n%s", c.text, c.width, diff)
		}
	}
}
