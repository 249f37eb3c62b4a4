package spec

import (
	"strconv"
	"strings"
)

// A path names a place in a document as TOML writes keys: bare ones joined by
// dots, others in quotes, and the places of lists in brackets, from 0:
// components."pci-bridge-0.4.0".component.downstream_bus. In JSON specs it is
// the path on the wire.

// join is the path of a key below another.
func join(path, key string) string {
	if !isBare(key) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func isBare(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
}

// at is the path of an element of a list.
func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// above is the path of what holds this one; empty for the whole.
func above(path string) string {
	quoted := false
	end := 0
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case (c == '.' || c == '[') && !quoted:
			end = i
		}
	}
	return path[:end]
}

// within says that a path is another, or lies below it.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (other == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

func componentPath(key string) string { return join("components", key) }

// bodyPath is a field of a component.
func bodyPath(key, field string) string {
	path := componentPath(key) + ".component"
	if field == "" {
		return path
	}
	return path + "." + field
}
