package terminal

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "\x1b[31mred\x1b[0m": "?[31mred?[0m", "one\ntwo\r\nthree\n": "one; two; three", "a\tb": "a b", "back\rover": "back?over",
		"\u009b31m": "?31m", "\xff": "?", "": "",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestEscaped(t *testing.T) {
	for text, want := range map[string]string{"plain": "plain", "a\tb\nc\\": `a\tb\nc\\`, "\x1b[0m": `\x1b[0m`, "\u009b": `\x9b`, "ünï": "ünï"} {
		if got := escaped(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
