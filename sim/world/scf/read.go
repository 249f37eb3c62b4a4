package scf

import (
	"errors"
	"strings"
)

func readService(n *node, profile bool) (*BundleService, error) {
	s := &BundleService{Name: n.attrs["name"]}
	if !ValidServiceName(s.Name) {
		return nil, refuse("invalid value %q: should be a bare service name", s.Name)
	}
	if c := n.child("create_default_instance"); c != nil {
		i := &BundleInstance{Name: "default"}
		i.Groups.put("general", "framework", "enabled", "boolean", c.attrs["enabled"])
		s.Instances = append(s.Instances, i)
	}
	if n.child("single_instance") != nil {
		s.Groups.put("general", "framework", "single_instance", "boolean", "true")
	}
	var err error
	if s.Dependents, s.Deleted, err = readEntity(n, &s.Groups); err != nil {
		return nil, err
	}
	if c := n.child("stability"); c != nil {
		s.Groups.put("general", "framework", "entity_stability", "astring", c.attrs["value"])
	}
	if c := n.child("template"); c != nil {
		if profile {
			return nil, refuse("Template data for \"%s\" may not be modified in a profile.", s.Name)
		}
		readTemplate(c, &s.Groups)
	}
	for _, c := range n.children {
		if c.name != "instance" {
			continue
		}
		i, err := readInstance(c, profile)
		if err != nil {
			return nil, err
		}
		s.Instances = append(s.Instances, i)
	}
	return s, nil
}

func readInstance(n *node, profile bool) (*BundleInstance, error) {
	i := &BundleInstance{Name: n.attrs["name"]}
	if !ValidName(i.Name) {
		return nil, refuse("Invalid instance name \"%s\".", i.Name)
	}
	enabled, ok := n.attrs["enabled"]
	switch {
	case !ok && !profile:
		return nil, refuse("Instance \"%s\" missing attribute \"enabled\".", i.Name)
	case ok && enabled != "true" && enabled != "false":
		return nil, refuse("Invalid enabled value")
	case ok:
		i.Groups.put("general", "framework", "enabled", "boolean", enabled)
	}
	var err error
	i.Dependents, i.Deleted, err = readEntity(n, &i.Groups)
	return i, err
}

// readEntity reads what services and instances share.
func readEntity(n *node, groups *Groups) (dependents []Dependent, deleted []string, err error) {
	for _, c := range n.children {
		if c.attrs["delete"] == "true" {
			deleted = append(deleted, c.attrs["name"])
			continue
		}
		switch c.name {
		case "restarter":
			if f := c.child("service_fmri"); f != nil {
				groups.put("general", "framework", "restarter", "fmri", f.attrs["value"])
			}
		case "dependency":
			err = errors.Join(err, readDependency(c, groups))
		case "dependent":
			d := Dependent{Name: c.attrs["name"], Grouping: c.attrs["grouping"], RestartOn: c.attrs["restart_on"]}
			if f := c.child("service_fmri"); f != nil {
				d.Target = f.attrs["value"]
			}
			dependents = append(dependents, d)
			groups.put("dependents", "framework", d.Name, "fmri", d.Target)
		case "method_context":
			readContext(c, "method_context", "framework", groups)
		case "exec_method":
			err = errors.Join(err, readMethod(c, groups))
		case "property_group":
			err = errors.Join(err, readGroup(c, c.attrs["name"], c.attrs["type"], groups))
		}
	}
	return dependents, deleted, err
}

func readDependency(n *node, groups *Groups) error {
	name := n.attrs["name"]
	for _, a := range []string{"grouping", "restart_on", "type"} {
		groups.put(name, "dependency", a, "astring", n.attrs[a])
	}
	var entities []string
	n.each("service_fmri", func(f *node) { entities = append(entities, f.attrs["value"]) })
	groups.put(name, "dependency", "entities", "fmri", entities...)
	return readProperties(n, groups.Find(name))
}

