package commands

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/plan"
)

// bundlesOf are the files in which an operation kept what a zone could tell that
// it took away when it failed.
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
func (f failure) keptIn() string {
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

// logLine is a line of a log for people: those that Propolis writes are JSON
// (bunyan), of which most says where it runs.
func logLine(line string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(line), &fields) != nil || fields["msg"] == nil {
		return line
	}
	word := func(key string) string {
		var text string
		if json.Unmarshal(fields[key], &text) != nil {
			text = string(fields[key])
		}
		return text
	}
	words := []string{word("time"), levelWord(word("level")), word("msg")}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains([]string{"time", "level", "msg", "v", "name", "hostname", "pid"}, key) {
			words = append(words, key+"="+word(key))
		}
	}
	return joined(" ", words...)
}

// levelWord is a level of bunyan's.
func levelWord(level string) string {
	for number, name := range map[string]string{"10": "trace", "20": "debug", "30": "info", "40": "warn", "50": "error", "60": "fatal"} {
		if level == number {
			return name
		}
	}
	return level
}
