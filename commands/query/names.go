package query

import (
	"path"
	"slices"
	"strings"
)

// IsPattern reports whether a word is a pattern of a shell, and no name: it has *, ? or [.
func IsPattern(word string) bool { return strings.ContainsAny(word, "*?[") }

// Names are words that name things, or are patterns that fit names.
type Names []string

// Check returns an *Error if one is a pattern that can fit nothing.
func (n Names) Check() error {
	for _, word := range n {
		if _, err := path.Match(word, ""); err != nil {
			return &Error{"the pattern", word, "a [ without its ]"}
		}
	}
	return nil
}

// Patterns reports whether one is a pattern.
func (n Names) Patterns() bool { return slices.ContainsFunc(n, IsPattern) }

// Plain are those that are no patterns.
func (n Names) Plain() []string {
	return slices.DeleteFunc(slices.Clone([]string(n)), IsPattern)
}

// Fit reports whether one of them fits one of the names that a thing has. If there are
// none, all do.
func (n Names) Fit(names ...string) bool {
	return len(n) == 0 || slices.ContainsFunc(n, func(word string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			fits, err := path.Match(word, name)
			return word == name || fits && err == nil
		})
	})
}
