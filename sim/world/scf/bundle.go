package scf

import (
	"errors"
	"fmt"
)

// DTDPath is the only document type that svccfg(8) takes for a service bundle.
const DTDPath = "/usr/share/lib/xml/dtd/service_bundle.dtd.1"

// Bundle is a parsed manifest or profile.
type Bundle struct {
	Type     string // manifest, profile, archive
	Name     string
	Services []*BundleService
}

// BundleService is a service as a bundle describes it.
type BundleService struct {
	Name       string
	Groups     Groups
	Dependents []Dependent
	Instances  []*BundleInstance
	Deleted    []string // groups marked delete='true'
}

// BundleInstance is an instance as a bundle describes it.
type BundleInstance struct {
	Name       string
	Groups     Groups
	Dependents []Dependent
	Deleted    []string
}

// Dependent is a dependency that the bundle puts on another service.
type Dependent struct {
	Name, Grouping, RestartOn, Target string
}

// DocumentError is a document that svccfg(8) does not take, with its message: the
// last line is svccfg's own, those before it are the XML library's.
type DocumentError struct{ Text string }

func (e *DocumentError) Error() string { return e.Text }

func refuse(format string, args ...any) error {
	return &DocumentError{Text: fmt.Sprintf(format, args...)}
}

// Parse reads a document for an import (op "manifest") or an apply (op
// "profile") and refuses what lxml_get_bundle_file refuses
// (usr/src/cmd/svc/svccfg/svccfg_xml.c). Profiles are not validated against
// the DTD there, so they are not here.
func Parse(data []byte, op string) (*Bundle, error) {
	d, err := readDocument(data)
	switch {
	case err != nil:
		return nil, refuse("couldn't parse document")
	case !d.hasDTD:
		return nil, refuse("document has no DTD")
	case d.dtd != DTDPath:
		return nil, refuse("document DTD unknown; not service bundle?")
	case d.root == nil:
		return nil, refuse("document is empty")
	case d.root.name != "service_bundle":
		return nil, refuse("document is not a service bundle")
	}
	if op != "profile" {
		if err := d.root.check(); err != nil {
			return nil, refuse("%v\nDocument is not valid.", err)
		}
	}
	b := &Bundle{Type: d.root.attrs["type"], Name: d.root.attrs["name"]}
	switch {
	case b.Type != op && op == "manifest":
		return nil, refuse("document is not a manifest.")
	case b.Type != op && op == "profile":
		return nil, refuse("document is not a profile.")
	case b.Name == "":
		return nil, refuse("service bundle lacks name attribute")
	}
	if err := b.read(d.root); err != nil {
		var refusal *DocumentError
		if !errors.As(err, &refusal) {
			err = refuse("%v", err)
		}
		return nil, err
	}
	return b, nil
}

func (b *Bundle) read(n *node) error {
	for _, c := range n.children {
		switch c.name {
		case "service_bundle":
			if c.attrs["type"] != b.Type {
				return refuse("included bundle of different type.")
			}
			if err := b.read(c); err != nil {
				return err
			}
		case "service":
			s, err := readService(c, b.Type == "profile")
			if err != nil {
				return err
			}
			b.Services = append(b.Services, s)
		}
	}
	return nil
}

// put sets a property of a group that is made if it is missing.
func (g *Groups) put(group, groupType, name, typ string, values ...string) {
	found := g.Find(group)
	if found == nil {
		found = &Group{Name: group, Type: groupType}
		*g = append(*g, found)
	}
	found.put(name, typ, values...)
}

func (g *Group) put(name, typ string, values ...string) {
	if p := g.Property(name); p != nil {
		p.Type, p.Values = typ, values
		return
	}
	g.Properties = append(g.Properties, &Property{Name: name, Type: typ, Values: values})
}
