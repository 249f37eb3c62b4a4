package scf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// DTDPath is the only document type that svccfg(8) takes for a service bundle.
const DTDPath = "/usr/share/lib/xml/dtd/service_bundle.dtd.1"

// DocumentError is a document that svccfg(8) refuses, with the text that it prints.
type DocumentError struct{ Text string }

func (e *DocumentError) Error() string { return e.Text }

// UnsimulatedError is a document with more in it than the simulated sled knows, or
// with what svccfg(8) would not take.
type UnsimulatedError struct{ What string }

func (e *UnsimulatedError) Error() string { return "not simulated: " + e.What }

// Parse reads a document for an import (op "manifest") or an apply (op "profile"):
// the services and their properties in it (lxml_get_bundle_file in
// usr/src/cmd/svc/svccfg/svccfg_xml.c).
func Parse(data []byte, op string) ([]*Service, error) {
	root, dtd, err := readDocument(data)
	if err != nil {
		return nil, &DocumentError{"couldn't parse document"}
	}
	if dtd != DTDPath || root.XMLName.Local != "service_bundle" {
		return nil, &UnsimulatedError{"a document that is no service bundle"}
	}
	if root.attr("type") != op {
		return nil, &DocumentError{"document is not a " + op + "."}
	}
	if n := root.unknown(op); n != nil {
		return nil, &UnsimulatedError{"element " + n.XMLName.Local + " with what stands in it"}
	}
	var services []*Service
	for _, c := range root.Children {
		services = append(services, readService(c))
	}
	return services, nil
}

// node is an element of a document.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []*node    `xml:",any"`
	Text     string     `xml:",chardata"`
}

// readDocument parses XML into nodes, and finds the system identifier of the DOCTYPE.
func readDocument(data []byte) (root *node, dtd string, err error) {
	in := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) && root != nil {
			return root, dtd, nil
		}
		if err != nil {
			return nil, "", err
		}
		switch t := token.(type) {
		case xml.Directive:
			_, id, _ := strings.Cut(string(t), "SYSTEM")
			dtd = strings.Trim(id, " \t\n'\"")
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				return nil, "", errors.New("text outside the root")
			}
		case xml.StartElement:
			if root != nil {
				return nil, "", errors.New("two roots")
			}
			root = &node{}
			if err := in.DecodeElement(root, &t); err != nil {
				return nil, "", err
			}
		}
	}
}

// lookup is an attribute's value, normalised (XML 1.0, section 3.3.3), which
// encoding/xml leaves to its users. A blank that was written as a character
// reference is normalised too, which a real parser would not do.
func (n *node) lookup(name string) (string, bool) {
	for _, a := range n.Attrs {
		if a.Name.Local == name && (a.Name.Space == "" || name == "lang") {
			return strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ", "\r", " ").Replace(a.Value), true
		}
	}
	return "", false
}

func (n *node) attr(name string) string {
	value, _ := n.lookup(name)
	return value
}

func readService(n *node) *Service {
	s := &Service{Name: n.attr("name")}
	for _, c := range n.children("create_default_instance") {
		s.Instances = append(s.Instances, readInstance(c, "default"))
	}
	if len(n.children("single_instance")) > 0 {
		s.Groups.put("general", "framework", "single_instance", "boolean", "true")
	}
	readEntity(n, &s.Groups)
	for _, c := range n.children("stability") {
		s.Groups.put("general", "framework", "entity_stability", "astring", c.attr("value"))
	}
	for _, c := range n.children("instance") {
		s.Instances = append(s.Instances, readInstance(c, c.attr("name")))
	}
	return s
}

func readInstance(n *node, name string) *Instance {
	i := &Instance{Name: name}
	i.Groups.put("general", "framework", "enabled", "boolean", n.attr("enabled"))
	readEntity(n, &i.Groups)
	return i
}

// readEntity reads what services and instances share (lxml_get_dependency and its
// neighbours).
func readEntity(n *node, groups *Groups) {
	for _, c := range n.Children {
		name, typ := c.attr("name"), c.attr("type")
		switch c.XMLName.Local {
		case "dependency":
			for _, a := range []string{"grouping", "restart_on", "type"} {
				groups.put(name, "dependency", a, "astring", c.attr(a))
			}
			groups.put(name, "dependency", "entities", "fmri", c.values("service_fmri", "value")...)
		case "method_context":
			readContext(c, groups)
		case "exec_method":
			groups.put(name, typ, "exec", "astring", c.attr("exec"))
			timeout, _ := Normalize("count", c.attr("timeout_seconds"))
			groups.put(name, typ, "timeout_seconds", "count", timeout)
			groups.put(name, typ, "type", "astring", typ)
		case "property_group":
			if groups.Find(name) == nil {
				*groups = append(*groups, &Group{Name: name, Type: typ})
			}
			for _, p := range c.Children {
				value, _ := Normalize(p.attr("type"), p.attr("value"))
				groups.put(name, typ, p.attr("name"), p.attr("type"), value)
			}
		case "template":
			for _, text := range c.Children {
				for _, t := range text.Children {
					lang := strings.ReplaceAll(t.attr("lang"), ".", "_")
					groups.put("tm_"+text.XMLName.Local, "template", lang, "ustring", strings.TrimSpace(t.Text))
				}
			}
		}
	}
}

// readContext puts a method context into its group.
func readContext(n *node, groups *Groups) {
	put := func(name, typ string, values ...string) {
		groups.put("method_context", "framework", name, typ, values...)
	}
	for _, a := range n.Attrs {
		put(a.Name.Local, "astring", n.attr(a.Name.Local))
	}
	for _, c := range n.children("method_credential") {
		for _, a := range c.Attrs {
			put(a.Name.Local, "astring", c.attr(a.Name.Local))
		}
		put("use_profile", "boolean", "false")
	}
	for _, c := range n.children("method_environment") {
		environment := c.values("envvar", "name")
		for i, v := range c.values("envvar", "value") {
			environment[i] += "=" + v
		}
		put("environment", "astring", environment...)
	}
}

// children are those of this name, in order.
func (n *node) children(name string) (all []*node) {
	for _, c := range n.Children {
		if c.XMLName.Local == name {
			all = append(all, c)
		}
	}
	return all
}

// values are an attribute's of the children of this name.
func (n *node) values(name, attribute string) (all []string) {
	for _, c := range n.children(name) {
		all = append(all, c.attr(attribute))
	}
	return all
}

// put sets a property of a group that is made if it is missing.
func (g *Groups) put(group, groupType, name, typ string, values ...string) {
	found := g.Find(group)
	if found == nil {
		found = &Group{Name: group, Type: groupType}
		*g = append(*g, found)
	}
	if p := found.Property(name); p != nil {
		p.Type, p.Values = typ, values
		return
	}
	found.Properties = append(found.Properties, &Property{Name: name, Type: typ, Values: values})
}
