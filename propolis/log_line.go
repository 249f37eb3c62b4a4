package propolis

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// levels are the numbers of bunyan's levels, the format that a server logs in
// (slog-bunyan; trentm/node-bunyan, "Levels").
func levels() map[string]string {
	return map[string]string{"10": "trace", "20": "debug", "30": "info", "40": "warn", "50": "error", "60": "fatal"}
}

// LogLine is a line that a server has logged.
type LogLine struct {
	Time  time.Time // zero: it does not tell
	Level string    // trace, debug, info, warn, error, fatal, or what else it says
	// Text is the message, then all other fields in the order of their names, without those
	// that say where the server runs.
	Text string
	// Fields are those that Text ends with, by name, as JSON.
	Fields map[string]json.RawMessage
}

// ParseLogLine reads a line of bunyan's JSON; false for any other.
func ParseLogLine(line string) (parsed LogLine, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(line), &fields) != nil || fields["msg"] == nil {
		return parsed, false
	}
	word := func(key string) string {
		var text string
		if json.Unmarshal(fields[key], &text) != nil {
			text = string(fields[key])
		}
		return text
	}
	parsed.Level = word("level")
	if name, known := levels()[parsed.Level]; known {
		parsed.Level = name
	}
	parsed.Time, _ = time.Parse(time.RFC3339, word("time"))
	words := []string{word("msg")}
	parsed.Fields = map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains([]string{"time", "level", "msg", "v", "name", "hostname", "pid"}, key) {
			words = append(words, key+"="+word(key))
			parsed.Fields[key] = fields[key]
		}
	}
	parsed.Text = strings.Join(words, " ")
	return parsed, true
}

// ReadableLine returns a line of a server's log for people: time, level and text. Any
// other line is returned as it is.
func ReadableLine(line string) string {
	parsed, ok := ParseLogLine(line)
	if !ok {
		return line
	}
	words := []string{parsed.Level, parsed.Text}
	if !parsed.Time.IsZero() {
		words = append([]string{parsed.Time.Format(time.RFC3339Nano)}, words...)
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}
