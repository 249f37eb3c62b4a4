package emulator_test

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/docs/pictures/emulator"
)

// A screen shows what a terminal would.
func TestAScreenShowsWhatIsWritten(t *testing.T) {
	for _, c := range []struct {
		name  string
		said  []string
		wants string
	}{
		{"lines", []string{"one\r\ntwo\r\n"}, "one\ntwo"},
		{"a line that is written again", []string{"one\r\x1b[Ktwo"}, "two"},
		{"the end of a line erased", []string{"ones\x1b[2D\x1b[K"}, "on"},
		{"a line feed at the lower edge", []string{"1\r\n2\r\n3\r\n4"}, "2\n3\n4"},
		{"what does not fit in a line", []string{"0123456789ab"}, "0123456789\nab"},
		{"the cursor put somewhere", []string{"\x1b[2;3Hx"}, "\n  x"},
		{"a sequence in two parts", []string{"a\x1b[", "31mb"}, "ab"},
		{"a letter in two parts", []string{"a\xc3", "\xa9"}, "aé"},
		{"everything erased", []string{"one\r\ntwo\x1b[2J\x1b[Hx"}, "x"},
		{"the second screen", []string{"one\x1b[?1049hx"}, "x"},
		{"a title", []string{"\x1b]0;sledctl\aone"}, "one"},
	} {
		s := emulator.New(10, 3)
		for _, said := range c.said {
			if err := s.Write(said); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if is := strings.TrimRight(s.Text(), "\n"); is != c.wants {
			t.Errorf("%s: %q, not %q", c.name, is, c.wants)
		}
	}
	if err := emulator.New(10, 3).Write("\x1b[48;5;3mx"); err == nil {
		t.Error("a background is taken for nothing")
	}
	if err := emulator.New(10, 3).Write("\x1b[5S"); err == nil {
		t.Error("a sequence that nobody knows is taken for nothing")
	}
}
