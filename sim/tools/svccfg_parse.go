package tools

import "strings"

// token is a word of a svccfg statement, as svccfg.l reads it
// (usr/src/cmd/svc/svccfg).
type token struct {
	kind byte // w word, s quoted string (with its quotes), = ( ) >
	text string
}

// script runs statements, one a line; a value list in parentheses may span lines.
func (s *svccfg) script(name, text string) error {
	s.file = name
	var pending []token
	open := 0
	for n, line := range strings.Split(text, "\n") {
		s.line = n + 1
		tokens, bad := svccfgTokens(line)
		if bad != "" {
			s.out.warn("svccfg", "unrecognized character %s\n", bad)
			return errStop
		}
		for _, t := range tokens {
			switch t.kind {
			case '(':
				open++
			case ')':
				open--
			}
		}
		pending = append(pending, tokens...)
		if open > 0 {
			continue
		}
		if len(pending) > 0 {
			done, err := s.statement(pending)
			if err != nil || done {
				return err
			}
		}
		pending = nil
	}
	if len(pending) > 0 {
		return s.fail("Syntax error.\n")
	}
	return nil
}

// svccfgTokens splits a line. bad is a character that cannot stand there.
func svccfgTokens(line string) (tokens []token, bad string) {
	for line != "" {
		switch c := line[0]; {
		case c == ' ' || c == '\t':
			line = line[1:]
		case c == '#':
			return tokens, ""
		case strings.IndexByte("=()>", c) >= 0:
			tokens, line = append(tokens, token{kind: c, text: line[:1]}), line[1:]
		case c == '"':
			text, rest, ok := quotedString(line)
			if !ok {
				return nil, `"`
			}
			tokens, line = append(tokens, token{'s', text}), rest
		default:
			end := strings.IndexAny(line, " \t\">=()")
			if end < 0 {
				end = len(line)
			}
			tokens, line = append(tokens, token{'w', line[:end]}), line[end:]
		}
	}
	return tokens, ""
}

// quotedString reads "…" and takes the backslashes out; the quotes stay.
func quotedString(line string) (text, rest string, ok bool) {
	var out strings.Builder
	out.WriteByte('"')
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			if i++; i < len(line) {
				out.WriteByte(line[i])
			}
		case '"':
			return out.String() + `"`, line[i+1:], true
		default:
			out.WriteByte(line[i])
		}
	}
	return "", "", false
}

// statement runs one statement. done says that no more are to be read.
func (s *svccfg) statement(tokens []token) (done bool, err error) {
	command, rest := tokens[0].text, tokens[1:]
	if tokens[0].kind != 'w' {
		return false, s.fail("Syntax error.\n")
	}
	switch command {
	case "end", "exit", "quit":
		if len(rest) > 0 {
			return false, s.fail("Syntax error.\n")
		}
		return true, nil
	case "setprop", "addprop":
		return false, s.setprop(rest)
	}
	words, plain := plainWords(rest)
	if !plain {
		return false, s.fail("Syntax error.\n")
	}
	run, ok := s.command(command, words)
	if !ok {
		return false, s.fail("Unknown command \"%s\".\n", command)
	}
	if run == nil {
		return false, s.fail("Syntax error.\n")
	}
	return false, run()
}

// plainWords are tokens without signs between them.
func plainWords(tokens []token) ([]string, bool) {
	words := make([]string, 0, len(tokens))
	for _, t := range tokens {
		if t.kind != 'w' && t.kind != 's' {
			return nil, false
		}
		words = append(words, t.text)
	}
	return words, true
}

// command finds what runs a command with its words: nil for a wrong number of
// them (svccfg.y), false for a command that is not known.
func (s *svccfg) command(name string, words []string) (run func() error, known bool) {
	arg := func(n int) string {
		if n < len(words) {
			return words[n]
		}
		return ""
	}
	between := func(low, high int, f func() error) (func() error, bool) {
		if len(words) < low || len(words) > high {
			return nil, true
		}
		return f, true
	}
	switch name {
	case "import":
		return between(1, 1<<16, func() error { return s.importFiles(words) })
	case "apply":
		return between(1, 1, func() error { return s.apply(arg(0)) })
	case "validate":
		return between(0, 1, func() error { return s.validate(arg(0)) })
	case "inventory":
		return between(1, 1, func() error { return s.inventory(arg(0)) })
	case "cleanup":
		return between(0, 1, s.cleanup)
	case "select":
		return between(1, 1, func() error { return s.selectEntity(arg(0)) })
	case "unselect":
		return between(0, 0, s.unselect)
	case "list":
		return between(0, 1, func() error { return s.list(arg(0)) })
	case "add":
		return between(1, 1, func() error { return s.add(arg(0)) })
	case "delete":
		return s.deleteCommand(words)
	case "refresh":
		return between(0, 0, s.refreshSelected)
	case "listpg":
		return between(0, 1, func() error { return s.listProperties(arg(0), true) })
	case "listprop":
		return between(0, 1, func() error { return s.listProperties(arg(0), false) })
	case "addpg":
		return between(2, 3, func() error { return s.addGroup(arg(0), arg(1), arg(2)) })
	case "delpg":
		return between(1, 1, func() error { return s.deleteGroup(arg(0)) })
	case "delprop":
		return between(1, 1, func() error { return s.deleteProperty(arg(0)) })
	case "addpropvalue":
		return between(2, 3, func() error { return s.addValue(words) })
	case "delpropvalue":
		return between(2, 2, func() error { return s.deleteValues(arg(0), arg(1), false) })
	case "setenv":
		return between(2, 5, func() error { return s.setenv(words, false) })
	case "unsetenv":
		return between(1, 4, func() error { return s.setenv(words, true) })
	case "delhash":
		return between(1, 2, func() error { return s.deleteHash(words) })
	case "listsnap":
		return between(0, 0, s.listSnapshots)
	case "set":
		return between(0, 1, func() error { return s.set(arg(0)) })
	case "export", "archive", "restore", "extract", "repository", "editprop", "describe", "selectsnap", "revert",
		"delnotify", "listnotify", "setnotify", "help":
		// These exist, and the simulated sled does not have them.
		return func() error { return s.fail("%s: not on the simulated sled.\n", name) }, true
	}
	return nil, false
}

func (s *svccfg) deleteCommand(words []string) (func() error, bool) {
	switch {
	case len(words) == 1:
		return func() error { return s.delete(words[0], false) }, true
	case len(words) == 2 && words[0] == "-f":
		return func() error { return s.delete(words[1], true) }, true
	}
	return nil, true
}
