package console

import "testing"

func TestEscapes(t *testing.T) {
	for typed, want := range map[string]struct {
		sent string
		asks act
		rest string
	}{
		"ls\r":         {"ls\r", actNone, ""},
		"~.":           {"", actLeave, ""},
		"~.more":       {"", actLeave, "more"},
		"ls\r~.x":      {"ls\r", actLeave, "x"},
		"ls\n~.":       {"ls\n", actLeave, ""},
		"ls ~.\r":      {"ls ~.\r", actNone, ""}, // not at the beginning of a line
		"~~.\r~.":      {"~.\r", actLeave, ""},   // twice it is itself
		"~/bin\r~.":    {"~/bin\r", actLeave, ""},
		"~\r~.":        {"~\r", actLeave, ""},
		"x\r~?y":       {"x\r", actHelp, "y"},
		"\x03~.":       {"\x03~.", actNone, ""},
		"\xff\x00~\r":  {"\xff\x00~\r", actNone, ""},
		"~":            {"", actNone, ""}, // it waits for the next one
		"a\r\n~~~~.\r": {"a\r\n~~~.\r", actNone, ""},
	} {
		e := escapes{char: '~'}
		sent, asks, rest := e.feed([]byte(typed))
		if string(sent) != want.sent || asks != want.asks || string(rest) != want.rest {
			t.Errorf("%q: %q %v %q, want %q %v %q", typed, sent, asks, rest, want.sent, want.asks, want.rest)
		}
		// Byte by byte it is the same.
		e, all, got := escapes{char: '~'}, "", actNone
		for i := 0; i < len(typed) && got == actNone; i++ {
			var sent []byte
			sent, got, _ = e.feed([]byte{typed[i]})
			all += string(sent)
		}
		if all != want.sent || got != want.asks {
			t.Errorf("%q byte by byte: %q %v", typed, all, got)
		}
	}
	none := escapes{}
	if sent, asks, _ := none.feed([]byte("\r~.")); string(sent) != "\r~." || asks != actNone {
		t.Errorf("without an escape character: %q %v", sent, asks)
	}
}
