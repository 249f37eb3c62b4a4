package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// readTOML gives the values of the file by key, and the lines of the keys.
func readTOML(data []byte, name string) (map[string]any, positions, error) {
	var document map[string]any
	if err := toml.Unmarshal(data, &document); err != nil {
		where := name
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := at.Position()
			where = fmt.Sprintf("%s:%d", name, line)
		}
		return nil, nil, &Error{Where: where, Problem: "not TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
	}
	values := map[string]any{}
	flatten(values, "", document)
	return values, locate(data), nil
}

// flatten joins the names of tables and keys with dots.
func flatten(values map[string]any, above string, table map[string]any) {
	for key, value := range table {
		if below, isTable := value.(map[string]any); isTable && len(below) > 0 {
			flatten(values, above+key+".", below)
			continue
		} else if isTable && isSection(above+key) {
			continue // an empty section
		}
		values[above+key] = value
	}
}

// positions are line numbers, from 1, by key and by table.
type positions map[string]int

// of is the line of a key, or of what it is in.
func (p positions) of(key string) int {
	for {
		if line, ok := p[key]; ok {
			return line
		}
		at := strings.LastIndex(key, ".")
		if at < 0 {
			return 1
		}
		key = key[:at]
	}
}

// locate finds the lines. The document has been read before, so it is valid.
func locate(data []byte) positions {
	lines := positions{}
	var parser unstable.Parser
	parser.Reset(data)
	table := ""
	for parser.NextExpression() {
		e := parser.Expression()
		var names []string
		line := 0
		for key := e.Key(); key.Next(); {
			node := key.Node()
			names = append(names, string(node.Data))
			line = 1 + bytes.Count(data[:node.Raw.Offset], []byte("\n"))
		}
		name := strings.Join(names, ".")
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = name + "."
			lines[name] = line
		case unstable.KeyValue:
			lines[table+name] = line
		}
	}
	return lines
}
