package commands

import (
	"cmp"
	"slices"
	"strings"
)

// byName sorts what is printed by what it is called.
func byName[T any](items []T, name func(T) string) []T {
	slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	return items
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
