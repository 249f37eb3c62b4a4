package config

import (
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
)

// decode is parse as viper's decoder calls it, for each value that it stores.
// Sections come along too.
func (l *loader) decode(_, to reflect.Type, value any) (any, error) {
	if to.Kind() == reflect.Struct && to != reflect.TypeFor[Reservoir]() && !reflect.PointerTo(to).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return value, nil
	}
	if reflect.TypeOf(value) == to {
		return value, nil
	}
	return l.parse(to, value)
}

// parse turns a value into one of the type of its setting. Values are text,
// but for numbers and lists in the file.
func (l *loader) parse(t reflect.Type, value any) (any, error) {
	switch t {
	case reflect.TypeFor[string]():
		return text(value)
	case reflect.TypeFor[[]string]():
		return list(value)
	case reflect.TypeFor[int]():
		n, err := number(value, strconv.IntSize)
		return int(n), err
	case reflect.TypeFor[uint16]():
		n, err := number(value, strconv.IntSize)
		if err == nil && n != int64(uint16(n)) {
			err = fmt.Errorf("%d is not between 0 and 65535", n)
		}
		return uint16(n), err
	case reflect.TypeFor[bool]():
		return flag(value)
	case reflect.TypeFor[Size]():
		return l.size(value)
	case reflect.TypeFor[Reservoir]():
		return l.reservoir(value)
	}
	return unmarshalled(t, value)
}

func text(value any) (string, error) {
	s, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("%v is not text: put it in quotes", value)
	}
	return s, nil
}

// flag reads true and false.
func flag(value any) (bool, error) {
	switch value {
	case true, "true":
		return true, nil
	case false, "false":
		return false, nil
	}
	return false, fmt.Errorf("%v is neither true nor false", value)
}

// list reads an array of the file, or words separated by commas.
func list(value any) ([]string, error) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return nil, nil
		}
		words := strings.Split(v, ",")
		for i := range words {
			words[i] = strings.TrimSpace(words[i])
		}
		return words, nil
	case []any:
		var words []string
		for _, e := range v {
			word, err := text(e)
			if err != nil {
				return nil, err
			}
			words = append(words, word)
		}
		return words, nil
	}
	return nil, fmt.Errorf(`%v is not a list of texts: ["a", "b"]`, value)
}

func number(value any, bits int) (int64, error) {
	switch v := value.(type) {
	case int64:
		return v, nil
	case string:
		if n, err := strconv.ParseInt(v, 10, bits); err == nil {
			return n, nil
		}
		return 0, fmt.Errorf("%q is not a whole number", v)
	}
	return 0, fmt.Errorf("%v is not a whole number", value)
}

// size reads a size with its unit; a number in the file is bytes.
func (l *loader) size(value any) (Size, error) {
	switch v := value.(type) {
	case int64:
		if v >= 0 {
			return Size(v), nil
		}
	case string:
		if l.source.ParseSize == nil {
			return 0, errors.New("sizes cannot be read here")
		}
		n, err := l.source.ParseSize(v)
		return Size(n), err
	}
	return 0, fmt.Errorf(`%v is not a size: "2G"`, value)
}

// reservoir reads auto, a percentage or a size.
func (l *loader) reservoir(value any) (Reservoir, error) {
	words, ok := value.(string)
	percent, isPart := strings.CutSuffix(words, "%")
	switch {
	case ok && words == "auto":
		return Reservoir{Auto: true}, nil
	case ok && isPart:
		n, err := strconv.Atoi(percent)
		if err != nil || n < 1 || n > 99 {
			return Reservoir{}, fmt.Errorf("%q is not from 1%% to 99%%", words)
		}
		return Reservoir{Percent: n}, nil
	}
	size, err := l.size(value)
	return Reservoir{Size: size}, err
}

// unmarshalled is for addresses and prefixes.
func unmarshalled(t reflect.Type, value any) (any, error) {
	s, ok := value.(string)
	target := reflect.New(t)
	into, can := target.Interface().(encoding.TextUnmarshaler)
	if !can {
		return nil, fmt.Errorf("a setting of type %v cannot be read", t)
	}
	if !ok || into.UnmarshalText([]byte(s)) != nil {
		return nil, fmt.Errorf("%v is not %s", value, example(t))
	}
	return target.Elem().Interface(), nil
}

func example(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[netip.Prefix]():
		return `an address with the length of its prefix: "fd00:1::1/64"`
	case reflect.TypeFor[Duration]():
		return `a time above 0: "90s", "5m", "24h"`
	}
	return `an IP address: "fd00:1::1"`
}
