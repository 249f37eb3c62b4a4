package scf

import (
	"fmt"
	"slices"
	"strings"
)

// content is what the DTD allows of an element: attributes, and children in an
// order (usr/src/cmd/svc/dtd/service_bundle.dtd.1). The models of the DTD are
// all sequences of alternatives, so a sequence of parts is enough.
type content struct {
	required []string            // attributes that must be there
	optional []string            // attributes that may be there
	values   map[string][]string // attributes with a fixed set of values
	parts    []part
	text     bool // #PCDATA
}

// part is one step of a sequence.
type part struct {
	names    []string
	optional bool
	many     bool
}

func one(names ...string) part        { return part{names: names} }
func maybe(names ...string) part      { return part{names: names, optional: true} }
func zeroOrMore(names ...string) part { return part{names: names, optional: true, many: true} }
func oneOrMore(names ...string) part  { return part{names: names, many: true} }

// propertyTypes are the types that a manifest may name.
func propertyTypes() []string {
	return []string{"count", "integer", "opaque", "host", "hostname", "net_address", "net_address_v4", "net_address_v6",
		"time", "astring", "ustring", "boolean", "fmri", "uri"}
}

func listNames() []string {
	names := propertyTypes()
	for i := range names {
		names[i] += "_list"
	}
	return names
}

// contentOf is the DTD's model of an element. False: the DTD has no such element.
func contentOf(name string) (content, bool) {
	flag := []string{"true", "false"}
	grouping := []string{"require_all", "require_any", "exclude_all", "optional_all"}
	restartOn := []string{"error", "restart", "refresh", "none"}
	properties := zeroOrMore("propval", "property")
	switch name {
	case "service_bundle":
		return content{required: []string{"type", "name"}, parts: []part{zeroOrMore("service_bundle", "service", "xi:include")}}, true
	case "service":
		return content{required: []string{"name", "version", "type"},
			values: map[string][]string{"type": {"service", "restarter", "milestone"}},
			parts: []part{maybe("create_default_instance"), maybe("single_instance"), maybe("restarter"), zeroOrMore("dependency"),
				zeroOrMore("dependent"), maybe("method_context"), zeroOrMore("exec_method"), zeroOrMore("notification_parameters"),
				zeroOrMore("property_group"), zeroOrMore("instance"), maybe("stability"), maybe("template")}}, true
	case "instance":
		return content{required: []string{"name", "enabled"}, values: map[string][]string{"enabled": flag},
			parts: []part{maybe("restarter"), zeroOrMore("dependency"), zeroOrMore("dependent"), maybe("method_context"),
				zeroOrMore("exec_method"), zeroOrMore("notification_parameters"), zeroOrMore("property_group"), maybe("template")}}, true
	case "create_default_instance":
		return content{required: []string{"enabled"}, values: map[string][]string{"enabled": flag}}, true
	case "single_instance":
		return content{}, true
	case "restarter":
		return content{parts: []part{one("service_fmri")}}, true
	case "service_fmri", "value_node":
		return content{required: []string{"value"}}, true
	case "dependency":
		return content{required: []string{"name", "grouping", "restart_on", "type"}, optional: []string{"delete"},
			values: map[string][]string{"grouping": grouping, "restart_on": restartOn, "delete": flag},
			parts:  []part{zeroOrMore("service_fmri"), maybe("stability"), properties}}, true
	case "dependent":
		return content{required: []string{"name", "grouping", "restart_on"}, optional: []string{"delete", "override"},
			values: map[string][]string{"grouping": grouping, "restart_on": restartOn, "delete": flag, "override": flag},
			parts:  []part{one("service_fmri"), maybe("stability"), properties}}, true
	case "exec_method":
		return content{required: []string{"type", "name", "exec", "timeout_seconds"}, optional: []string{"delete"},
			values: map[string][]string{"type": {"method", "monitor"}, "delete": flag},
			parts:  []part{maybe("method_context"), maybe("stability"), properties}}, true
	case "method_context":
		return content{optional: []string{"working_directory", "project", "resource_pool", "security_flags"},
			parts: []part{maybe("method_profile", "method_credential"), maybe("method_environment")}}, true
	case "method_profile":
		return content{required: []string{"name"}}, true
	case "method_credential":
		return content{required: []string{"user"}, optional: []string{"group", "supp_groups", "privileges", "limit_privileges"}}, true
	case "method_environment":
		return content{parts: []part{oneOrMore("envvar")}}, true
	case "envvar":
		return content{required: []string{"name", "value"}}, true
	case "property_group":
		return content{required: []string{"name", "type"}, optional: []string{"delete"}, values: map[string][]string{"delete": flag},
			parts: []part{maybe("stability"), properties}}, true
	case "propval":
		return content{required: []string{"name", "type", "value"}, optional: []string{"override"},
			values: map[string][]string{"type": propertyTypes(), "override": flag}}, true
	case "property":
		return content{required: []string{"name", "type"}, optional: []string{"override"},
			values: map[string][]string{"type": propertyTypes(), "override": flag}, parts: []part{maybe(listNames()...)}}, true
	case "stability":
		return content{required: []string{"value"},
			values: map[string][]string{"value": {"Standard", "Stable", "Evolving", "Unstable", "External", "Obsolete"}}}, true
	}
	return templateContent(name)
}

