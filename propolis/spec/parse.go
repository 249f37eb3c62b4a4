package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Document is a spec as somebody wrote it down: a complete one in JSON, or a
// config in the TOML of propolis-cli.
type Document struct {
	File string // its name, for messages; may be empty
	Spec InstanceSpec
	// CPUs and Memory say whether the document speaks of them. In a config it
	// need not.
	CPUs, Memory bool
	// Warnings are what was read as it was meant, which is not as other tools
	// read it, and what was passed over.
	Warnings []Problem

	source source
	origin map[string]string // where parts of the spec come from, if not from their own path
	unread []Problem         // what could not be read as it was meant
	board  []string          // the paths that hold nothing of any component
}

// ParseOptions are what a config leaves open.
type ParseOptions struct {
	CPUID  string // which of its CPUID profiles to take; empty: what it says itself, else none
	HyperV bool   // the guest is to see Hyper-V
}

// Parse reads a spec: JSON if it opens with '{', else TOML. The error tells all
// that is wrong with it as a document, with the lines; Check, of a document with
// such an error too, tells that and all that a server would not take. Errors:
// *InvalidError.
func Parse(data []byte, o ParseOptions) (Document, error) {
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return parseSpec(data)
	}
	return parseConfig(data, o)
}

// Check is InstanceSpec.Check, with the document's own keys and lines, and in
// front of it all that is wrong with the document itself. Of what could not be
// read no more is said, nor is anything said to be missing that may be in there.
func (d Document) Check(on Server) error {
	if d.source.root == nil {
		return d.Invalid(d.unread)
	}
	all := append(slices.Clone(d.unread), d.Place(append(d.Spec.check(on, d.gaps()), d.Spec.sealedProblems()...))...)
	if len(d.unread) > 0 {
		sortByLine(all)
	}
	return d.Invalid(all)
}

// gaps are what the problems of reading leave of the spec.
func (d Document) gaps() gaps {
	g := gaps{keys: map[string]bool{}}
	for _, u := range d.unread {
		g.parts = g.parts || !slices.ContainsFunc(d.board, func(path string) bool { return within(u.Path, path) })
		for key := range d.Spec.Components {
			if within(u.Path, d.from(componentPath(key))) {
				g.keys[key] = true
			}
		}
	}
	return g
}

// Invalid is the error of these problems; nil if there is none.
func (d Document) Invalid(all []Problem) error {
	if len(all) == 0 {
		return nil
	}
	return &InvalidError{d.File, all}
}

// AllWarnings are the warnings, and behind them those of the spec, with their lines.
func (d Document) AllWarnings() []Problem {
	return append(slices.Clone(d.Warnings), d.Place(d.Spec.Warnings())...)
}

// Place puts problems of the spec where they stand in the document. Of one that
// could not be read, it leaves out those of the parts that were not, and of the
// board's that the document leaves open.
func (d Document) Place(all []Problem) []Problem {
	var placed []Problem
	for _, p := range all {
		open := len(d.unread) > 0 && (p.Path == "board.cpus" && !d.CPUs || p.Path == "board.memory_mb" && !d.Memory)
		p.Path = d.from(p.Path)
		p.Line = d.source.line(p.Path)
		if !open && !slices.ContainsFunc(d.unread, func(u Problem) bool { return within(p.Path, u.Path) || within(u.Path, p.Path) }) {
			placed = append(placed, p)
		}
	}
	return placed
}

// from is where a path of the spec, or the nearest above it, comes from.
func (d Document) from(path string) string {
	for part := path; part != ""; part = above(part) {
		if origin, ok := d.origin[part]; ok {
			return origin
		}
	}
	return path
}

// parseSpec reads a complete spec. It may lie in what it comes and goes in: a
// request for a machine, an answer of a server, and what sledctl prints of it.
func parseSpec(data []byte) (Document, error) {
	s, err := parseJSON(data)
	if s.root == nil {
		return illegible(err), err
	}
	r := reader{source: s}
	if twice, ok := errors.AsType[*InvalidError](err); ok {
		r.problems = twice.Problems
	}
	path, table := r.unwrap()
	d := Document{source: s, CPUs: true, Memory: true, origin: map[string]string{}, board: []string{join(path, "board"), join(path, "smbios")}}
	r.fill(path, table, reflect.ValueOf(&d.Spec).Elem())
	if path != "" {
		d.nest(path)
	}
	sortByLine(r.problems)
	d.unread = r.problems
	return d, r.err()
}

