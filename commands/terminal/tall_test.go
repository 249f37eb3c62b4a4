package terminal

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func tallPets() List[pet] {
	l := pets()
	l.Tall = &Tall[pet]{
		Head:   func(p pet) string { return p.Name },
		Detail: func(p pet) string { return "note: " + p.Note },
		Style:  func(pet) Style { return Bad },
	}
	return l
}

func TestAListThatDoesNotFitIsPrintedTall(t *testing.T) {
	long := pet{Name: "a name of thirty-six characters, all", Feet: 4, Note: "it says what there is to say, and more"}
	for name, c := range map[string]struct {
		width int
		o     Output
		want  string
	}{
		"it fits":                {120, Output{NoHeader: true}, "a name of thirty-six characters, all  4 feet  it says what there is to say, and more\n"},
		"it does not":            {40, Output{}, "a name of thirty-six characters, all\n    note: it says what there is to say,\n    and more\n"},
		"columns are asked for":  {40, Output{NoHeader: true, Columns: []string{"name"}}, "a name of thirty-six characters, all\n"},
		"a name is wrapped, too": {20, Output{}, "a name of thirty-six\n    characters, all\n    note: it says\n    what there is to\n    say, and more\n"},
	} {
		s, out, _ := Buffers(Pretended{Terminal: true, Width: c.width})
		if err := tallPets().Print(s.Out, c.o, []pet{long}); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, out, c.want)
		}
	}
}

func TestTallDetailsFitAndNamesAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pet{Name: rapid.StringMatching(`[a-z]{60,90}`).Draw(t, "name"), Note: rapid.StringMatching(`([a-z:]{0,9} ){0,20}`).Draw(t, "note")}
		width := rapid.IntRange(20, 50).Draw(t, "width")
		s, out, _ := Buffers(Pretended{Terminal: true, Width: width, Environ: []string{"TERM=xterm-256color"}})
		if err := tallPets().Print(s.Out, Output{}, []pet{p}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(ansi.Strip(out.String()), "\n"), "\n")
		if name := strings.Join(strings.Fields(out.String()), ""); !strings.HasPrefix(ansi.Strip(name), p.Name) {
			t.Fatalf("the name is not complete:\n%s", out)
		}
		for _, line := range lines {
			if ansi.StringWidth(line) > width {
				t.Fatalf("%d columns of %d: %q", ansi.StringWidth(line), width, line)
			}
		}
	})
}
