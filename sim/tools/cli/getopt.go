package cli

import (
	"strings"
)

// Option is one option that getopt found. A letter of ':' or '?' is a fault:
// the value is missing, or the option is unknown; Bad is then its letter.
type Option struct {
	Letter byte
	Value  string
	Bad    string
}

// Getopt splits a command line as getopt_long(3C) does, with a specification
// such as "tl:m:" and a table of long names ("temporary": 't'). It stops at
// the first fault, which is then the last option, and at the first word that
// is no option: the rest are operands. An operand before an option makes the
// option an operand too.
func Getopt(args []string, spec string, long map[string]byte) (options []Option, operands []string) {
	for len(args) > 0 {
		word := args[0]
		if word == "--" {
			return options, args[1:]
		}
		if len(word) < 2 || word[0] != '-' {
			return options, args
		}
		args = args[1:]
		if strings.HasPrefix(word, "--") {
			name, value, has := strings.Cut(word[2:], "=")
			letter, ok := long[name]
			switch needs := strings.Contains(spec, string(letter)+":"); {
			case !ok || has && !needs:
				return append(options, Option{Letter: '?', Bad: "?"}), args
			case needs && !has && len(args) == 0:
				return append(options, Option{Letter: ':', Bad: string(letter)}), args
			case needs && !has:
				value, args = args[0], args[1:]
			}
			options = append(options, Option{Letter: letter, Value: value})
			continue
		}
		var fault bool
		options, args, fault = cluster(options, word[1:], args, spec)
		if fault {
			break
		}
	}
	return options, args
}

// cluster reads the letters of one word; the value of an option is the rest of
// the word, or the next one.
func cluster(options []Option, letters string, args []string, spec string) ([]Option, []string, bool) {
	for letters != "" {
		letter := letters[0]
		letters = letters[1:]
		at := strings.IndexByte(spec, letter)
		switch {
		case at < 0 || letter == ':':
			return append(options, Option{Letter: '?', Bad: string(letter)}), args, true
		case at+1 == len(spec) || spec[at+1] != ':':
			options = append(options, Option{Letter: letter})
			continue
		case letters != "":
			return append(options, Option{Letter: letter, Value: letters}), args, false
		case len(args) == 0:
			return append(options, Option{Letter: ':', Bad: string(letter)}), args, true
		}
		return append(options, Option{Letter: letter, Value: args[0]}), args[1:], false
	}
	return options, args, false
}

// Given are the values of the options of a command line, by their letters.
type Given map[byte][]string

// Options is Getopt for a command whose usage faults are not simulated.
func Options(args []string, spec string, long map[string]byte) (Given, []string) {
	given := Given{}
	options, operands := Getopt(args, spec, long)
	for _, o := range options {
		Simulated(o.Bad == "")
		given[o.Letter] = append(given[o.Letter], o.Value)
	}
	return given, operands
}

// Has says whether an option was given that may come once.
func (g Given) Has(letter byte) bool {
	Simulated(len(g[letter]) <= 1)
	return g[letter] != nil
}

// One is the value of an option that may come once; empty: it did not come.
func (g Given) One(letter byte) string { g.Has(letter); return strings.Join(g[letter], "") }

// Fields is the value of -o of a command that prints a Table; nil: there is none.
func (g Given) Fields() *string {
	if value := g.One('o'); g.Has('o') {
		return &value
	}
	return nil
}

// Operand is the one operand that there must be.
func Operand(operands []string) string {
	Simulated(len(operands) == 1)
	return operands[0]
}

// AtMostOne is the operand that there may be; empty: there is none.
func AtMostOne(operands []string) string {
	Simulated(len(operands) <= 1)
	return strings.Join(operands, "")
}
