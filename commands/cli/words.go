package cli

import (
	"cmp"
	"slices"
	"strings"
)

// ByName sorts what is printed by what it is called. Only names are moved
// while it sorts: what they name is large.
func ByName[T any](items []T, name func(T) string) []T {
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

// OrWords lists words for a sentence: a, b or c.
func OrWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// LastKey is the innermost part of a dotted key.
func LastKey(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// Prefixed is a text behind a prefix; nothing, if there is no text.
func Prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
