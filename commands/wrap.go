package commands

import (
	"strings"
	"unicode/utf8"
)

// wrap breaks the lines of a text again at blanks. Paragraphs stay apart; an
// indented line that is too long goes on below its second column.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == ' ' {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(hung(line, width) + "\n")
			column = 0
			continue
		}
		for word := range strings.FieldsSeq(line) {
			size := utf8.RuneCountInString(word)
			switch {
			case column == 0:
			case column+1+size > width:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += size
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// hung is an indented line, in lines of the width: what follows begins where its
// second column does, or a bit further in.
func hung(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	text := strings.TrimLeft(line, " ")
	at := len(line) - len(text) // of the first column
	rest := at + 2
	if gap := strings.Index(text, "  "); gap > 0 && at+gap < width/2 {
		rest = at + gap + len(text[gap:]) - len(strings.TrimLeft(text[gap:], " "))
		at = rest
	}
	first := wrap(line[at:], width-rest)
	return line[:at] + strings.ReplaceAll(first, "\n", "\n"+strings.Repeat(" ", rest))
}
