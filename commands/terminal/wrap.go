package terminal

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Wrapped breaks a text at its blanks into lines of at most width columns. A word
// that is wider is broken behind a slash if it has one, else where the line ends:
// nothing is cut.
func Wrapped(text string, width int) []string {
	width = max(width, 1)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && ansi.StringWidth(line)+1+ansi.StringWidth(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for line = word; ansi.StringWidth(line) > width; {
			head := headOf(line, width)
			lines, line = append(lines, head), line[len(head):]
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Folded breaks a line at its blanks, and leaves them as they are: what follows begins in the
// fifth column. A word that is wider stays whole.
func Folded(line string, width int) string {
	const indent = "    "
	var b strings.Builder
	for ansi.StringWidth(line) > width {
		text := len(line) - len(strings.TrimLeft(line, " "))
		at := strings.LastIndexByte(ansi.Truncate(line, width+1, ""), ' ')
		if at <= text {
			if at = strings.IndexByte(line[text:], ' ') + text; at < text {
				break
			}
		}
		b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = indent + strings.TrimLeft(line[at:], " ")
	}
	return b.String() + line
}

// headOf is the beginning of a word that fits into a line.
func headOf(word string, width int) string {
	head := ansi.Truncate(word, width, "")
	if at := strings.LastIndexByte(head, '/'); at > 0 {
		return head[:at+1]
	}
	if head == "" { // one letter is wider than the line
		_, size := utf8.DecodeRuneInString(word)
		return word[:size]
	}
	return head
}

// hanging is a text in lines of the width, of which all but the first are indented.
func hanging(text string, width int, indent string) []string {
	lines := Wrapped(text, width)
	if len(lines) < 2 {
		return lines
	}
	rest := Wrapped(strings.TrimSpace(strings.TrimPrefix(joined(text), lines[0])), width-len(indent))
	for i, line := range rest {
		rest[i] = indent + line
	}
	return append(lines[:1], rest...)
}

// joined is a text with single blanks.
func joined(text string) string { return strings.Join(strings.Fields(text), " ") }
