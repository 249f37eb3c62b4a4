package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// Error is a setting that is wrong: a usage error.
type Error struct {
	Key     string // "network.mtu"; empty if the file as a whole is wrong
	Where   string // "/etc/sledctl/config.toml:12", "SLEDCTL_NETWORK_MTU", "default"
	Problem string
	Nearest string // of an unknown key: the one that was probably meant
}

// Error is one line: where, which key, what is wrong and what would be right.
func (e *Error) Error() string {
	text := e.Where
	if e.Key != "" {
		text += ": " + e.Key
	}
	text += ": " + e.Problem
	if e.Nearest != "" {
		text += fmt.Sprintf(": did you mean %q?", e.Nearest)
	}
	return text
}

func (*Error) Kind() fault.Kind { return fault.Usage }

// Hint says what to do.
func (*Error) Hint() string { return "correct the setting, then run the same command again" }

// Errors are several, each of which has a line.
type Errors []error

// Error lists them: how many there are, and below that each.
func (e Errors) Error() string {
	text := fmt.Sprintf("%d settings are wrong", len(e))
	for _, err := range e {
		text += "\n  " + err.Error()
	}
	return text
}

// Unwrap gives them.
func (e Errors) Unwrap() []error { return e }

func (Errors) Kind() fault.Kind { return fault.Usage }

// joined is what is wrong, in the order of the lines of each file.
func joined(all []error) error {
	if len(all) == 1 {
		return all[0]
	}
	slices.SortStableFunc(all, func(a, b error) int {
		aFile, aLine := place(a)
		bFile, bLine := place(b)
		return cmp.Or(strings.Compare(aFile, bFile), cmp.Compare(aLine, bLine))
	})
	return Errors(all)
}

// place is the file and the line of an error.
func place(err error) (file string, line int) {
	e, ok := err.(*Error)
	if !ok {
		return "", 0
	}
	i := strings.LastIndexByte(e.Where, ':')
	if i < 0 {
		return e.Where, 0
	}
	if line, err = strconv.Atoi(e.Where[i+1:]); err != nil {
		return e.Where, 0
	}
	return e.Where[:i], line
}
