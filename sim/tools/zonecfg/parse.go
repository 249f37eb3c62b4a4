package zonecfg

import "slices"

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
	p := cfgParser{}
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
	t := p.peek()
	if t.Kind != cfgWord || !slices.Contains(cfgResourceNames(), t.Text) {
		return false
	}
	p.at++
	s.resource = t.Text
	return true
}

func (p *cfgParser) propertyName() (string, bool) {
	t := p.peek()
	if t.Kind != cfgWord || !slices.Contains(cfgPropertyNames(), t.Text) && !slices.Contains(cfgOwnNames(), t.Text) {
		return "", false
	}
	p.at++
	return t.Text, true
}

// command reads what follows the name. Usage says that the grammar answers
// with the command's usage.
func (p *cfgParser) command(s *cfgStatement) (ok, usage bool) {
	switch s.name {
	case "add":
		return p.addCommand(s)
	case "remove":
		return p.removeCommand(s)
	case "select":
		return p.selectCommand(s)
	case "set":
		return p.setCommand(s)
	case "clear":
		if p.done() {
			return false, true
		}
		name, ok := p.propertyName()
		s.props = []cfgProperty{{name: name}}
		return ok, false
	case "info":
		return p.infoCommand(s)
	case "create":
		return p.words(s, 3), false
	case "export":
		return p.words(s, 2), false
	}
	return p.words(s, 1), false
}

// words reads up to most plain words.
func (p *cfgParser) words(s *cfgStatement, most int) bool {
	for len(s.args) < most {
		text, ok := p.accept(cfgText)
		if !ok {
			break
		}
		s.args = append(s.args, text)
	}
	return p.done()
}

func (p *cfgParser) addCommand(s *cfgStatement) (ok, usage bool) {
	switch {
	case p.done():
		return false, true
	case p.resourceType(s), p.words(s, 1):
		return true, false
	}
	name, ok := p.propertyName()
	if !ok {
		return false, false
	}
	v, ok := p.value()
	s.props = []cfgProperty{{name, v}}
	return ok, false
}

func (p *cfgParser) removeCommand(s *cfgStatement) (ok, usage bool) {
	if p.done() {
		return false, true
	}
	if word, ok := p.accept(cfgText); ok {
		s.args = []string{word}
		if p.done() {
			return false, true
		}
		return p.resourceType(s), false
	}
	if p.resourceType(s) {
		return p.pairs(s), false
	}
	name, ok := p.propertyName()
	if !ok {
		return false, false
	}
	v, ok := p.value()
	s.props = []cfgProperty{{name, v}}
	return ok, false
}

func (p *cfgParser) selectCommand(s *cfgStatement) (ok, usage bool) {
	if p.done() || !p.resourceType(s) {
		return false, p.done()
	}
	if p.done() {
		lone := []string{"dedicated-cpu", "capped-cpu", "capped-memory", "security-flags"}
		ok := slices.Contains(lone, s.resource)
		return ok, !ok
	}
	return p.pairs(s), false
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
	t := p.peek()
	if t.Kind != cfgWord || !slices.Contains(cfgGlobalNames(), t.Text) {
		return false, false
	}
	p.at++
	s.resource = t.Text
	return true, false
}

// pairs reads up to three NAME=VALUE.
func (p *cfgParser) pairs(s *cfgStatement) bool {
	for len(s.props) < 3 && !p.done() {
		name, ok := p.propertyName()
		if !ok {
			return false
		}
		if _, ok := p.accept("="); !ok {
			return false
		}
		v, ok := p.value()
		if !ok {
			return false
		}
		s.props = append(s.props, cfgProperty{name, v})
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
	name, ok := p.propertyName()
	if !ok {
		return false, false
	}
	if _, ok := p.accept("="); !ok {
		return false, false
	}
	v, ok := p.value()
	s.props = []cfgProperty{{name, v}}
	return ok, false
}
