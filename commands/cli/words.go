package cli

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// ByName sorts what is printed by what it is called.
func ByName[T any](items []T, name func(T) string) []T {
	sorted := make([]T, len(items))
	for i, at := range OrderOf(len(items), func(i int) string { return name(items[i]) }) {
		sorted[i] = items[at]
	}
	return sorted
}

// OrderOf is the order of so many things by their names, those of one name as they come.
// Only names are moved while it sorts, and most are told apart by their first bytes: there
// may be ten thousand, and what they name is large.
func OrderOf(n int, name func(i int) string) []int {
	type entry struct {
		first uint64
		name  string
		at    int
	}
	entries := make([]entry, n)
	for i := range entries {
		var first [8]byte
		called := name(i)
		copy(first[:], called)
		entries[i] = entry{binary.BigEndian.Uint64(first[:]), called, i}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.at, b.at))
	})
	order := make([]int, n)
	for i := range entries {
		order[i] = entries[i].at
	}
	return order
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
