package zonecfg

import (
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// This file is the grammar of zonecfg(8): usr/src/cmd/zonecfg/zonecfg_grammar.y.
// A command ends at a semicolon or a new line. A bad one is passed over up to
// there, and the next one is tried.

// cfgStatement is one command as it was read.
type cfgStatement struct {
	name     string
	args     []string // words that are neither resources nor properties
	resource string
	props    []cfgProperty
	line     int // where the lexer was behind its end
	// Of a command that is not carried out:
	empty bool      // there was none before the terminator
	bad   *cfgToken // the token that does not fit
	usage bool      // its own usage is shown instead
	last  bool      // the input ended without a terminator
}

// cfgProperty is NAME=VALUE, or a name alone.
type cfgProperty struct {
	name  string
	value cfgValue
}

// cfgValue is a value. Kind is "simple", "complex", "list", or empty for none.
type cfgValue struct {
	kind string
	text string
	pair []cfgProperty // complex: its NAME=TEXT
	list []cfgValue
}

// parseStatement reads the next command.
func parseStatement(lex *cfgLexer) cfgStatement {
	p := cfgParser{words: lex.words}
	for {
		t := lex.next()
		p.tokens, p.lines = append(p.tokens, t), append(p.lines, lex.line)
		if t.Kind == "\n" || t.Kind == ";" || t.Kind == cfgEnd {
			break
		}
	}
	end := p.tokens[len(p.tokens)-1].Kind
	s := cfgStatement{line: lex.line, last: end == cfgEnd, empty: len(p.tokens) == 1}
	if s.empty {
		return s
	}
	first := p.tokens[0]
	if first.Kind != cfgCommand {
		s.bad, s.line = &first, p.lines[0]
		return s
	}
	s.name = first.Text
	p.at = 1
	switch ok, usage := p.command(&s); {
	case usage:
		s.usage = true
	case !ok || p.at != len(p.tokens)-1:
		s.bad, s.line = &p.tokens[p.at], p.lines[p.at]
	}
	return s
}

// cfgParser walks over the tokens of one command; the last is its terminator.
type cfgParser struct {
	words  *words
	tokens []cfgToken
	lines  []int
	at     int
}

func (p *cfgParser) peek() cfgToken { return p.tokens[p.at] }

func (p *cfgParser) accept(kind string) (string, bool) {
	if t := p.peek(); t.Kind == kind {
		p.at++
		return t.Text, true
	}
	return "", false
}

func (p *cfgParser) done() bool { return p.at == len(p.tokens)-1 }

func (p *cfgParser) resourceType(s *cfgStatement) bool {
	if !slices.Contains(p.words.Resources, p.peek().Text) {
		return false
	}
	var ok bool
	s.resource, ok = p.accept(cfgWord)
	return ok
}

func (p *cfgParser) propertyName() (string, bool) {
	if !p.words.isProperty(p.peek().Text) {
		return "", false
	}
	return p.accept(cfgWord)
}

// assignment reads NAME=VALUE, or without the character between them NAME VALUE.
func (p *cfgParser) assignment(s *cfgStatement, between string) bool {
	name, ok := p.propertyName()
	if ok && between != "" {
		_, ok = p.accept(between)
	}
	var v cfgValue
	if ok {
		v, ok = p.value()
	}
	s.props = append(s.props, cfgProperty{name, v})
	return ok
}

// command reads what follows the name. Usage says that the grammar answers
// with the command's usage.
func (p *cfgParser) command(s *cfgStatement) (ok, usage bool) {
	switch s.name {
	case "add":
		return p.addCommand(s), false
	case "remove":
		return p.removeCommand(s)
	case "select":
		return p.selectCommand(s)
	case "set":
		return p.setCommand(s)
	case "clear":
		cli.Simulated(!p.done())
		name, ok := p.propertyName()
		s.props = []cfgProperty{{name: name}}
		return ok, false
	case "info":
		return p.infoCommand(s)
	}
	return p.plain(s, map[string]int{"create": 3, "export": 2}[s.name]), false
}

// plain reads up to most plain words, one at least.
func (p *cfgParser) plain(s *cfgStatement, most int) bool {
	for len(s.args) < max(most, 1) {
		text, ok := p.accept(cfgText)
		if !ok {
			break
		}
		s.args = append(s.args, text)
	}
	return p.done()
}

func (p *cfgParser) addCommand(s *cfgStatement) bool {
	cli.Simulated(!p.done())
	return p.resourceType(s) || p.plain(s, 1) || p.assignment(s, "")
}

func (p *cfgParser) removeCommand(s *cfgStatement) (ok, usage bool) {
	if p.done() {
		return false, true
	}
	if word, ok := p.accept(cfgText); ok {
		s.args = []string{word}
		cli.Simulated(!p.done())
		return p.resourceType(s), false
	}
	if p.resourceType(s) {
		return p.pairs(s), false
	}
	return p.assignment(s, ""), false
}

func (p *cfgParser) selectCommand(s *cfgStatement) (ok, usage bool) {
	if p.done() || !p.resourceType(s) {
		return false, p.done()
	}
	if p.done() {
		ok := slices.Contains(lone(), s.resource)
		return ok, !ok
	}
	return p.pairs(s), false
}

// lone are the resources of which a zone has one at most.
func lone() []string {
	return []string{"dedicated-cpu", "capped-cpu", "capped-memory", "security-flags"}
}

// infoCommand takes a resource and pairs, or the name of a global property.
func (p *cfgParser) infoCommand(s *cfgStatement) (ok, usage bool) {
	switch {
	case p.done():
		return true, false
	case p.resourceType(s):
		return p.pairs(s), false
	}
	if _, ok := p.accept(cfgText); ok {
		return false, true
	}
	cli.Simulated(slices.Contains(p.words.Globals, p.peek().Text))
	s.resource, ok = p.accept(cfgWord)
	return ok, false
}

// pairs reads up to three NAME=VALUE.
func (p *cfgParser) pairs(s *cfgStatement) bool {
	for len(s.props) < 3 && !p.done() {
		if !p.assignment(s, "=") {
			return false
		}
	}
	return true
}

func (p *cfgParser) setCommand(s *cfgStatement) (ok, usage bool) {
	if p.done() {
		return false, true
	}
	if word, ok := p.accept(cfgText); ok { // set -F zonepath=…
		s.args = []string{word}
		if p.peek().Text != "zonepath" {
			return false, false
		}
	}
	return p.assignment(s, "="), false
}

// value reads a simple value, a complex one or a list. The names of resources and
// properties are simple values too (simple_prop_val).
func (p *cfgParser) value() (cfgValue, bool) {
	for _, kind := range []string{cfgText, cfgWord} {
		if text, ok := p.accept(kind); ok {
			return cfgValue{kind: "simple", text: text}, true
		}
	}
	if _, ok := p.accept("("); ok {
		return p.complexValue()
	}
	v := cfgValue{kind: "list"}
	if _, ok := p.accept("["); !ok {
		return v, false
	}
	_, closed := p.accept("]")
	for !closed {
		piece, ok := p.value()
		if !ok || piece.kind == "list" {
			return v, false
		}
		v.list = append(v.list, piece)
		if _, closed = p.accept("]"); !closed && !p.comma() {
			return v, false
		}
	}
	return v, true
}

func (p *cfgParser) comma() bool {
	_, ok := p.accept(",")
	return ok
}

func (p *cfgParser) complexValue() (cfgValue, bool) {
	v := cfgValue{kind: "complex"}
	for {
		name, ok := p.propertyName()
		if ok {
			_, ok = p.accept("=")
		}
		text := ""
		if ok {
			text, ok = p.accept(cfgText)
		}
		if !ok {
			return v, false
		}
		v.pair = append(v.pair, cfgProperty{name, cfgValue{kind: "simple", text: text}})
		if _, closed := p.accept(")"); closed {
			return v, true
		}
		if !p.comma() {
			return v, false
		}
	}
}
