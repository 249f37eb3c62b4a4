package query

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/terminal"
)

// Operators are those of an expression, the longer ones first.
func Operators() []string { return []string{"!=", "!~", "<=", ">=", "=", "~", "<", ">"} }

// Parse reads an expression: KEY OPERATOR VALUE, or the key of a flag alone. The
// operators ~ and !~ take a regular expression, those of an order take numbers, sizes
// and ages. Now is what ages are counted from. The error is an *Error.
func Parse[T any](fields []Field[T], expression string, now time.Time) (func(T) bool, error) {
	key, operator, value := split(expression)
	f, problem := find(fields, key)
	if problem != "" {
		return nil, &Error{"--filter", expression, problem}
	}
	var holds func(T) bool
	var err error
	switch {
	case operator == "" && f.Flag != nil:
		return f.Flag, nil
	case operator == "":
		err = fmt.Errorf("want %s, one of %s, and a value", key, strings.Join(Operators(), " "))
	case f.Flag != nil:
		holds, err = f.flag(operator, value)
	case f.Number != nil:
		holds, err = f.number(operator, value)
	case f.Time != nil:
		holds, err = f.age(operator, value, now)
	default:
		holds, err = f.text(operator, value)
	}
	if err != nil {
		return nil, &Error{"--filter", expression, err.Error()}
	}
	return holds, nil
}

// split takes an expression apart at its first operator.
func split(expression string) (key, operator, value string) {
	at := strings.IndexAny(expression, "!=~<>")
	if at < 0 {
		return strings.TrimSpace(expression), "", ""
	}
	rest := expression[at:]
	for _, o := range Operators() {
		if value, ok := strings.CutPrefix(rest, o); ok {
			return strings.TrimSpace(expression[:at]), o, strings.TrimSpace(value)
		}
	}
	return strings.TrimSpace(expression), "", "" // a ! alone
}

// ordered says whether a comparison has the outcome that an operator wants; false for
// those of texts.
func ordered(operator string) (func(compared int) bool, bool) {
	holds, ok := map[string]func(int) bool{
		"=": func(c int) bool { return c == 0 }, "!=": func(c int) bool { return c != 0 },
		"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
		">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
	}[operator]
	return holds, ok
}

func (f Field[T]) text(operator, value string) (func(T) bool, error) {
	var is func(string) bool
	switch operator {
	case "=", "!=":
		is = func(s string) bool { return s == value }
	case "~", "!~":
		e, err := regexp.Compile(value)
		if err != nil {
			return nil, fmt.Errorf("%q is no regular expression: %w", value, err)
		}
		is = e.MatchString
	default:
		return nil, fmt.Errorf("%s is a text, which has no %s", f.Key, operator)
	}
	not := strings.HasPrefix(operator, "!")
	return func(item T) bool { return slices.ContainsFunc(f.Text(item), is) != not }, nil
}

func (f Field[T]) number(operator, value string) (func(T) bool, error) {
	holds, ok := ordered(operator)
	if !ok {
		return nil, fmt.Errorf("%s is a number, which has no %s", f.Key, operator)
	}
	parse := func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }
	switch {
	case f.Size:
		parse = terminal.ParseSize
	case f.Read != nil:
		parse = f.Read
	}
	wanted, err := parse(value)
	if err != nil && !f.Size && f.Read == nil {
		return nil, fmt.Errorf("%q is not a whole number", value)
	}
	return func(item T) bool { return holds(cmp.Compare(f.Number(item), wanted)) }, err
}

func (f Field[T]) age(operator, value string, now time.Time) (func(T) bool, error) {
	holds, ok := ordered(operator)
	wanted, err := duration(value)
	if !ok || err != nil {
		return nil, fmt.Errorf("%s is a time: want an age, e.g. %s<1h", f.Key, f.Key)
	}
	return func(item T) bool {
		t := f.Time(item)
		return !t.IsZero() && holds(cmp.Compare(now.Sub(t), wanted))
	}, nil
}

// duration is one of Go's, or a number of days: 3d.
func duration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(s)
}

func (f Field[T]) flag(operator, value string) (func(T) bool, error) {
	wanted, err := strconv.ParseBool(value)
	if err != nil || operator != "=" && operator != "!=" {
		return nil, fmt.Errorf("%s is true or false", f.Key)
	}
	return func(item T) bool { return (f.Flag(item) == wanted) == (operator == "=") }, nil
}
