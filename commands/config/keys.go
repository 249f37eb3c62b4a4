package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Key is one setting, for the manual.
type Key struct {
	Name     string // "network.mtu"
	Variable string // "SLEDCTL_NETWORK_MTU"
	Default  string // empty: not set
	Written  string // the default, as it is written in the file
	Doc      string
	Values   string // which it takes, with their unit and bounds
	Example  string // one of them, as it is written in the environment
}

// variablePrefix opens the names of the variables that sledctl reads.
const variablePrefix = "SLEDCTL_"

// Keys lists all settings, in the order of the configuration file.
func Keys() []Key {
	var keys []Key
	entries := manual()
	for section := range reflect.TypeFor[Config]().Fields() {
		for field := range section.Type.Fields() {
			name := section.Tag.Get("toml") + "." + field.Tag.Get("toml")
			keys = append(keys, Key{
				Name: name, Variable: variable(name), Default: field.Tag.Get("default"), Written: written(field), Doc: field.Tag.Get("doc"),
				Values: entries[name].values, Example: entries[name].example,
			})
		}
	}
	return keys
}

// written is a setting's default as TOML.
func written(field reflect.StructField) string {
	value := field.Tag.Get("default")
	switch kind := field.Type.Kind(); {
	case kind == reflect.Slice && value == "":
		return "[]"
	case kind == reflect.Slice:
		return `["` + strings.ReplaceAll(value, ",", `", "`) + `"]`
	case value != "" && (kind == reflect.Bool || kind == reflect.Int || kind == reflect.Uint16 || kind == reflect.Float64):
		return value
	}
	return strconv.Quote(value)
}

// Setting is the value of a key that is in force.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // as it is written in the environment; empty: not set
	From  string `json:"from"`  // FILE:LINE, the variable, or default
}

// Settings lists the values of all keys, in the order of the configuration file. Of a
// command in storage.key it gives only the program: the rest may be secret. The errors are
// those of Load.
func Settings(s Source) ([]Setting, error) {
	_, l, err := load(s)
	if err != nil {
		return nil, err
	}
	var all []Setting
	for _, k := range Keys() {
		words, err := list(l.values[k.Name])
		if err != nil { // it is no list
			words = []string{fmt.Sprint(l.values[k.Name])}
		}
		value := strings.Join(words, ",")
		if words := strings.Fields(value); len(words) > 1 && strings.HasPrefix(value, "command:") {
			value = words[0] + " ..."
		}
		all = append(all, Setting{k.Name, value, l.where[k.Name]})
	}
	return all, nil
}

func variable(name string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// field is what it takes to read a setting; Keys is for the manual.
type field struct {
	kind  reflect.Type
	usual string // its default
}

// fields gives all settings, by key.
func fields() map[string]field {
	all := map[string]field{}
	for section := range reflect.TypeFor[Config]().Fields() {
		name := section.Tag.Get("toml")
		for f := range section.Type.Fields() {
			all[name+"."+f.Tag.Get("toml")] = field{kind: f.Type, usual: f.Tag.Get("default")}
		}
	}
	return all
}
