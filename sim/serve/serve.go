// Package serve is what the simulated HTTP servers have in common, whatever they
// are made with.
package serve

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Match compares a path with the pattern of a route, of which a segment of the
// form {name} takes any that is not empty, and gives these by their names.
func Match(pattern, path string) (params map[string]string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(strings.TrimSuffix(path, "/"), "/")
	if len(want) != len(got) {
		return nil, false
	}
	params = map[string]string{}
	for i, w := range want {
		switch {
		case strings.HasPrefix(w, "{") && got[i] != "":
			params[strings.Trim(w, "{}")] = got[i]
		case w != got[i]:
			return nil, false
		}
	}
	return params, true
}

// JSON is a value as serde_json and JSON.stringify write it: compact, nothing
// escaped for HTML. It panics over what is no JSON: what a server says is its
// own.
func JSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Refusal is the body of an answer that is an error, of servers that are made
// with dropshot (HttpErrorResponseBody in dropshot/src/error.rs).
type Refusal struct {
	RequestID string `json:"request_id"`
	Code      string `json:"error_code,omitempty"`
	Message   string `json:"message"`
}
