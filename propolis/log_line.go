package propolis

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// levels are the numbers of bunyan's levels, the format that a server logs in
// (slog-bunyan; trentm/node-bunyan, "Levels").
func levels() map[string]string {
	return map[string]string{"10": "trace", "20": "debug", "30": "info", "40": "warn", "50": "error", "60": "fatal"}
}

// ReadableLine returns a line of a server's log for people: time, level and
// message of bunyan's JSON, then all other fields in the order of their names,
// without those that say where the server runs. Any other line is returned as it is.
func ReadableLine(line string) string {
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
	level := word("level")
	if name, ok := levels()[level]; ok {
		level = name
	}
	words := []string{word("time"), level, word("msg")}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains([]string{"time", "level", "msg", "v", "name", "hostname", "pid"}, key) {
			words = append(words, key+"="+word(key))
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}