func readMethod(n *node, groups *Groups) error {
	name, typ := n.attrs["name"], n.attrs["type"]
	timeout := n.attrs["timeout_seconds"]
	if timeout == "-1" { // as unlimited as 0, and a count has no sign (lxml_get_exec_method)
		timeout = "18446744073709551615"
	}
	if _, ok := Normalize("count", timeout); !ok {
		return refuse("illegal value \"%s\" for timeout_seconds", timeout)
	}
	groups.put(name, typ, "exec", "astring", n.attrs["exec"])
	groups.put(name, typ, "timeout_seconds", "count", timeout)
	groups.put(name, typ, "type", "astring", typ)
	if c := n.child("method_context"); c != nil {
		readContext(c, name, typ, groups)
	}
	return readProperties(n, groups.Find(name))
}

// readContext puts a method context into a group: its own, or the method's.
func readContext(n *node, group, typ string, groups *Groups) {
	for _, a := range []string{"working_directory", "project", "resource_pool", "security_flags"} {
		if v, ok := n.attrs[a]; ok {
			groups.put(group, typ, a, "astring", v)
		}
	}
	if c := n.child("method_credential"); c != nil {
		for _, a := range []string{"user", "group", "supp_groups", "privileges", "limit_privileges"} {
			if v, ok := c.attrs[a]; ok {
				groups.put(group, typ, a, "astring", v)
			}
		}
		groups.put(group, typ, "use_profile", "boolean", "false")
	}
	if c := n.child("method_profile"); c != nil {
		groups.put(group, typ, "profile", "astring", c.attrs["name"])
		groups.put(group, typ, "use_profile", "boolean", "true")
	}
	if c := n.child("method_environment"); c != nil {
		var environment []string
		c.each("envvar", func(e *node) { environment = append(environment, e.attrs["name"]+"="+e.attrs["value"]) })
		groups.put(group, typ, "environment", "astring", environment...)
	}
}

func readGroup(n *node, name, typ string, groups *Groups) error {
	if !ValidName(name) {
		return refuse("Invalid property group name \"%s\".", name)
	}
	g := groups.Find(name)
	if g == nil {
		g = &Group{Name: name, Type: typ}
		*groups = append(*groups, g)
	}
	if c := n.child("stability"); c != nil {
		g.put("stability", "astring", c.attrs["value"])
	}
	return readProperties(n, g)
}

// readProperties reads the propval and property children. A type may be left
// out where the repository knows it (see Apply).
func readProperties(n *node, g *Group) error {
	for _, c := range n.children {
		var values []string
		switch c.name {
		case "propval":
			values = []string{c.attrs["value"]}
		case "property":
			for _, list := range c.children {
				if typ := c.attrs["type"]; typ != "" && list.name != typ+"_list" {
					return refuse("property \"%s\" type \"%s\" does not match list type \"%s\"", c.attrs["name"], typ,
						strings.TrimSuffix(list.name, "_list"))
				}
				list.each("value_node", func(v *node) { values = append(values, v.attrs["value"]) })
			}
		default:
			continue
		}
		name, typ := c.attrs["name"], c.attrs["type"]
		if !ValidName(name) {
			return refuse("Invalid property name \"%s\".", name)
		}
		if typ != "" {
			if err := normalizeAll(typ, values); err != nil {
				return err
			}
		}
		g.put(name, typ, values...)
	}
	return nil
}

func normalizeAll(typ string, values []string) error {
	for n, v := range values {
		normal, ok := Normalize(typ, v)
		if !ok {
			return refuse("Value \"%s\" is not a valid %s.", v, typ)
		}
		values[n] = normal
	}
	return nil
}

func readTemplate(n *node, groups *Groups) {
	texts := func(element, group string) {
		if c := n.child(element); c != nil {
			c.each("loctext", func(t *node) {
				lang := strings.ReplaceAll(t.attrs["xml:lang"], ".", "_")
				groups.put(group, "template", lang, "ustring", strings.TrimSpace(t.text))
			})
		}
	}
	texts("common_name", "tm_common_name")
	texts("description", "tm_description")
	if c := n.child("documentation"); c != nil {
		c.each("manpage", func(m *node) {
			group := "tm_man_" + strings.Map(nameRune, m.attrs["title"]+m.attrs["section"])
			for _, a := range []string{"manpath", "section", "title"} {
				if v, ok := m.attrs[a]; ok {
					groups.put(group, "template", a, "astring", v)
				}
			}
		})
	}
}

func nameRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
		return r
	}
	return '_'
}
