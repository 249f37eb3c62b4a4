package template

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"text/template"
)

// ErrIndex is an index that its list or text has not.
var ErrIndex = errors.New("index out of range")

var (
	errField = errors.New("no such field")
	errTypes = errors.New("values of these types cannot be used so")
)

// function is one that a template can call.
type function struct {
	least, most int // arguments; most 0: any number
	do          func([]reflect.Value) (reflect.Value, error)
	// decides reports whether an argument is the result, whatever follows; nil: none is.
	decides func(reflect.Value) bool
}

// functions are those that text/template has. There is nothing that call could call.
func functions() map[string]function {
	last := func(args []reflect.Value) (reflect.Value, error) { return args[len(args)-1], nil }
	return map[string]function{
		"and":      {least: 1, do: last, decides: func(v reflect.Value) bool { return !truth(v) }},
		"or":       {least: 1, do: last, decides: truth},
		"not":      {1, 1, func(args []reflect.Value) (reflect.Value, error) { return reflect.ValueOf(!truth(args[0])), nil }, nil},
		"len":      {1, 1, func(args []reflect.Value) (reflect.Value, error) { return length(args[0]) }, nil},
		"index":    {1, 0, func(args []reflect.Value) (reflect.Value, error) { return index(args[0], args[1:]) }, nil},
		"slice":    {1, 4, func(args []reflect.Value) (reflect.Value, error) { return slice(args[0], args[1:]) }, nil},
		"print":    texts(fmt.Sprint),
		"println":  texts(fmt.Sprintln),
		"html":     texts(template.HTMLEscaper),
		"js":       texts(template.JSEscaper),
		"urlquery": texts(template.URLQueryEscaper),
		"printf":   {1, 0, printf, nil},
		"call":     {1, 0, func([]reflect.Value) (reflect.Value, error) { return reflect.Value{}, errTypes }, nil},
		"eq":       {2, 0, func(args []reflect.Value) (reflect.Value, error) { return anyEqual(args[0], args[1:]) }, nil},
		"ne":       compares(func(a, b reflect.Value) (bool, error) { is, err := equal(a, b); return !is, err }),
		"lt":       compares(less),
		"le":       compares(func(a, b reflect.Value) (bool, error) { return either(a, b) }),
		"gt":       compares(func(a, b reflect.Value) (bool, error) { is, err := either(a, b); return !is, err }),
		"ge":       compares(func(a, b reflect.Value) (bool, error) { is, err := less(a, b); return !is, err }),
	}
}

// texts is a function that makes a text of any values.
func texts(do func(...any) string) function {
	return function{0, 0, func(args []reflect.Value) (reflect.Value, error) { return reflect.ValueOf(do(plain(args)...)), nil }, nil}
}

func plain(args []reflect.Value) []any {
	all := make([]any, len(args))
	for i, v := range args {
		if v.IsValid() {
			all[i] = v.Interface()
		}
	}
	return all
}

func printf(args []reflect.Value) (reflect.Value, error) {
	if args[0].Kind() != reflect.String {
		return reflect.Value{}, errTypes
	}
	return reflect.ValueOf(fmt.Sprintf(args[0].String(), plain(args[1:])...)), nil
}

func length(v reflect.Value) (reflect.Value, error) {
	if v.Kind() != reflect.Slice && v.Kind() != reflect.String {
		return reflect.Value{}, errTypes
	}
	return reflect.ValueOf(v.Len()), nil
}

// index is a value within lists, and texts.
func index(v reflect.Value, at []reflect.Value) (reflect.Value, error) {
	if !v.IsValid() {
		return v, errTypes
	}
	for _, i := range at {
		if v.Kind() != reflect.Slice && v.Kind() != reflect.String {
			return v, errTypes
		}
		n, err := place(i, v.Len()-1)
		if err != nil {
			return v, err
		}
		v = v.Index(n)
	}
	return v, nil
}

// place is a number as an index, of at most that.
func place(v reflect.Value, most int) (int, error) {
	switch {
	case v.CanInt() && v.Int() >= 0 && v.Int() <= int64(most):
		return int(v.Int()), nil
	case v.CanUint() && most >= 0 && v.Uint() <= uint64(most):
		return int(v.Uint()), nil
	case v.CanInt() || v.CanUint():
		return 0, ErrIndex
	}
	return 0, errTypes
}

// slice is a part of a list, or of a text.
func slice(v reflect.Value, at []reflect.Value) (reflect.Value, error) {
	most := 0
	switch {
	case v.Kind() == reflect.Slice:
		most = v.Cap()
	case v.Kind() == reflect.String && len(at) < 3:
		most = v.Len()
	default:
		return v, errTypes
	}
	ends := []int{0, v.Len(), most}
	for i := range at {
		var err error
		if ends[i], err = place(at[i], most); err != nil {
			return v, err
		}
	}
	switch {
	case ends[0] > ends[1] || ends[1] > ends[2]:
		return v, errors.New("the end of a part lies before its start")
	case len(at) == 3:
		return v.Slice3(ends[0], ends[1], ends[2]), nil
	}
	return v.Slice(ends[0], ends[1]), nil
}

func compares(do func(a, b reflect.Value) (bool, error)) function {
	return function{2, 2, func(args []reflect.Value) (reflect.Value, error) {
		is, err := do(args[0], args[1])
		return reflect.ValueOf(is), err
	}, nil}
}

// anyEqual reports whether one of several values equals the first.
func anyEqual(v reflect.Value, others []reflect.Value) (reflect.Value, error) {
	for _, other := range others {
		if is, err := equal(v, other); is || err != nil {
			return reflect.ValueOf(is), err
		}
	}
	return reflect.ValueOf(false), nil
}

// order compares whole numbers, fractions and texts; false: they are of other types, or of two.
func order(a, b reflect.Value) (n int, ok bool) {
	switch {
	case a.CanInt() && b.CanInt():
		return cmp.Compare(a.Int(), b.Int()), true
	case a.CanUint() && b.CanUint():
		return cmp.Compare(a.Uint(), b.Uint()), true
	case a.CanInt() && b.CanUint(): // a byte of a text
		return cmp.Compare(a.Int(), int64(b.Uint())), true
	case a.CanUint() && b.CanInt():
		return cmp.Compare(int64(a.Uint()), b.Int()), true
	case a.CanFloat() && b.CanFloat():
		return cmp.Compare(a.Float(), b.Float()), true
	case a.Kind() == reflect.String && b.Kind() == reflect.String:
		return cmp.Compare(a.String(), b.String()), true
	}
	return 0, false
}

func equal(a, b reflect.Value) (bool, error) {
	if n, ok := order(a, b); ok {
		return n == 0, nil
	}
	switch {
	case !a.IsValid() || !b.IsValid():
		return empty(a) && empty(b), nil
	case a.Kind() != b.Kind():
		return false, errTypes
	case a.Kind() == reflect.Slice && (a.IsNil() || b.IsNil()):
		return a.IsNil() && b.IsNil(), nil
	case !b.Type().Comparable():
		return false, errTypes
	}
	return a.Interface() == b.Interface(), nil
}

// empty reports whether a value is nil.
func empty(v reflect.Value) bool { return !v.IsValid() || v.Kind() == reflect.Slice && v.IsNil() }

func less(a, b reflect.Value) (bool, error) {
	n, ok := order(a, b)
	if !ok {
		return false, errTypes
	}
	return n < 0, nil
}

// either is less or equal.
func either(a, b reflect.Value) (bool, error) {
	if is, err := less(a, b); is || err != nil {
		return is, err
	}
	return equal(a, b)
}
