package screen_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/sledctl/sledctl/commands/terminal/screen"
)

func open(t *testing.T) (*screen.Screen, tcell.SimulationScreen) {
	t.Helper()
	cells := tcell.NewSimulationScreen("UTF-8")
	s, err := screen.On(cells)
	if err != nil {
		t.Fatal(err)
	}
	cells.SetSize(20, 4)
	return s, cells
}

// Lines are shown with their looks, and nothing is left of what stood there before.
func TestLinesAreShown(t *testing.T) {
	s, cells := open(t)
	defer s.Close()
	s.Show([]string{"something that was there", "and here"})
	s.Show([]string{"\x1b[1mNAME\x1b[0m é \x1b[31mFAILED\x1b[0m"})
	all, width, _ := cells.GetContents()
	var text strings.Builder
	for _, c := range all[:2*width] {
		text.WriteString(string(c.Runes))
	}
	if got := strings.TrimSpace(text.String()); got != "NAME é FAILED" {
		t.Errorf("shows %q", got)
	}
	if _, _, bold := all[0].Style.Decompose(); bold&tcell.AttrBold == 0 {
		t.Error("NAME is not bold")
	}
	if fg, bg, _ := all[7].Style.Decompose(); fg != tcell.PaletteColor(1) || bg != tcell.ColorDefault {
		t.Errorf("FAILED is %v on %v", fg, bg)
	}
	if fg, _, bold := all[5].Style.Decompose(); fg != tcell.ColorDefault || bold != 0 {
		t.Error("what follows a look has it, too")
	}
}

// Keys come by name, and others not at all.
func TestKeysComeByName(t *testing.T) {
	s, cells := open(t)
	defer s.Close()
	for _, k := range []struct {
		key  tcell.Key
		rune rune
		mod  tcell.ModMask
	}{
		{tcell.KeyRune, 'q', 0}, {tcell.KeyRune, 'x', tcell.ModAlt}, {tcell.KeyF5, 0, 0}, {tcell.KeyEnter, 0, 0}, {tcell.KeyPgDn, 0, 0}, {tcell.KeyCtrlC, 0, 0},
	} {
		cells.InjectKey(k.key, k.rune, k.mod)
	}
	var got []string
	for len(got) < 4 {
		select {
		case e := <-s.Events():
			if e.Key != "" {
				got = append(got, e.Key)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("only %q came", got)
		}
	}
	if want := "q enter pgdn ^C"; strings.Join(got, " ") != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// A screen that is closed ends its events.
func TestAClosedScreenHasNoMoreEvents(t *testing.T) {
	s, _ := open(t)
	s.Close()
	if _, open := <-s.Events(); open {
		t.Error("an event comes after the end")
	}
}
