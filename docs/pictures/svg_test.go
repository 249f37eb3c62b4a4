package main

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/docs/pictures/emulator"
)

// A picture has every word where it stands, and how it looks.
func TestAPictureHasWhatTheScreenHas(t *testing.T) {
	s := emulator.New(30, 3)
	if err := s.Write("\x1b[1mNAME\x1b[0m  STATE\r\n<web1>  \x1b[31mFAILED\x1b[0m of it"); err != nil {
		t.Fatal(err)
	}
	drawn := svg("list", s)
	for _, want := range []string{
		">$ list<", `class="b">NAME<`, `x="12.0" y="51.0" textLength="33.6" class="b">`, ">STATE<", ">&lt;web1&gt;<", `class="c1">FAILED<`, ">of it<",
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("%q is not in %s", want, drawn)
		}
	}
}
