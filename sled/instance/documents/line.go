package documents

import (
	"bytes"
	"encoding/json"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lineOf is the line on which a document, which has been decoded, has a key of its
// own, or with a row from 0 on, that row of the table: where its braces or its
// [[header]] begin. 0: not known.
func lineOf(data []byte, key string, row int) int {
	if isJSON(data) {
		return lineInJSON(data, key, row)
	}
	return lineInTOML(data, key, row)
}

func isJSON(data []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) }

func lineInJSON(data []byte, key string, row int) int {
	decoder := json.NewDecoder(bytes.NewReader(data))
	depth, line := 0, 0
	at, rows := "", 0 // the document's own key that we are behind, and the rows that it has had
	named := false    // of what stands at the first depth, every other token is a key
	for {
		token, err := decoder.Token()
		if err != nil {
			return line
		}
		here := lineAt(data, decoder.InputOffset())
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth == 2 && at == key && token == json.Delim('{') {
				if rows == row {
					return here
				}
				rows++
			}
			depth++
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth != 1 {
			continue
		}
		if name, is := token.(string); is && !named {
			at, named = name, true
			if name == key {
				line = here
			}
			continue
		}
		named = false // its value, or the end of it
	}
}

func lineInTOML(data []byte, key string, row int) int {
	var p unstable.Parser
	p.Reset(data)
	line, rows, inside := 0, 0, false
	for p.NextExpression() {
		e := p.Expression()
		name := e.Key()
		if !name.Next() {
			continue
		}
		here, is := p.Shape(name.Node().Raw).Start.Line, string(name.Node().Data) == key
		switch e.Kind {
		case unstable.ArrayTable:
			inside = true
			if is && rows == row {
				return here
			}
			if is {
				rows++
			}
		case unstable.Table:
			inside = true
		case unstable.KeyValue:
			if is && !inside {
				line = here
			}
		}
	}
	return line
}
