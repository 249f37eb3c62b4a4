package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/plan"
)

// bundlesOf returns the files in which a failed operation kept the evidence from a
// zone before it removed that zone.
func bundlesOf(o plan.Outcome) []string {
	var files []string
	for _, a := range o.Kept {
		if step, ok := a.Step.(bundle.Take); ok {
			files = append(files, step.Path())
		}
	}
	return files
}

// keptIn says where the rest is.
func (f Failure) keptIn() string {
	switch len(f.Bundles) {
	case 0:
		return ""
	case 1:
		return "what its zone could tell is in " + f.Bundles[0]
	}
	return fmt.Sprintf("what the zones could tell is in %d bundles: sledctl zone bundle list", len(f.Bundles))
}

func joined(between string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), between)
}
