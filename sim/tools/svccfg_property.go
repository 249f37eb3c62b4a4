package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world/scf"
)

// editable says whether an entity is selected; the error is the complaint.
func (s *svccfg) editable() error {
	if s.selected.Service == nil {
		return s.fail(svccfgNotSelected)
	}
	return nil
}

// listProperties is listprop(): the entity's own groups, and their properties.
func (s *svccfg) listProperties(pattern string, groupsOnly bool) error {
	if s.selected.Service == nil {
		return s.fail(svccfgNotSelected)
	}
	groups := *s.selected.Groups()
	if s.private == "" && s.selected.Instance != nil {
		h := &smfHandle{tx: s.tx, zone: s.zone, Repository: s.Repository}
		groups = h.live(s.selected, false)
	}
	type entry struct{ name, rest string }
	var entries []entry
	width := 0
	add := func(name, rest string) {
		entries = append(entries, entry{name, rest})
		width = max(width, len(name))
	}
	for _, g := range groups {
		whole := pattern == "" || scf.Glob(pattern, g.Name)
		if whole {
			kind := g.Type
			if g.Transient {
				kind += "\tNONPERSISTENT"
			}
			add(g.Name, kind)
		}
		if groupsOnly {
			continue
		}
		for _, p := range g.Properties {
			if name := g.Name + "/" + p.Name; whole || scf.Glob(pattern, name) {
				add(name, fmt.Sprintf("%-7s ", p.Type)+listedValues(p))
			}
		}
	}
	for _, e := range entries {
		s.out.Stdout += fmt.Sprintf("%-*s  %s\n", width, e.name, e.rest)
	}
	return nil
}

// listedValues is list_prop_info(): quoted where a reader would stumble.
func listedValues(p *scf.Property) string {
	several := len(p.Values) > 1 && (p.Type == "astring" || p.Type == "ustring")
	var out strings.Builder
	for _, v := range p.Values {
		if !several && !strings.ContainsAny(v, " \t\n\"()") {
			out.WriteString(" " + v)
			continue
		}
		out.WriteString(` "` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(v) + `"`)
	}
	return out.String()
}

// addGroup is lscf_addpg().
func (s *svccfg) addGroup(name, typ, flags string) error {
	if s.selected.Service == nil {
		return s.editable()
	}
	transient := false
	for _, f := range flags {
		switch f {
		case 'P':
			transient = true
		case 'p':
			transient = false
		default:
			return s.fail("Invalid property group flag %c.\n", f)
		}
	}
	if !scf.ValidName(name) || !scf.ValidName(typ) {
		return s.fail("Name, type, or flags are invalid.\n")
	}
	if !s.selected.AddGroup(name, typ, transient) {
		return s.fail("Property group already exists.\n")
	}
	s.edited()
	return nil
}

// deleteGroup is lscf_delpg().
func (s *svccfg) deleteGroup(name string) error {
	if s.selected.Service == nil {
		return s.editable()
	}
	if strings.Contains(name, "/") {
		return s.fail(svccfgBadGroup, name)
	}
	return s.deleteProperty(name)
}

// deleteProperty is lscf_delprop(): of a group too.
func (s *svccfg) deleteProperty(name string) error {
	if s.selected.Service == nil {
		return s.editable()
	}
	group, property, has := strings.Cut(name, "/")
	switch {
	case !scf.ValidName(group):
		return s.fail(svccfgBadGroup, group)
	case s.selected.Groups().Find(group) == nil:
		return s.fail(svccfgNoGroup, group)
	case !has:
		s.selected.DeleteGroup(group)
	case !scf.ValidName(property):
		return s.fail(svccfgBadProperty, property)
	case !s.selected.Unset(group, property):
		return s.fail("No such property %s/%s.\n", group, property)
	}
	s.edited()
	return nil
}

// setprop reads setprop PG/NAME = [TYPE:] VALUE or (VALUE …) and does it.
func (s *svccfg) setprop(tokens []token) error {
	if len(tokens) < 3 || tokens[0].kind != 'w' || tokens[1].kind != '=' {
		return s.fail("Syntax error.\n")
	}
	name, rest := tokens[0].text, tokens[2:]
	typ := ""
	if rest[0].kind == 'w' && len(rest) > 1 {
		typ, rest = rest[0].text, rest[1:]
	}
	list := rest[0].kind == '('
	if list {
		if rest[len(rest)-1].kind != ')' {
			return s.fail("Syntax error.\n")
		}
		rest = rest[1 : len(rest)-1]
	}
	words, plain := plainWords(rest)
	if !plain || !list && len(words) != 1 {
		return s.fail("Syntax error.\n")
	}
	return s.setProperty(name, typ, words, list)
}

// setProperty is lscf_setprop().
func (s *svccfg) setProperty(name, typ string, words []string, list bool) error {
	group, property, typ, done, err := s.target(name, typ)
	if done {
		return err
	}
	if typ == "" {
		if typ = s.inferType(group, property); typ == "" {
			return s.fail("Type required for new properties.\n")
		}
	}
	values, err, ok := s.values(words, typ, list && (typ == "astring" || typ == "ustring"))
	if !ok {
		return err
	}
	s.selected.Set(group, property, typ, values...)
	s.edited()
	return nil
}

