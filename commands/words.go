package commands

import (
	"cmp"
	"slices"
	"strings"
)

// byName sorts what is printed by what it is called. Only names are moved to
// and fro: what they name is large.
func byName[T any](items []T, name func(T) string) []T {
	type entry struct {
		name string
		at   int
	}
	order := make([]entry, len(items))
	for i, item := range items {
		order[i] = entry{name(item), i}
	}
	slices.SortFunc(order, func(a, b entry) int { return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.at, b.at)) })
	sorted := make([]T, len(items))
	for i, e := range order {
		sorted[i] = items[e.at]
	}
	return sorted
}

// orWords lists words for a sentence: a, b or c.
func orWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// lastKey is the innermost part of a dotted key.
func lastKey(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// wrap breaks the lines of a text again at blanks; paragraphs stay apart, and
// indented lines are left as they are.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == ' ' {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line + "\n")
			column = 0
			continue
		}
		for word := range strings.FieldsSeq(line) {
			switch {
			case column == 0:
			case column+1+len(word) > width:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
