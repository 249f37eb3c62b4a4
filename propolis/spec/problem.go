package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// Problem is one thing that is wrong with a spec, or with the document that it
// was read from.
type Problem struct {
	Path string `json:"path"`           // of the offending key; empty: the whole
	Line int    `json:"line,omitempty"` // of the document, from 1; 0: none
	What string `json:"problem"`
}

// String is line, path and what is wrong.
func (p Problem) String() string {
	text := p.What
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	return text
}

// InvalidError is a spec with problems: all of them, in a fixed order.
type InvalidError struct {
	File     string // that it was read from, if it was
	Problems []Problem
}

// Error lists them all.
func (e *InvalidError) Error() string { return e.Summary() + ": " + e.Listed() }

func (*InvalidError) Kind() fault.Kind { return fault.Usage }

// Listed is the problems without what they are of.
func (e *InvalidError) Listed() string {
	all := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = p.String()
	}
	return strings.Join(all, "; ")
}

// Summary is the error without the problems.
func (e *InvalidError) Summary() string {
	name := cmp.Or(e.File, "instance spec")
	if len(e.Problems) == 1 {
		return name
	}
	return fmt.Sprintf("%s: %d problems", name, len(e.Problems))
}

type problems []Problem

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, Problem{Path: path, What: fmt.Sprintf(format, args...)})
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &InvalidError{Problems: slices.Clone(p)}
}