// target splits and checks PG/NAME and TYPE: of a value. done says that this
// was the end, with err.
func (s *svccfg) target(name, typ string) (group, property, kind string, done bool, err error) {
	if s.selected.Service == nil {
		return "", "", "", true, s.editable()
	}
	group, property, has := strings.Cut(name, "/")
	if !has {
		return "", "", "", true, s.fail("Property names must contain a `/'.\n")
	}
	if typ != "" {
		var colon bool
		if kind, colon = strings.CutSuffix(typ, ":"); !colon || !scf.KnownType(kind) {
			return "", "", "", true, s.fail("Unknown type \"%s\".\n", typ)
		}
	}
	switch {
	case !scf.ValidName(group):
		return "", "", "", true, s.fail(svccfgBadGroup, group)
	case s.selected.Groups().Find(group) == nil:
		return "", "", "", true, s.fail(svccfgNoGroup, group)
	case !scf.ValidName(property):
		return "", "", "", true, s.fail(svccfgBadProperty, property)
	}
	return group, property, kind, false, nil
}

// inferType is the type that a property has, here or in the service.
func (s *svccfg) inferType(group, property string) string {
	if p := s.selected.Groups().Find(group).Property(property); p != nil {
		return p.Type
	}
	if s.selected.Instance != nil {
		if p := s.selected.Service.Groups.Find(group).Property(property); p != nil {
			return p.Type
		}
	}
	return ""
}

// values is string_to_value() for each word. ok is false after a complaint.
func (s *svccfg) values(words []string, typ string, quotes bool) (values []string, err error, ok bool) {
	values = []string{}
	for _, w := range words {
		quoted := len(w) >= 2 && w[0] == '"' && w[len(w)-1] == '"'
		if quotes && !quoted {
			return nil, s.fail("Multiple string values or string values with spaces must be quoted with '\"'.\n"), false
		}
		if quoted {
			w = w[1 : len(w)-1]
		}
		normal, valid := scf.Normalize(typ, w)
		if !valid {
			return nil, s.fail("Invalid \"%s\" value \"%s\".\n", typ, w), false
		}
		values = append(values, normal)
	}
	return values, nil, true
}

// addValue is lscf_addpropvalue(): PG/NAME [TYPE:] VALUE.
func (s *svccfg) addValue(words []string) error {
	typ := ""
	if len(words) == 3 {
		typ = words[1]
	}
	group, property, kind, done, err := s.target(words[0], typ)
	if done {
		return err
	}
	p := s.selected.Groups().Find(group).Property(property)
	switch {
	case p != nil && kind != "" && kind != p.Type:
		return s.fail("Property \"%s\" is not of type \"%s\".\n", property, typ)
	case p != nil:
		kind = p.Type
	case kind == "":
		return s.fail("Type required for new properties.\n")
	}
	values, err, ok := s.values(words[len(words)-1:], kind, false)
	if !ok {
		return err
	}
	if p != nil {
		values = append(slices.Clone(p.Values), values...)
	}
	s.selected.Set(group, property, kind, values...)
	s.edited()
	return nil
}

// deleteValues is lscf_delpropvalue(): those that match a glob.
func (s *svccfg) deleteValues(name, pattern string, absentIsFine bool) error {
	if absentIsFine {
		group, property, _ := strings.Cut(name, "/")
		if s.selected.Service != nil && s.selected.Groups().Find(group).Property(property) == nil {
			return nil
		}
	}
	group, property, _, done, err := s.target(name, "")
	if done {
		return err
	}
	p := s.selected.Groups().Find(group).Property(property)
	if p == nil {
		return s.fail("No such property %s/%s.\n", group, property)
	}
	pattern = strings.TrimPrefix(strings.TrimSuffix(pattern, `"`), `"`)
	kept := slices.DeleteFunc(slices.Clone(p.Values), func(v string) bool { return scf.Glob(pattern, v) })
	s.selected.Set(group, property, p.Type, kept...)
	s.edited()
	return nil
}

// setenv is lscf_setenv(): [-s | -i | -m METHOD] NAME [VALUE].
func (s *svccfg) setenv(words []string, unset bool) error {
	options, operands := getopt(words, "sim:", nil)
	selected := s.selected
	defer func() { s.selected = selected }()
	method := ""
	for _, o := range options {
		switch {
		case o.Bad != "":
			return s.fail("Syntax error.\n")
		case o.Letter == 's':
			s.selected.Instance = nil
			method = "method_context"
		case o.Letter == 'i':
			method = "method_context"
		case o.Letter == 'm':
			method = o.Value
		}
	}
	if unset && len(operands) != 1 || !unset && len(operands) != 2 {
		return s.fail("Syntax error.\n")
	}
	if s.selected.Service == nil {
		return s.editable()
	}
	if method == "" {
		method = "start"
		if s.selected.Instance != nil && s.selected.Groups().Find("start") == nil {
			s.selected.Instance = nil
		}
		if s.selected.Groups().Find("start") == nil {
			return s.fail("Couldn't find start method; please specify a method with '-m'.\n")
		}
	}
	if method == "method_context" && !unset {
		s.selected.AddGroup(method, "framework", false)
	}
	if s.selected.Groups().Find(method) == nil {
		return s.fail("Couldn't find the method \"%s\".\n", method)
	}
	if err := s.deleteValues(method+"/environment", operands[0]+"=*", !unset); err != nil || unset {
		return err
	}
	return s.addValue([]string{method + "/environment", "astring:", operands[0] + "=" + operands[1]})
}
