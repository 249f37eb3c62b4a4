package propolis

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// decoder reads JSON as serde does with the attributes that propolis' types
// carry: required fields, unknown fields refused where a type denies them,
// ranges of integers. It keeps the first fault; after it every result is empty.
type decoder struct {
	fault string
	path  string // where the fault is
}

// parse reads a whole body into maps, slices, strings, bools and json.Numbers,
// and lets read take it apart. Of a key that occurs twice the last value counts.
func parse(body []byte, read func(*decoder, any)) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	err := d.Decode(&v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			return badRequest("unable to parse JSON body: trailing characters at %s", position(body, d.InputOffset()))
		}
	}
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return badRequest("unable to parse JSON body: expected value at %s", position(body, syntax.Offset))
	case err != nil:
		return badRequest("unable to parse JSON body: EOF while parsing a value at %s", position(body, int64(len(body))))
	}
	var reader decoder
	read(&reader, v)
	if reader.fault == "" {
		return nil
	}
	// Guess: where serde says a fault of meaning is. It knows better for what
	// it has not buffered.
	return badRequest("unable to parse JSON body: %s: %s at %s",
		cmp.Or(strings.TrimPrefix(reader.path, "."), "."), reader.fault, position(body, int64(len(body))))
}

// position is serde_json's "line L column C".
func position(body []byte, offset int64) string {
	head := body[:min(offset, int64(len(body)))]
	line := 1 + bytes.Count(head, []byte("\n"))
	return fmt.Sprintf("line %d column %d", line, len(head)-1-bytes.LastIndexByte(head, '\n'))
}

func (d *decoder) fail(path, format string, args ...any) {
	if d.fault == "" {
		d.path, d.fault = path, fmt.Sprintf(format, args...)
	}
}

// wrong is serde's "invalid type".
func (d *decoder) wrong(path string, v any, want string) {
	got := "null"
	switch v := v.(type) {
	case bool:
		got = fmt.Sprintf("boolean `%t`", v)
	case json.Number:
		got = "integer `" + v.String() + "`"
	case string:
		got = strconv.Quote(v)
		got = "string " + got
	case []any:
		got = "sequence"
	case map[string]any:
		got = "map"
	}
	d.fail(path, "invalid type: %s, expected %s", got, want)
}

// object takes a map apart. A field that ends in "?" may be absent. strict
// refuses fields that are not listed.
func (d *decoder) object(v any, path, what string, strict bool, fields ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		d.wrong(path, v, "struct "+what)
		return nil
	}
	var names []string
	for _, f := range fields {
		names = append(names, strings.TrimSuffix(f, "?"))
	}
	if strict {
		for _, key := range sortedKeys(m) {
			if !slices.Contains(names, key) {
				d.fail(path+"."+key, "unknown field `%s`, expected %s", key, oneOf(names))
			}
		}
	}
	for _, f := range fields {
		if _, has := m[f]; !has && !strings.HasSuffix(f, "?") {
			d.fail(path, "missing field `%s`", f)
		}
	}
	return m
}

// oneOf lists names as serde does.
func oneOf(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = "`" + n + "`"
	}
	switch len(names) {
	case 1:
		return quoted[0]
	case 2:
		return quoted[0] + " or " + quoted[1]
	}
	return "one of " + strings.Join(quoted, ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (d *decoder) str(v any, path string) string {
	s, ok := v.(string)
	if !ok {
		d.wrong(path, v, "a string")
	}
	return s
}

func (d *decoder) boolean(v any, path string) bool {
	b, ok := v.(bool)
	if !ok {
		d.wrong(path, v, "a boolean")
	}
	return b
}

// unsigned reads a u8, u32 or u64.
func (d *decoder) unsigned(v any, path string, bits int) uint64 {
	number, ok := v.(json.Number)
	kind := "u" + strconv.Itoa(bits)
	if !ok {
		d.wrong(path, v, kind)
		return 0
	}
	n, err := strconv.ParseUint(number.String(), 10, bits)
	if err != nil {
		if strings.ContainsAny(number.String(), ".eE") {
			d.fail(path, "invalid type: floating point `%s`, expected %s", number, kind)
		}
		d.fail(path, "invalid value: integer `%s`, expected %s", number, kind)
	}
	return n
}

func (d *decoder) uuid(v any, path string) string {
	s := d.str(v, path)
	id, err := uuid.Parse(s)
	if err != nil && d.fault == "" {
		d.fail(path, "UUID parsing failed: invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-]")
	}
	return id.String()
}

// variant reads one of several names.
func (d *decoder) variant(v any, path string, names ...string) string {
	s := d.str(v, path)
	if d.fault == "" && !slices.Contains(names, s) {
		d.fail(path, "unknown variant `%s`, expected %s", s, oneOf(names))
	}
	return s
}

// key reads a component's name. One that can be read as a UUID, in any of its
// forms, is kept in the canonical one (SpecKey in propolis-api-types).
func (d *decoder) key(v any, path string) string { return canonicalKey(d.str(v, path)) }

func canonicalKey(text string) string {
	if id, err := uuid.Parse(text); err == nil {
		return id.String()
	}
	return text
}

// compareKeys orders components: UUIDs before names.
func compareKeys(a, b string) int {
	_, errA := uuid.Parse(a)
	_, errB := uuid.Parse(b)
	if (errA == nil) != (errB == nil) {
		if errA == nil {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}
