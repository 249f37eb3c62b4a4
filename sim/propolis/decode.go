package propolis

import (
	"bytes"
	_ "embed" // of the types
	"encoding/json"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/serve"
)

//go:embed types.txt
var typesText string

// structure is a type of types.txt.
type structure struct {
	strict bool // it refuses fields that it does not have
	union  bool
	fields [][2]string // names and kinds; of a union, behind the first two, its variants
}

// decoder reads JSON as serde does with the attributes that propolis' types
// carry: required fields, unknown fields refused where a type denies them,
// ranges of numbers. It keeps the first fault and where that is.
type decoder struct {
	types  map[string]structure
	spoken version
	fault  string
}

// decode reads a whole body as a kind of types.txt, as the version that the
// client speaks has it, and puts its canonical form into a Go value: absent
// options are null. Of a key that occurs twice the last value counts.
//
// Guess place-of-a-wrong-json-value: the place that "unable to parse JSON body" names.
// Check: `curl` with such requests
func decode(body []byte, kind string, spoken version, to any) error {
	d := decoder{types: map[string]structure{}, spoken: spoken}
	numbers := strings.NewReplacer(":u8", ":0-255", "/u8", "/0-255", ":u32", ":0-4294967295", ":u64", ":0-18446744073709551615")
	for line := range strings.Lines(numbers.Replace(typesText)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		name := strings.TrimRight(words[0], "!|")
		t := structure{strict: strings.Contains(words[0], "!"), union: strings.HasSuffix(words[0], "|")}
		for _, w := range words[1:] {
			field, kind, _ := strings.Cut(w, ":")
			t.fields = append(t.fields, [2]string{field, kind})
		}
		d.types[name] = t
	}
	var v any
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	err := in.Decode(&v)
	if _, more := in.Token(); err != nil || more != io.EOF {
		return badRequest("unable to parse JSON body: it is not one JSON value")
	}
	v = d.value(v, "", kind)
	if d.fault != "" {
		return badRequest("unable to parse JSON body: %s", d.fault)
	}
	return json.Unmarshal(serve.JSON(v), to)
}

func (d *decoder) fail(path, fault string) {
	if d.fault == "" {
		d.fault = strings.TrimPrefix(path, ".") + ": " + fault
	}
}

// value is the canonical form of a value of a kind.
func (d *decoder) value(v any, path, kind string) any {
	name, of, _ := strings.Cut(kind, "/")
	text, isText := v.(string)
	fits := isText
	switch {
	case name == "map":
		return d.mapping(v, path, of)
	case strings.HasPrefix(name, "list"):
		return d.list(v, path, strings.TrimPrefix(name, "list"), of)
	case name == "bool":
		_, fits = v.(bool)
	case name == "text":
	case name == "key":
		v = canonicalKey(text)
	case name == "uuid":
		id, err := uuid.Parse(text)
		v, fits = id.String(), err == nil
	case name == "address":
		_, err := netip.ParseAddrPort(text)
		fits = err == nil
	case name == "word":
		if fits = slices.Contains(strings.Split(of, ","), text); isText && !fits {
			d.fail(path, "unknown variant `"+text+"`")
		}
	case strings.Contains(name, "-"):
		fits = within(v, name)
	default:
		return d.structure(v, path, name)
	}
	if !fits {
		d.fail(path, "invalid value, expected "+kind)
	}
	return v
}

// within says whether a value is a whole number from A to B of "A-B".
func within(v any, bounds string) bool {
	number, _ := v.(json.Number)
	n, err := strconv.ParseUint(number.String(), 10, 64)
	low, high, _ := strings.Cut(bounds, "-")
	least, _ := strconv.ParseUint(low, 10, 64)
	most, _ := strconv.ParseUint(high, 10, 64)
	return err == nil && n >= least && n <= most
}

func (d *decoder) mapping(v any, path, of string) any {
	m, ok := v.(map[string]any)
	if !ok {
		d.fail(path, "invalid type, expected a map")
	}
	out := map[string]any{}
	for _, key := range sortedKeys(m) {
		out[canonicalKey(key)] = d.value(m[key], path+"."+key, of)
	}
	return out
}

func (d *decoder) list(v any, path, length, of string) any {
	list, ok := v.([]any)
	if !ok || length != "" && length != strconv.Itoa(len(list)) {
		d.fail(path, "invalid type or length, expected an array")
	}
	out := []any{}
	for _, e := range list {
		out = append(out, d.value(e, path, of))
	}
	return out
}

// structure takes a map apart.
func (d *decoder) structure(v any, path, name string) any {
	if name == "InstanceSpec" && d.spoken.Before(2) {
		name = "InstanceSpecV0"
	}
	t := d.types[name]
	fields := t.fields
	m, ok := v.(map[string]any)
	if !ok {
		d.fail(path, "invalid type, expected struct "+name)
		return nil
	}
	if t.union {
		fields = d.variant(t, m, path)
	}
	out := map[string]any{}
	for _, f := range fields {
		name, there := d.since(f[0])
		key, optional := strings.CutSuffix(name, "?")
		given, has := m[key]
		switch {
		case !there:
		case optional && given == nil:
			out[key] = nil
		case !has:
			d.fail(path, "missing field `"+key+"`")
		default:
			out[key] = d.value(given, path+"."+key, f[1])
		}
	}
	for _, key := range sortedKeys(m) {
		if _, known := out[key]; t.strict && !known {
			d.fail(path, "unknown field `"+key+"`")
		}
	}
	return out
}

// variant are the two fields of a union, by what its tag names.
func (d *decoder) variant(t structure, m map[string]any, path string) [][2]string {
	tag, contents := t.fields[0][0], t.fields[1][0]
	var names []string
	for _, v := range t.fields[2:] {
		name, there := d.since(v[0])
		if !there {
			continue
		}
		if names = append(names, name); m[tag] == name && v[1] != "" {
			return [][2]string{{tag, "text"}, {contents, v[1]}}
		}
	}
	return [][2]string{{tag, "word/" + strings.Join(names, ",")}}
}

// since takes the version off a name, and says whether the one that is spoken has it.
func (d *decoder) since(text string) (name string, there bool) {
	name, from, limited := strings.Cut(text, "@")
	major, _ := strconv.ParseUint(from, 10, 64)
	return name, !limited || !d.spoken.Before(major)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// canonicalKey is a component's name. One that can be read as a UUID, in any of its
// forms, is kept in the canonical one (SpecKey in propolis-api-types).
func canonicalKey(text string) string {
	if id, err := uuid.Parse(text); err == nil {
		return id.String()
	}
	return text
}

// compareKeys orders components: UUIDs before names.
func compareKeys(a, b string) int {
	rank := func(key string) string {
		if _, err := uuid.Parse(key); err == nil {
			return "0" + key
		}
		return "1" + key
	}
	return strings.Compare(rank(a), rank(b))
}
