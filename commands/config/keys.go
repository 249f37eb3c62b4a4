package config

import (
	"reflect"
	"strings"
)

// Key is one setting, for the manual.
type Key struct {
	Name     string // "network.mtu"
	Variable string // "SLEDCTL_NETWORK_MTU"
	Default  string // empty: not set
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
	for _, section := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		for _, field := range reflect.VisibleFields(section.Type) {
			name := section.Tag.Get("toml") + "." + field.Tag.Get("toml")
			keys = append(keys, Key{
				Name: name, Variable: variable(name), Default: field.Tag.Get("default"), Doc: field.Tag.Get("doc"),
				Values: entries[name].values, Example: entries[name].example,
			})
		}
	}
	return keys
}

func variable(name string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// types gives the type of each setting.
func types() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, section := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		for _, field := range reflect.VisibleFields(section.Type) {
			types[section.Tag.Get("toml")+"."+field.Tag.Get("toml")] = field.Type
		}
	}
	return types
}
