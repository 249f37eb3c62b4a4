package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// Source is what the settings are made of.
type Source struct {
	Files []File // the first that has a setting counts
	// Env is as os.Environ. SLEDCTL_SECTION_KEY sets section.key; an empty one
	// counts as not set. Lists are separated by commas.
	Env []string

	// Nearest picks the known word that was probably meant; nil: no hints.
	Nearest func(word string, known []string) string
	// ParseSize reads "2G".
	ParseSize func(string) (uint64, error)
}

// File is a configuration file.
type File struct {
	Name string // for messages
	Data []byte // TOML
	// Late says that it is found only once the sled's disks are there: what it
	// takes to find them cannot stand in it.
	Late bool
}

// early are the sections that count before the sled's disks are there.
func early() []string { return []string{"host", "paths"} }

// Load reads and checks the settings. Its errors are *Error, joined if there
// are several.
func Load(s Source) (Config, error) {
	c, _, err := load(s)
	return c, err
}

// load is Load, with where the values come from.
func load(s Source) (Config, loader, error) {
	all := fields()
	l := loader{
		source: s, fields: all, values: make(map[string]any, len(all)), given: map[string]any{},
		where: make(map[string]string, len(all)), wrong: map[string]bool{},
	}
	for key := range all {
		l.byDefault(key)
	}
	var layers []layer
	for _, f := range slices.Backward(s.Files) {
		values, lines, err := readTOML(f.Data, f.Name)
		if err != nil {
			return Config{}, loader{}, err
		}
		layers = append(layers, layer{values: values, late: f.Late, where: func(key string) string { return fmt.Sprintf("%s:%d", f.Name, lines.of(key)) }})
	}
	layers = append(layers, layer{values: fromEnvironment(s.Env), where: variable})
	for _, layer := range layers {
		for _, key := range slices.Sorted(maps.Keys(layer.values)) {
			l.check(layer, key)
		}
	}
	c, err := l.decoded()
	if err != nil {
		return Config{}, l, joined(append(l.problems, err))
	}
	l.problems = append(l.problems, c.validate(l.where, l.partial)...)
	if len(l.problems) > 0 {
		return Config{}, l, joined(l.problems)
	}
	return c, l, nil
}

// byDefault notes that the default of a setting is in force.
func (l *loader) byDefault(key string) { l.values[key], l.where[key] = l.fields[key].usual, "default" }

// decoded is the settings that the values make. One that is wrong by itself counts as
// not given, so that the rest is checked, too.
func (l *loader) decoded() (c Config, err error) {
	for key := range l.wrong {
		delete(l.values, key)
		delete(l.given, key)
		if _, known := l.fields[key]; known {
			l.byDefault(key)
		}
	}
	l.fill(reflect.ValueOf(&c).Elem())
	if len(l.given) > 0 { // viper takes longer than all the rest
		v := viper.New()
		if err := v.MergeConfigMap(nested(l.given)); err != nil {
			return c, fmt.Errorf("merging settings: %w", err)
		}
		if err := v.UnmarshalExact(&c, viper.DecodeHook(l.decode), func(d *mapstructure.DecoderConfig) { d.TagName = "toml" }); err != nil {
			return c, fmt.Errorf("reading settings: %w", err)
		}
	}
	c.Propolis.resolve()
	return c, nil
}

// fill gives the settings that nothing sets their defaults.
func (l *loader) fill(sections reflect.Value) {
	for section, keys := range sections.Fields() {
		for field, into := range keys.Fields() {
			key := section.Tag.Get("toml") + "." + field.Tag.Get("toml")
			if _, given := l.given[key]; given {
				continue
			}
			value, err := l.parse(field.Type, l.values[key])
			if err != nil {
				l.refuse(&Error{Key: key, Where: l.where[key], Problem: err.Error()})
				continue
			}
			into.Set(reflect.ValueOf(value))
		}
	}
}

// partial says whether a setting of a section was wrong by itself, so that it is not known
// how the others fit together.
func (l *loader) partial(section string) bool {
	for key := range l.wrong {
		if in, _, _ := strings.Cut(key, "."); in == section {
			return true
		}
	}
	return false
}

// layer is one source of values, by key.
type layer struct {
	values map[string]any
	where  func(key string) string
	late   bool
}

// fromEnvironment takes the variables that name a section. SLEDCTL_HOST and
// others that are no settings are left alone.
func fromEnvironment(environ []string) map[string]any {
	values := map[string]any{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		rest, ours := strings.CutPrefix(name, variablePrefix)
		section, key, has := strings.Cut(strings.ToLower(rest), "_")
		if !ours || !has || value == "" || !isSection(section) {
			continue
		}
		values[section+"."+key] = value
	}
	return values
}

func isSection(name string) bool {
	for field := range reflect.TypeFor[Config]().Fields() {
		if field.Tag.Get("toml") == name {
			return true
		}
	}
	return false
}

// nested makes sections of keys, as viper wants them.
func nested(values map[string]any) map[string]any {
	sections := map[string]any{}
	for name, value := range values {
		section, key, _ := strings.Cut(name, ".")
		keys, ok := sections[section].(map[string]any)
		if !ok {
			keys = map[string]any{}
			sections[section] = keys
		}
		keys[key] = value
	}
	return sections
}

// loader checks values as they come, so that each problem is told with the
// place that it comes from.
type loader struct {
	source   Source
	fields   map[string]field
	values   map[string]any    // in force, as they were written
	given    map[string]any    // those that are no defaults
	where    map[string]string // where the value in force comes from
	wrong    map[string]bool   // the keys with a problem
	problems []error
}

// refuse notes what is wrong with a key.
func (l *loader) refuse(e *Error) {
	l.problems, l.wrong[e.Key] = append(l.problems, e), true
}

func (l *loader) check(from layer, key string) {
	where := from.where(key)
	l.values[key], l.given[key], l.where[key] = from.values[key], from.values[key], where
	field, known := l.fields[key]
	if !known && isSection(key) {
		l.refuse(&Error{Key: key, Where: where, Problem: "is a section: [" + key + "]"})
		return
	}
	if !known {
		l.refuse(&Error{Key: key, Where: where, Problem: "unknown key", Nearest: l.nearest(key)})
		return
	}
	if section, _, _ := strings.Cut(key, "."); from.late && slices.Contains(early(), section) {
		l.refuse(&Error{Key: key, Where: where, Problem: "counts before the sled's disks are there: it belongs in /etc/sledctl/config.toml"})
		return
	}
	if _, err := l.parse(field.kind, from.values[key]); err != nil {
		l.refuse(&Error{Key: key, Where: where, Problem: err.Error()})
	}
}

// nearest also finds a key that was put into the wrong section.
func (l *loader) nearest(key string) string {
	if l.source.Nearest == nil {
		return ""
	}
	known := make([]string, 0, len(l.fields))
	for _, k := range Keys() {
		known = append(known, k.Name)
	}
	last := key[strings.LastIndex(key, ".")+1:]
	elsewhere := ""
	for _, k := range known {
		if strings.HasSuffix(k, "."+last) {
			elsewhere = k
		}
	}
	return cmp.Or(elsewhere, l.source.Nearest(key, known))
}
