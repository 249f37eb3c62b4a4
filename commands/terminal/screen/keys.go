package screen

import (
	"strings"
	"unicode/utf8"
)

// keys are the names of what keys send that have no letter. Each terminal knows some of them
// (terminfo(5) of xterm, linux, screen, sun and sun-color).
var keys = map[string]string{
	"\r": "enter", "\n": "enter", "\t": "tab", "\x1b[Z": "backtab",
	"\x7f": "backspace", "\b": "backspace", "\x1b[3~": "backspace",
	"\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
	"\x1b[5~": "pgup", "\x1b[216z": "pgup", "\x1b[6~": "pgdn", "\x1b[222z": "pgdn",
	"\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[7~": "home", "\x1b[214z": "home",
	"\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end", "\x1b[8~": "end", "\x1b[220z": "end",
	"\x03": "^C", "\x15": "^U",
}

// decoded are the names of the keys that were typed, and what is the beginning of one. If it
// is all that comes, an ESC is the key of that name. Keys that have no name are left out.
func decoded(typed []byte, all bool) (named []string, rest []byte) {
	for len(typed) > 0 {
		n := sequence(typed)
		if n == 0 && !all {
			return named, typed
		}
		if n == 0 {
			if string(typed) == "\x1b" {
				named = append(named, "esc")
			}
			return named, nil
		}
		if name := nameOf(string(typed[:n])); name != "" {
			named = append(named, name)
		}
		typed = typed[n:]
	}
	return named, nil
}

// nameOf is the name of a key; empty: it has none.
func nameOf(sent string) string {
	if name, known := keys[sent]; known {
		return name
	}
	if strings.HasPrefix(sent, "\x1b") || sent < " " || !utf8.ValidString(sent) {
		return ""
	}
	return sent
}

// sequence is how many bytes the first key has sent; 0: there is more to come.
func sequence(typed []byte) int {
	switch {
	case typed[0] != '\x1b' && utf8.FullRune(typed):
		_, n := utf8.DecodeRune(typed)
		return n
	case typed[0] != '\x1b' || len(typed) == 1:
		return 0
	case typed[1] == '\x1b':
		return 1
	case typed[1] == 'O':
		return more(typed, 3)
	case typed[1] != '[':
		return 2 // with Alt
	}
	for i, b := range typed[2:] {
		if b >= 0x40 && b <= 0x7e { // the final byte (ECMA-48, 5.4)
			return i + 3
		}
	}
	return 0
}

// more is n, if so many bytes have come.
func more(typed []byte, n int) int {
	if len(typed) < n {
		return 0
	}
	return n
}
