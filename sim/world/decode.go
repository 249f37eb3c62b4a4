package world

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Most of what a command on a large sled does is to read it, and encoding/json takes
// for that five times as long as what follows, which reads only what encoding/json
// writes for our types, and shares the text of an entry among its strings. It says
// no to all else, and decodeInto asks encoding/json.

// shape reads a value of one type; false: it is not as it would be written.
type shape func(v reflect.Value, in *input) bool

// shapes are those of the types that were met. They are not for several goroutines.
type shapes map[reflect.Type]shape

// input is a text, and how far it was read.
type input struct {
	text string
	at   int
}

// read decodes a whole text into what a pointer leads to, which must be zero.
func (all shapes) read(text string, into any) bool {
	in := &input{text: text}
	v := reflect.ValueOf(into).Elem()
	return all.of(v.Type())(v, in) && in.at == len(in.text)
}

func (in *input) takes(c byte) bool {
	if in.at < len(in.text) && in.text[in.at] == c {
		in.at++
		return true
	}
	return false
}

func (in *input) null() bool {
	if strings.HasPrefix(in.text[in.at:], "null") {
		in.at += len("null")
		return true
	}
	return false
}

// quoted is a string with its quotes, and whether anything is escaped in it.
func (in *input) quoted() (s string, escaped, ok bool) {
	if in.at >= len(in.text) || in.text[in.at] != '"' {
		return "", false, false
	}
	for i := in.at + 1; i < len(in.text); i++ {
		switch in.text[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			s, in.at = in.text[in.at:i+1], i+1
			return s, escaped, true
		}
	}
	return "", false, false
}

func (in *input) string() (string, bool) {
	s, escaped, ok := in.quoted()
	switch {
	case !ok:
		return "", false
	case !escaped:
		return s[1 : len(s)-1], true
	}
	var plain string
	err := json.Unmarshal([]byte(s), &plain)
	return plain, err == nil
}

func (in *input) number() string {
	from := in.at
	for in.at < len(in.text) && (in.text[in.at] >= '0' && in.text[in.at] <= '9' || in.text[in.at] == '-') {
		in.at++
	}
	return in.text[from:in.at]
}

// list reads what stands between two brackets, separated by commas.
func (in *input) list(open, end byte, one func() bool) bool {
	if !in.takes(open) {
		return false
	}
	if in.takes(end) {
		return true
	}
	for one() {
		if in.takes(end) {
			return true
		}
		if !in.takes(',') {
			return false
		}
	}
	return false
}

func (all shapes) of(t reflect.Type) shape {
	if s, known := all[t]; known {
		return s
	}
	all[t] = func(v reflect.Value, in *input) bool { return all[t](v, in) } // a type that leads to itself
	all[t] = all.make(t)
	return all[t]
}

func (all shapes) make(t reflect.Type) shape {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return readTime
	case t == reflect.TypeFor[[]byte]():
		return readBytes
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return func(reflect.Value, *input) bool { return false }
	}
	switch t.Kind() {
	case reflect.String:
		return func(v reflect.Value, in *input) bool {
			s, ok := in.string()
			v.SetString(s)
			return ok
		}
	case reflect.Bool:
		return func(v reflect.Value, in *input) bool {
			word := "false"
			if in.at < len(in.text) && in.text[in.at] == 't' {
				word = "true"
			}
			v.SetBool(word == "true")
			ok := strings.HasPrefix(in.text[in.at:], word)
			in.at += len(word)
			return ok
		}
	case reflect.Int, reflect.Int64, reflect.Int32:
		return func(v reflect.Value, in *input) bool {
			n, err := strconv.ParseInt(in.number(), 10, t.Bits())
			v.SetInt(n)
			return err == nil
		}
	case reflect.Uint, reflect.Uint64, reflect.Uint32:
		return func(v reflect.Value, in *input) bool {
			n, err := strconv.ParseUint(in.number(), 10, t.Bits())
			v.SetUint(n)
			return err == nil
		}
	case reflect.Pointer:
		return all.pointer(t)
	case reflect.Slice:
		return all.slice(t)
	case reflect.Map:
		return all.mapping(t)
	case reflect.Struct:
		return all.structure(t)
	}
	return func(reflect.Value, *input) bool { return false }
}

func readTime(v reflect.Value, in *input) bool {
	s, escaped, ok := in.quoted()
	return ok && !escaped && v.Addr().Interface().(*time.Time).UnmarshalJSON([]byte(s)) == nil
}

func readBytes(v reflect.Value, in *input) bool {
	if in.null() {
		return true
	}
	s, escaped, ok := in.quoted()
	if !ok || escaped {
		return false
	}
	data, err := base64.StdEncoding.DecodeString(s[1 : len(s)-1])
	v.SetBytes(data)
	return err == nil
}

func (all shapes) pointer(t reflect.Type) shape {
	to := all.of(t.Elem())
	return func(v reflect.Value, in *input) bool {
		if in.null() {
			return true
		}
		v.Set(reflect.New(t.Elem()))
		return to(v.Elem(), in)
	}
}

func (all shapes) slice(t reflect.Type) shape {
	element := all.of(t.Elem())
	return func(v reflect.Value, in *input) bool {
		if in.null() {
			return true
		}
		v.Set(reflect.MakeSlice(t, 0, 0))
		n := 0
		return in.list('[', ']', func() bool {
			v.Grow(1)
			v.SetLen(n + 1)
			n++
			return element(v.Index(n-1), in)
		})
	}
}

func (all shapes) mapping(t reflect.Type) shape {
	if t.Key().Kind() != reflect.String {
		return func(reflect.Value, *input) bool { return false }
	}
	element := all.of(t.Elem())
	return func(v reflect.Value, in *input) bool {
		if in.null() {
			return true
		}
		v.Set(reflect.MakeMap(t))
		words, plain := v.Interface().(map[string]string)
		return in.list('{', '}', func() bool {
			key, ok := in.string()
			if !ok || !in.takes(':') {
				return false
			}
			if plain {
				words[key], ok = in.string()
				return ok
			}
			one := reflect.New(t.Elem()).Elem()
			if !element(one, in) {
				return false
			}
			v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), one)
			return true
		})
	}
}

type field struct {
	name string
	read shape
	at   int
}

// structure expects the members in the order in which they are written, and finds
// them in any.
func (all shapes) structure(t reflect.Type) shape {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if f.Anonymous {
			return func(reflect.Value, *input) bool { return false }
		}
		fields = append(fields, field{name, all.of(f.Type), i})
	}
	return func(v reflect.Value, in *input) bool {
		next := 0
		return in.list('{', '}', func() bool {
			key, ok := in.string()
			if !ok || !in.takes(':') {
				return false
			}
			for range fields {
				f := fields[next%len(fields)]
				next++
				if f.name == key {
					return f.read(v.Field(f.at), in)
				}
			}
			return false
		})
	}
}
