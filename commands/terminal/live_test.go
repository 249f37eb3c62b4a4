package terminal

import "testing"

// A view that gets shorter leaves nothing of the one before, and no line feed is bare:
// a raw terminal does not return for it.
func TestALiveViewIsDrawnInPlace(t *testing.T) {
	s, out, _ := Buffers(Pretended{Width: 80, Environ: []string{"TERM=xterm"}})
	l, err := NewLive(s.In, s.Out)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a\nb\n", "c\n"} {
		if err := l.Draw(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[?1049h\x1b[?25l" + "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J" + "\x1b[Hc\x1b[K\x1b[J" + "\x1b[?25h\x1b[?1049l"
	if out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}