// templateContent is contentOf for what stands in a template, and for lists.
func templateContent(name string) (content, bool) {
	switch name {
	case "template":
		return content{parts: []part{one("common_name"), maybe("description"), maybe("documentation"), zeroOrMore("pg_pattern")}}, true
	case "common_name", "description":
		return content{parts: []part{oneOrMore("loctext")}}, true
	case "loctext":
		return content{required: []string{"xml:lang"}, text: true}, true
	case "documentation":
		return content{parts: []part{zeroOrMore("doc_link", "manpage")}}, true
	case "doc_link":
		return content{required: []string{"name", "uri"}}, true
	case "manpage":
		return content{required: []string{"title", "section"}, optional: []string{"manpath"}}, true
	}
	if slices.Contains(listNames(), name) {
		return content{parts: []part{oneOrMore("value_node")}}, true
	}
	return content{}, false
}

// check is libxml2's validation of one element, with its messages as far as they
// are known. Guess: the exact wording; svccfg passes libxml2's through.
func (n *node) check() error {
	c, ok := contentOf(n.name)
	if !ok {
		return n.invalid("No declaration for element %s", n.name)
	}
	for _, a := range c.required {
		if _, ok := n.attrs[a]; !ok {
			return n.invalid("Element %s does not carry attribute %s", n.name, a)
		}
	}
	for a, v := range n.attrs {
		if a == "xmlns:xi" {
			continue
		}
		allowed, fixed := c.values[a]
		if !slices.Contains(c.required, a) && !slices.Contains(c.optional, a) && !fixed {
			return n.invalid("No declaration for attribute %s of element %s", a, n.name)
		}
		if fixed && !slices.Contains(allowed, v) {
			return n.invalid("Value %q for attribute %s of %s is not among the enumerated set", v, a, n.name)
		}
	}
	if !c.text && strings.TrimSpace(n.text) != "" {
		return n.invalid("Element %s content does not follow the DTD, expecting no text", n.name)
	}
	if err := n.checkChildren(c); err != nil {
		return err
	}
	for _, child := range n.children {
		if err := child.check(); err != nil {
			return err
		}
	}
	return nil
}

// checkChildren walks the sequence greedily.
func (n *node) checkChildren(c content) error {
	at, seen := 0, false
	for _, child := range n.children {
		for at < len(c.parts) && (!slices.Contains(c.parts[at].names, child.name) || seen && !c.parts[at].many) {
			if !seen && !c.parts[at].optional {
				return n.invalid("Element %s content does not follow the DTD, got (%s)", n.name, child.name)
			}
			at, seen = at+1, false
		}
		if at == len(c.parts) {
			return n.invalid("Element %s content does not follow the DTD, got (%s)", n.name, child.name)
		}
		seen = true
	}
	for ; at < len(c.parts); at, seen = at+1, false {
		if !seen && !c.parts[at].optional {
			return n.invalid("Element %s content does not follow the DTD, missing (%s)", n.name, strings.Join(c.parts[at].names, " | "))
		}
	}
	return nil
}

func (n *node) invalid(format string, args ...any) error {
	return fmt.Errorf("%d: element %s: validity error : %s", n.line, n.name, fmt.Sprintf(format, args...))
}
