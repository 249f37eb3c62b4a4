package terminal

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestColourNeedsATerminalThatWantsIt(t *testing.T) {
	for name, c := range map[string]struct {
		p    Pretended
		want bool
	}{
		"a terminal":      {Pretended{Terminal: true, Environ: []string{"TERM=xterm"}}, true},
		"a pipe":          {Pretended{Environ: []string{"TERM=xterm"}}, false},
		"NO_COLOR":        {Pretended{Terminal: true, Environ: []string{"TERM=xterm", "NO_COLOR=1"}}, false},
		"empty NO_COLOR":  {Pretended{Terminal: true, Environ: []string{"TERM=xterm", "NO_COLOR="}}, true},
		"a dumb terminal": {Pretended{Terminal: true, Environ: []string{"TERM=dumb"}}, false},
		"no TERM":         {Pretended{Terminal: true}, false},
		"the last counts": {Pretended{Terminal: true, Environ: []string{"TERM=xterm", "TERM=dumb"}}, false},
		"a serial line":   {Pretended{Terminal: true, Environ: []string{"TERM=sun-color"}}, true},
	} {
		s, _, _ := Buffers(c.p)
		for _, stream := range []*Stream{s.Out, s.Err} {
			got := stream.Style(Bad, "x")
			if stream.Color != c.want || (got != "x") != c.want || !strings.Contains(got, "x") {
				t.Errorf("%s: colour %v, %q", name, stream.Color, got)
			}
		}
	}
}

func TestStyleAddsNothingButColour(t *testing.T) {
	s, _, _ := Buffers(Pretended{Terminal: true, Environ: []string{"TERM=xterm"}})
	if got := s.Out.Style(Bad, "a\tb  \n\nccc"); got != "\x1b[31ma\tb  \x1b[0m\n\n\x1b[31mccc\x1b[0m" {
		t.Errorf("got %q", got)
	}
	if got := s.Out.Style(Plain, "a"); got != "a" {
		t.Errorf("got %q", got)
	}
	seen := map[string]bool{}
	for _, style := range []Style{Plain, Good, Warn, Bad, Strong, Faint} {
		seen[s.Out.Style(style, "a")] = true
	}
	if len(seen) != 6 {
		t.Errorf("two styles look alike: %v", seen)
	}
}

func TestSystemStreamsOfFilesAreNoTerminals(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := System(f, f, f, []string{"TERM=xterm"})
	if s.In.Terminal || s.Out.Terminal || s.Err.Color || s.Out.Width() != 80 {
		t.Errorf("got %+v", s)
	}
	if _, err := io.WriteString(s.Out, "x"); err != nil {
		t.Error(err)
	}
}

func TestWidthIsAskedEachTime(t *testing.T) {
	width := 0
	s := newStream(io.Discard, true, nil, func() int { return width })
	if s.Width() != 80 {
		t.Errorf("unknown: %d", s.Width())
	}
	if width = 132; s.Width() != 132 {
		t.Errorf("resized: %d", s.Width())
	}
}
