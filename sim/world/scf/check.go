package scf

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
)

// known is what the simulated sled takes of a document, one element a line: in which
// documents, its name, its attributes and its children in their order. It follows
// usr/src/cmd/svc/dtd/service_bundle.dtd.1, whose models are all sequences, and
// leaves out what no manifest of sledctl and of the simulated system has.
//
//go:embed manifest.txt
var known string

// contentOf is what an element of a document may have. False: it is not known.
func contentOf(op, name string) (attributes, children []string, ok bool) {
	for line := range strings.Lines(known) {
		fields := append(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), "", "")
		if (fields[0] == op || fields[0] == "-") && fields[1] == name {
			return strings.Fields(fields[2]), strings.Fields(fields[3]), true
		}
	}
	return nil, nil, false
}

// unknown is the first element that is not as contentOf says; nil: there is none.
// Whether svccfg(8) would refuse such a document, is not simulated either.
func (n *node) unknown(op string) *node {
	attributes, rest, ok := contentOf(op, n.XMLName.Local)
	if !ok || !n.attributesKnown(attributes) || strings.TrimSpace(n.Text) != "" && !slices.Equal(rest, []string{"TEXT"}) {
		return n
	}
	optional := func(child string) bool {
		return child == "TEXT" || strings.HasSuffix(child, "?") || strings.HasSuffix(child, "*")
	}
	for _, c := range n.Children {
		for len(rest) > 0 && strings.TrimRight(rest[0], "?*") != c.XMLName.Local && optional(rest[0]) {
			rest = rest[1:]
		}
		if len(rest) == 0 || strings.TrimRight(rest[0], "?*") != c.XMLName.Local {
			return n
		}
		if !strings.HasSuffix(rest[0], "*") {
			rest = rest[1:]
		}
		if bad := c.unknown(op); bad != nil {
			return bad
		}
	}
	if slices.ContainsFunc(rest, func(child string) bool { return !optional(child) }) {
		return n
	}
	return nil
}

// attributesKnown holds an element's attributes to NAME, NAME? and NAME=VALUES.
func (n *node) attributesKnown(attributes []string) bool {
	found := 0
	for _, a := range attributes {
		name, values, _ := strings.Cut(a, "=")
		name, optional := strings.CutSuffix(name, "?")
		v, has := n.lookup(name)
		if !has && !optional || has && !fits(v, values) {
			return false
		}
		if has {
			found++
		}
	}
	if n.XMLName.Local == "propval" {
		// options/milestone of the restarter would keep services down.
		if _, ok := Normalize(n.attr("type"), n.attr("value")); !ok || n.attr("name") == "milestone" {
			return false
		}
	}
	return found == len(n.Attrs)
}

// fits says whether an attribute has one of its values, or one of that form.
func fits(value, values string) (ok bool) {
	switch values {
	case "":
		return true
	case "NAME":
		return ValidName(value)
	case "SERVICE":
		return ValidServiceName(value)
	case "FMRI":
		_, ok = ParseFMRI(value)
		return ok
	case "COUNT":
		_, ok = Normalize("count", value)
		return ok
	}
	return slices.Contains(strings.Split(values, ","), value)
}

// Normalize checks a value of a type and gives it as the repository prints it
// (scf_value_set_from_string(3SCF)). False: it is none.
func Normalize(typ, value string) (string, bool) {
	switch typ {
	case "boolean":
		normal := map[string]string{"true": "true", "t": "true", "1": "true", "false": "false", "f": "false", "0": "false"}[value]
		return normal, normal != ""
	case "count":
		n, err := strconv.ParseUint(value, 0, 64)
		return strconv.FormatUint(n, 10), err == nil
	}
	return value, true // astring takes anything
}
