package zonecfg

import (
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
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
	words *words
	mode  world.Mode
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
		l.state = cfgInitial
		l.take(1)
		return cfgToken{Kind: "\n", Text: `\n`}, true
	case c == ';':
		l.state = cfgInitial
		return cfgToken{Kind: l.take(1)}, true
	case c == ' ' || c == '\t':
		l.take(1)
		return cfgToken{}, false
	case l.state == cfgInitial:
		return l.scanCommand()
	case c == '"' && (l.state == cfgTokens || l.state == cfgList || l.mode != world.Helios):
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
		comment, _, _ := strings.Cut(l.in, "\n")
		l.take(len(comment))
		return cfgToken{}, false
	}
	longest := ""
	for name := range l.words.Usage {
		if strings.HasPrefix(l.in, name) && len(name) > len(longest) {
			longest = name
		}
	}
	if longest != "" {
		l.state = cfgTokens
		return cfgToken{Kind: cfgCommand, Text: l.take(len(longest))}, true
	}
	cli.Simulated(l.in[0] != '?') // which is help
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
	stop := map[cfgState]string{cfgTokens: "[]()", cfgList: ",[]()", cfgComplex: ",()"}[l.state]
	end := strings.IndexAny(l.in+"\n", " \t\n\";="+stop)
	if end == 0 {
		return cfgToken{Kind: l.in[:1], Text: l.take(1)}
	}
	text := l.take(end)
	if l.state != cfgList && l.words.isWord(text, l.mode) {
		return cfgToken{Kind: cfgWord, Text: text}
	}
	return cfgToken{Kind: cfgText, Text: text}
}
