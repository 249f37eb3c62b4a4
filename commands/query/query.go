// Package query picks and orders what a command lists: Parse reads an expression of
// --filter, Order the keys of --sort, and Names what may be named by patterns.
//
// What can be asked for is a list of fields, one for each key. All is pure.
package query

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Field is what a key means. One of the functions is set, and makes it a text, a
// number, a time or a flag.
type Field[T any] struct {
	Key string
	// Text may have several values: an expression holds if it holds of one of them.
	Text func(T) []string
	// Number is compared as a number, and written as a size where Size is set, or as Read
	// reads it, if that is.
	Number func(T) uint64
	Size   bool
	Read   func(string) (uint64, error)
	// Time is compared by its age. The zero time is not known, and nothing holds of it.
	Time func(T) time.Time
	// Flag is true or false.
	Flag func(T) bool
}

// Error is an expression or a key that cannot be meant: a usage error.
type Error struct {
	Flag, Value string // "--filter", "memroy>4G"
	Problem     string
}

// Error says what is wrong with it.
func (e *Error) Error() string { return fmt.Sprintf("%s %q: %s", e.Flag, e.Value, e.Problem) }

func (*Error) Kind() fault.Kind { return fault.Usage }

// find is the field of a key. The problem is empty if there is one.
func find[T any](fields []Field[T], key string) (f Field[T], problem string) {
	var known []string
	for _, f := range fields {
		if f.Key == key {
			return f, ""
		}
		known = append(known, f.Key)
	}
	if near := naming.Nearest(key, known); near != "" {
		return f, fmt.Sprintf("unknown key %q: did you mean %q?", key, near)
	}
	return f, fmt.Sprintf("unknown key %q: want one of %s", key, strings.Join(known, ", "))
}

// Order reads the keys of --sort, NAME or -NAME, by comma. A text is ordered as Natural
// does, and what is not known comes last.
func Order[T any](fields []Field[T], keys string) (func(a, b T) int, error) {
	var by []func(a, b T) int
	for word := range strings.SplitSeq(keys, ",") {
		key, falling := strings.CutPrefix(strings.TrimSpace(word), "-")
		f, problem := find(fields, key)
		if problem != "" {
			return nil, &Error{"--sort", keys, problem}
		}
		compare := f.compare
		if falling {
			compare = func(a, b T) int { return f.compare(b, a) }
		}
		by = append(by, compare)
	}
	return func(a, b T) int {
		for _, compare := range by {
			if c := compare(a, b); c != 0 {
				return c
			}
		}
		return 0
	}, nil
}

func (f Field[T]) compare(a, b T) int {
	switch {
	case f.Number != nil:
		return cmp.Compare(f.Number(a), f.Number(b))
	case f.Time != nil:
		return f.Time(a).Compare(f.Time(b))
	case f.Flag != nil:
		return cmp.Compare(bit(f.Flag(a)), bit(f.Flag(b)))
	}
	return Natural(strings.Join(f.Text(a), " "), strings.Join(f.Text(b), " "))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Natural compares two names as people count: dev-2 is before dev-10.
func Natural(a, b string) int {
	restA, restB := a, b
	for restA != "" && restB != "" {
		numberA, numberB := digits(restA), digits(restB)
		if numberA == "" || numberB == "" {
			if c := cmp.Compare(restA[0], restB[0]); c != 0 {
				return c
			}
			restA, restB = restA[1:], restB[1:]
			continue
		}
		shortA, shortB := strings.TrimLeft(numberA, "0"), strings.TrimLeft(numberB, "0")
		if c := cmp.Or(cmp.Compare(len(shortA), len(shortB)), strings.Compare(shortA, shortB)); c != 0 {
			return c
		}
		restA, restB = restA[len(numberA):], restB[len(numberB):]
	}
	return cmp.Or(cmp.Compare(len(restA), len(restB)), strings.Compare(a, b))
}

// digits is the number that a text begins with.
func digits(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}