// illegible is a document that is not even one.
func illegible(err error) Document {
	invalid, _ := errors.AsType[*InvalidError](err)
	return Document{unread: invalid.Problems}
}

// nest makes each place that is known one below path.
func (d Document) nest(path string) {
	for known := range d.source.lines {
		if rest, ok := strings.CutPrefix(known, path+"."); ok {
			d.origin[rest] = known
		}
	}
}

// unwrap finds the spec in the document.
func (r *reader) unwrap() (path string, spec map[string]any) {
	spec = r.root
	for _, step := range []string{"init", "value", "spec", "value", "spec"} {
		below, ok := spec[step].(map[string]any)
		if _, is := spec["board"]; is || !ok {
			continue
		}
		path, spec = join(path, step), below
	}
	return path, spec
}

// fill reads a value into a part of the spec as its type says: a key whose tag
// says omitempty may be left out or null, all others are required, and no
// others are known.
func (r *reader) fill(path string, v any, to reflect.Value) {
	switch to.Interface().(type) {
	case Components:
		r.components(path, v, to)
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		r.fillStruct(path, v, to)
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		r.fill(path, v, to.Elem())
	case reflect.Slice, reflect.Array:
		r.fillList(path, v, to)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		bits := to.Type().Bits()
		n, ok := v.(json.Number)
		u, err := strconv.ParseUint(n.String(), 10, bits)
		if !ok || err != nil {
			r.wrong(path, v, fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<bits-1))
			return
		}
		to.SetUint(u)
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			r.wrong(path, v, "a text")
		}
		to.SetString(s)
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			r.wrong(path, v, "true or false")
		}
		to.SetBool(b)
	default:
		panic(fmt.Sprintf("a spec has no %s", to.Type()))
	}
}

func (r *reader) fillStruct(path string, v any, to reflect.Value) {
	table := r.table(path, v)
	if table == nil {
		return
	}
	var known []string
	for i := range to.NumField() {
		name, option, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		known = append(known, name)
		value, there := table[name]
		switch {
		case !there && option == "":
			r.add(join(path, name), "is missing")
		case value == nil && option != "":
		default:
			r.fill(join(path, name), value, to.Field(i))
		}
	}
	r.only(path, table, known...)
}

func (r *reader) fillList(path string, v any, to reflect.Value) {
	list, ok := v.([]any)
	switch {
	case !ok:
		r.wrong(path, v, "a list")
		return
	case to.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
	case len(list) != to.Len():
		r.add(path, "has %d elements: want %d", len(list), to.Len())
		return
	}
	for i, value := range list {
		r.fill(at(path, i), value, to.Index(i))
	}
}

func (r *reader) components(path string, v any, to reflect.Value) {
	table := r.table(path, v)
	if table == nil {
		return
	}
	parts := make(Components, len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		where := join(path, key)
		part := r.table(where, table[key])
		if part == nil {
			continue
		}
		r.only(where, part, "type", "component")
		if kind := r.kind(where, part); kind != nil {
			read := reflect.New(reflect.TypeOf(kind)).Elem()
			r.fill(where+".component", part["component"], read)
			parts[key] = read.Interface().(Component)
		}
	}
	to.Set(reflect.ValueOf(parts))
}

// kind is the type of a component; nil if there is none such.
func (r *reader) kind(path string, part map[string]any) Component {
	tag, ok := part["type"].(string)
	var names []string
	for _, kind := range kinds() {
		if kind.Type() == tag {
			return kind
		}
		names = append(names, kind.Type())
	}
	if !ok {
		r.add(path+".type", "is missing: want %s", strings.Join(names, ", "))
		return nil
	}
	r.add(path+".type", "there is no component %q: want %s", tag, strings.Join(names, ", "))
	return nil
}
