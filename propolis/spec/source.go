package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// source is a document as it was written: tables, lists, text, numbers and
// booleans, and the line of each path.
type source struct {
	root  map[string]any
	lines map[string]int
}

// maxDepth bounds how deep tables and lists may lie in each other.
const maxDepth = 64

// parseJSON reads a document of JSON whose root is an object. Numbers are
// json.Number. With an error there is a source too, if all that is wrong is that
// keys are there twice: the last ones count. Errors: *InvalidError.
func parseJSON(data []byte) (source, error) {
	p := jsonParser{data: data, decoder: json.NewDecoder(bytes.NewReader(data)), source: source{lines: map[string]int{}}}
	p.decoder.UseNumber()
	root := p.value("", 0)
	if _, err := p.decoder.Token(); p.failed == nil && !errors.Is(err, io.EOF) {
		p.fail(errors.New("there is more behind the document"))
	}
	if p.failed != nil {
		return source{}, &InvalidError{Problems: []Problem{*p.failed}}
	}
	table, ok := root.(map[string]any)
	if !ok {
		p.add("", "is no table")
	}
	p.root = table
	return p.source, p.err()
}

type jsonParser struct {
	source
	problems // what is said twice
	data     []byte
	decoder  *json.Decoder
	failed   *Problem
}

func (p *jsonParser) line() int { return lineAt(p.data, p.decoder.InputOffset()) }

func (p *jsonParser) fail(err error) {
	if p.failed != nil {
		return
	}
	p.failed = &Problem{Line: p.line(), What: err.Error()}
	if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		p.failed.Line = lineAt(p.data, broken.Offset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		p.failed.Line, p.failed.What = lineAt(p.data, int64(len(p.data))), "the document ends too early"
	}
}

func (p *jsonParser) token() json.Token {
	if p.failed != nil {
		return nil
	}
	token, err := p.decoder.Token()
	if err != nil {
		p.fail(err)
	}
	return token
}

func (p *jsonParser) value(path string, depth int) any {
	token := p.token()
	if _, known := p.lines[path]; !known {
		p.lines[path] = p.line()
	}
	if depth > maxDepth {
		p.fail(errors.New("it is nested too deeply"))
	}
	switch token {
	case json.Delim('{'):
		return p.table(path, depth)
	case json.Delim('['):
		list := []any{}
		for p.failed == nil && p.decoder.More() {
			list = append(list, p.value(at(path, len(list)), depth+1))
		}
		p.token()
		return list
	}
	return token
}

func (p *jsonParser) table(path string, depth int) map[string]any {
	table := map[string]any{}
	for p.failed == nil && p.decoder.More() {
		key, _ := p.token().(string)
		below := join(path, key)
		if _, twice := table[key]; twice && p.failed == nil {
			p.problems = append(p.problems, Problem{Path: below, Line: p.line(), What: "is there twice"})
		}
		p.lines[below] = p.line()
		table[key] = p.value(below, depth+1)
	}
	p.token()
	return table
}

// parseTOML reads a document of TOML. Numbers are int64 or float64. Errors:
// *InvalidError.
func parseTOML(data []byte) (source, error) {
	t := source{lines: map[string]int{}}
	err := toml.Unmarshal(data, &t.root)
	if broken, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := broken.Position()
		return source{}, &InvalidError{Problems: []Problem{{Line: line, What: strings.TrimPrefix(broken.Error(), "toml: ")}}}
	}
	if err != nil {
		return source{}, &InvalidError{Problems: []Problem{{What: strings.TrimPrefix(err.Error(), "toml: ")}}}
	}
	if t.root == nil {
		t.root = map[string]any{}
	}
	t.locate(data)
	return t, nil
}

// locate notes the lines of keys, of a document that can be read.
func (t source) locate(data []byte) {
	var p unstable.Parser
	p.Reset(data)
	table, counts := "", map[string]int{}
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			table = t.mark(&p, "", e.Key())
		case unstable.ArrayTable:
			list := t.mark(&p, "", e.Key())
			table = at(list, counts[list])
			t.lines[table] = t.lines[list]
			counts[list]++
		case unstable.KeyValue:
			t.locateValue(&p, t.mark(&p, table, e.Key()), e.Value())
		}
	}
}

func (t source) locateValue(p *unstable.Parser, path string, value *unstable.Node) {
	switch value.Kind {
	case unstable.InlineTable:
		for pairs := value.Children(); pairs.Next(); {
			t.locateValue(p, t.mark(p, path, pairs.Node().Key()), pairs.Node().Value())
		}
	case unstable.Array:
		i := 0
		for items := value.Children(); items.Next(); i++ {
			t.locateValue(p, at(path, i), items.Node())
		}
	}
}

// mark notes where a key stands, and is its path. Below a list of tables it is
// that of the list itself: what is in there is found by way of the list.
func (t source) mark(p *unstable.Parser, path string, key unstable.Iterator) string {
	for key.Next() {
		path = join(path, string(key.Node().Data))
		t.lines[path] = p.Shape(key.Node().Raw).Start.Line
	}
	return path
}

// line is that of a path, or of what holds it.
func (t source) line(path string) int {
	for {
		if line, ok := t.lines[path]; ok || path == "" {
			return line
		}
		path = above(path)
	}
}

func lineAt(data []byte, offset int64) int {
	end := min(offset, int64(len(data)), math.MaxInt32)
	return 1 + bytes.Count(data[:end], []byte("\n"))
}

// reader takes a tree apart, and notes all that is wrong with it.
type reader struct {
	source
	problems
}

func (r *reader) add(path, format string, args ...any) {
	r.problems = append(r.problems, Problem{Path: path, Line: r.line(path), What: fmt.Sprintf(format, args...)})
}

// table is a value as a table; nil if it is none.
func (r *reader) table(path string, v any) map[string]any {
	t, ok := v.(map[string]any)
	if !ok {
		r.wrong(path, v, "a table")
	}
	return t
}

// only refuses keys of a table that are not known.
func (r *reader) only(path string, table map[string]any, known ...string) {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if !slices.Contains(known, key) {
			r.add(join(path, key), "unknown key: known here are %s", strings.Join(known, ", "))
		}
	}
}

// wrong is a value that is not what it must be.
func (r *reader) wrong(path string, v any, want string) {
	r.add(path, "is %s: want %s", show(v), want)
}

// show is a value for messages, with its kind where that is not plain.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the text %.60q", v)
	case map[string]any:
		return "a table"
	case []any:
		return "a list"
	}
	return fmt.Sprint(v)
}

// sortByLine puts problems in the order in which one meets them in a document.
func sortByLine(all []Problem) {
	slices.SortStableFunc(all, func(a, b Problem) int { return a.Line - b.Line })
}
