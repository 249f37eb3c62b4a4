package zonecfg

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// This file is the lexer of zonecfg(8): usr/src/cmd/zonecfg/zonecfg_lex.l. At
// the start of a command only the names of commands mean anything; behind one,
// the names of resources and properties are words of their own.

// cfgToken is one token. Kind is "command", "word" (the name of a resource or
// property), "token" (any other text), "end" (of the input), or the character.
type cfgToken struct {
	Kind string
	Text string
}

const (
	cfgCommand = "command"
	cfgWord    = "word"
	cfgText    = "token"
	cfgEnd     = "end"
)

func cfgCommandNames() []string {
	return []string{"add", "cancel", "clear", "commit", "create", "delete", "end", "exit", "export", "help", "info",
		"remove", "revert", "select", "set", "verify"}
}

func cfgResourceNames() []string {
	return []string{"fs", "net", "device", "rctl", "attr", "dataset", "dedicated-cpu", "capped-cpu", "capped-memory",
		"admin", "security-flags"}
}

// cfgGlobalNames are the properties of the zone as a whole.
func cfgGlobalNames() []string {
	return []string{"zonename", "zonepath", "brand", "autoboot", "bootargs", "pool", "limitpriv", "scheduling-class",
		"ip-type", "hostid", "fs-allowed", "max-lwps", "max-processes", "max-shm-memory", "max-shm-ids", "max-msg-ids",
		"max-sem-ids", "cpu-shares"}
}

func cfgPropertyNames() []string {
	return append(cfgGlobalNames(), "dir", "special", "raw", "type", "options", "address", "allowed-address", "physical",
		"defrouter", "name", "value", "match", "priv", "limit", "action", "ncpus",
		"importance", "swap", "locked", "user", "auths", "default", "lower", "upper")
}

// cfgOwnNames are the properties that the gate does not have, and OmniOS and
// SmartOS have.
func cfgOwnNames() []string { return []string{"global-nic", "mac-addr", "vlan-id"} }

// cfgState is where the lexer is: what a word may be.
type cfgState int

const (
	cfgInitial cfgState = iota // before a command
	cfgTokens                  // behind it
	cfgList                    // in [ ]
	cfgComplex                 // in ( )
)

// cfgLexer reads commands.
type cfgLexer struct {
	in    string
	line  int // of what comes next, from 1
	state cfgState
	outer cfgState // where a ) leads back to
	words []string
	gate  bool // not OmniOS' or SmartOS'
}

func newCfgLexer(in string, mode world.Mode) *cfgLexer {
	l := &cfgLexer{in: in, line: 1, outer: cfgTokens, words: append(cfgResourceNames(), cfgPropertyNames()...), gate: mode == world.Helios}
	if !l.gate {
		l.words = append(l.words, cfgOwnNames()...)
	}
	return l
}

// next is the next token; behind the last one it is cfgEnd.
func (l *cfgLexer) next() cfgToken {
	for l.in != "" {
		if t, ok := l.scan(); ok {
			return t
		}
	}
	return cfgToken{Kind: cfgEnd}
}

// take cuts n bytes off the input.
func (l *cfgLexer) take(n int) string {
	text := l.in[:n]
	l.in = l.in[n:]
	return text
}

// scan reads what the input opens with; false if that is nothing that counts.
func (l *cfgLexer) scan() (cfgToken, bool) {
	switch c := l.in[0]; {
	case c == '\n':
		l.line++
		fallthrough
	case c == ';':
		l.state = cfgInitial
		return cfgToken{Kind: l.take(1)}, true
	case c == ' ' || c == '\t':
		l.take(1)
		return cfgToken{}, false
	case l.state == cfgInitial:
		return l.scanCommand()
	case c == '"' && (l.state == cfgTokens || l.state == cfgList || !l.gate):
		return l.scanQuoted()
	}
	if t, ok := l.scanBracket(); ok {
		return t, true
	}
	return l.scanWord(), true
}

// scanCommand reads the name of a command. It need not end there: "addnet" is
// add, then net.
func (l *cfgLexer) scanCommand() (cfgToken, bool) {
	if l.in[0] == '#' {
		end := strings.IndexByte(l.in, '\n')
		if end < 0 {
			end = len(l.in)
		}
		l.take(end)
		return cfgToken{}, false
	}
	longest := ""
	for _, name := range cfgCommandNames() {
		if strings.HasPrefix(l.in, name) && len(name) > len(longest) {
			longest = name
		}
	}
	switch {
	case longest != "":
		l.state = cfgTokens
		return cfgToken{Kind: cfgCommand, Text: l.take(len(longest))}, true
	case l.in[0] == '?':
		l.state = cfgTokens
		l.take(1)
		return cfgToken{Kind: cfgCommand, Text: "help"}, true
	}
	return cfgToken{Kind: l.in[:1], Text: l.take(1)}, true
}

// scanQuoted reads up to the next quote or the end of the line; there is no
// way to write a quote inside.
func (l *cfgLexer) scanQuoted() (cfgToken, bool) {
	end := strings.IndexAny(l.in[1:], "\"\n")
	if end < 0 {
		return cfgToken{Kind: `"`, Text: l.take(1)}, true
	}
	text := l.take(end + 2)
	return cfgToken{Kind: cfgText, Text: strings.TrimSuffix(text[1:], `"`)}, true
}

// scanBracket reads the punctuation of the state.
func (l *cfgLexer) scanBracket() (cfgToken, bool) {
	c := l.in[0]
	switch {
	case c == '[' && l.state == cfgTokens:
		l.state, l.outer = cfgList, cfgList
	case c == ']' && l.state == cfgList:
		l.state, l.outer = cfgTokens, cfgTokens
	case c == '(' && (l.state == cfgTokens || l.state == cfgList):
		l.state = cfgComplex
	case c == ')' && l.state == cfgComplex:
		l.state = l.outer
	case c == '=':
	case c == ',' && (l.state == cfgList || l.state == cfgComplex):
	default:
		return cfgToken{}, false
	}
	text := l.take(1)
	return cfgToken{Kind: text, Text: text}, true
}

// scanWord reads a word; what cannot open one is a token of its own.
func (l *cfgLexer) scanWord() cfgToken {
	stop := " \t\n\";=[]()"
	switch l.state {
	case cfgList:
		stop = " \t\n\",;=[]()"
	case cfgComplex:
		stop = " \t\n\",;=()"
	}
	end := strings.IndexAny(l.in, stop)
	if end < 0 {
		end = len(l.in)
	}
	if end == 0 {
		return cfgToken{Kind: l.in[:1], Text: l.take(1)}
	}
	text := l.take(end)
	if l.state != cfgList && slices.Contains(l.words, text) {
		return cfgToken{Kind: cfgWord, Text: text}
	}
	return cfgToken{Kind: cfgText, Text: text}
}
