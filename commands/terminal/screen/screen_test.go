package screen

import (
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/docs/pictures/emulator"
)

// desk is a terminal of 20 to 4 at which nobody types.
func desk(t *testing.T, environ ...string) (*Screen, func() *emulator.Screen, func() string) {
	t.Helper()
	streams, out, _ := terminal.Buffers(terminal.Pretended{Terminal: true, Size: func() (int, int) { return 20, 4 }, Environ: append([]string{"TERM=xterm"}, environ...)})
	streams.In.Terminal = false
	s, err := Open(streams.In, streams.Out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	seen := func() *emulator.Screen {
		e := emulator.New(20, 4)
		if err := e.Write(out.String()); err != nil {
			t.Fatal(err)
		}
		return e
	}
	return s, seen, out.String
}

// Lines are shown with their looks, nothing is left of what stood there before, and what has
// no room is left out.
func TestLinesAreShown(t *testing.T) {
	s, seen, _ := desk(t)
	show(t, s, "something that was there and is too long", "and here", "3", "4", "5")
	if got := seen().Text(); got != "something that was t\nand here\n3\n4\n" {
		t.Errorf("shows\n%s", got)
	}
	show(t, s, "\x1b[1mNAME\x1b[0m é \x1b[31mFAILED")
	e := seen()
	if got := strings.TrimSpace(e.Text()); got != "NAME é FAILED" {
		t.Errorf("shows %q", got)
	}
	if row := e.Rows[0]; !row[0].Bold || row[5].Bold || row[7].Fg != 1 {
		t.Errorf("the looks are %+v", row)
	}
	show(t, s, "", "plain")
	if row := seen().Rows[1]; row[0].Fg != -1 {
		t.Error("what follows a look has it, too")
	}
}

// Lines that are as they were are not written again.
func TestOnlyNewLinesAreWritten(t *testing.T) {
	s, _, written := desk(t)
	show(t, s, "one", "two")
	before := written()
	show(t, s, "one", "2")
	if got, want := strings.TrimPrefix(written(), before), "\x1b[2;1H\x1b[2K2"; got != want {
		t.Errorf("writes %q, not %q", got, want)
	}
	before = written()
	show(t, s, "one", "2")
	if got := strings.TrimPrefix(written(), before); got != "" {
		t.Errorf("writes %q for nothing", got)
	}
}

// What was on the terminal is there again when it is closed, or lent.
func TestTheTerminalIsGivenBack(t *testing.T) {
	for _, c := range []struct{ kind, begins, ends string }{
		{"xterm", "\x1b[?1049h\x1b[?25l\x1b[H\x1b[J", "\x1b[?25h\x1b[?1049l"},
		{"sun-color", "\x1b[H\x1b[J", "\x1b[H\x1b[J"},
	} {
		s, _, written := desk(t, "TERM="+c.kind)
		show(t, s, "one")
		lent := ""
		if err := s.Lend(func() error { lent = written(); return nil }); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(lent, c.begins) || !strings.HasSuffix(lent, c.ends) {
			t.Errorf("%s: %q", c.kind, lent)
		}
		show(t, s, "one")
		if again := strings.TrimPrefix(written(), lent); !strings.HasPrefix(again, c.begins) || !strings.Contains(again, "one") {
			t.Errorf("%s: afterwards it writes %q", c.kind, again)
		}
		if err := s.Close(); err != nil || !strings.HasSuffix(written(), c.ends) {
			t.Errorf("%s: %v, %q", c.kind, err, written())
		}
	}
}

// A terminal that is gone ends the events.
func TestATerminalThatIsGoneEndsTheEvents(t *testing.T) {
	streams, _, _ := terminal.Buffers(terminal.Pretended{Terminal: true, In: "q", Environ: []string{"TERM=xterm"}})
	s, err := Open(streams.In, streams.Out)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for e := range s.Events() {
		keys = append(keys, e.Key)
	}
	if !slices.Equal(keys, []string{"q"}) {
		t.Errorf("%q was typed", keys)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Keys come by name, and others not at all; half of one waits for the rest.
func TestKeysComeByName(t *testing.T) {
	for _, c := range []struct {
		typed string
		all   bool
		keys  string
		rest  string
	}{
		{typed: "qé\r", keys: "q é enter"},
		{typed: "\x1b[A\x1bOB\x1b[5~\x1b[222z", keys: "up down pgup pgdn"},
		{typed: "\x7f\x03\x15\x1b[Z\t", keys: "backspace ^C ^U backtab tab"},
		{typed: "\x1bx\x1b[15~\x01\x1b[1;5Aq", keys: "q"},
		{typed: "a\x1b", keys: "a", rest: "\x1b"},
		{typed: "\x1b", all: true, keys: "esc"},
		{typed: "\x1b\x1b[A", keys: "up"},
		{typed: "\x1b[1", keys: "", rest: "\x1b[1"},
		{typed: "\x1b[1", all: true, keys: ""},
		{typed: "\x1bO", keys: "", rest: "\x1bO"},
		{typed: "a\xc3", keys: "a", rest: "\xc3"},
		{typed: "\xffq", keys: "q"},
	} {
		got, rest := decoded([]byte(c.typed), c.all)
		if strings.Join(got, " ") != c.keys || string(rest) != c.rest {
			t.Errorf("%q: %q and %q, not %q and %q", c.typed, got, rest, c.keys, c.rest)
		}
	}
}

func show(t *testing.T, s *Screen, lines ...string) {
	t.Helper()
	if err := s.Show(lines); err != nil {
		t.Fatal(err)
	}
}
