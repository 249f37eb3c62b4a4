package smf

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sledctl/sledctl/host/fault"
)

// SiteProfile is the profile that a zone applies last when it imports its
// manifests, once: a profile whose file has changed is not applied again
// (usr/src/cmd/svc/milestone/manifest-import and common/manifest_hash.c).
const SiteProfile = "/var/svc/profile/site.xml"

// Profile says what services must be and know. It overrides what their
// manifests say.
type Profile struct {
	Name     string // of the bundle; it decides nothing
	Services []ProfileService
}

// ProfileService is one instance of a service.
type ProfileService struct {
	Name     string // site/thing
	Instance string // default
	Enabled  bool
	Groups   []ProfileGroup
}

// ProfileGroup is a property group.
type ProfileGroup struct {
	Name       string
	Type       string // application
	Properties []ProfileProperty
}

// ProfileProperty is a property with its values.
type ProfileProperty struct {
	Name   string
	Type   string // astring, count, boolean, …
	Values []string
}

// RenderProfile is the profile as a document. Values are escaped, so whatever
// they hold arrives as it is; Validate says what cannot arrive.
func RenderProfile(p Profile) []byte {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\"?>\n<!DOCTYPE service_bundle SYSTEM \"" + dtd + "\">\n")
	w := element{out: &b}
	w.open("service_bundle", "type", "profile", "name", p.Name)
	for _, s := range p.Services {
		w.open("service", "name", s.Name, "type", "service", "version", "1")
		w.open("instance", "name", s.Instance, "enabled", fmt.Sprint(s.Enabled))
		for _, g := range s.Groups {
			w.open("property_group", "name", g.Name, "type", g.Type)
			for _, property := range g.Properties {
				w.property(property)
			}
			w.close("property_group")
		}
		w.close("instance")
		w.close("service")
	}
	w.close("service_bundle")
	return b.Bytes()
}

// element writes indented elements.
type element struct {
	out   *bytes.Buffer
	depth int
}

func (w *element) tag(name, end string, attributes ...string) {
	w.out.WriteString(strings.Repeat("  ", w.depth) + "<" + name)
	for i := 0; i < len(attributes); i += 2 {
		w.out.WriteString(" " + attributes[i] + "=\"")
		escape(w.out, attributes[i+1])
		w.out.WriteString("\"")
	}
	w.out.WriteString(end + "\n")
}

func (w *element) open(name string, attributes ...string) {
	w.tag(name, ">", attributes...)
	w.depth++
}

func (w *element) close(name string) {
	w.depth--
	w.out.WriteString(strings.Repeat("  ", w.depth) + "</" + name + ">\n")
}

// property is a propval for one value, else a property with a list
// (service_bundle(5)); a property without values has no list.
func (w *element) property(p ProfileProperty) {
	switch len(p.Values) {
	case 0:
		w.tag("property", "/>", "name", p.Name, "type", p.Type)
	case 1:
		w.tag("propval", "/>", "name", p.Name, "type", p.Type, "value", p.Values[0])
	default:
		w.open("property", "name", p.Name, "type", p.Type)
		w.open(p.Type + "_list")
		for _, v := range p.Values {
			w.tag("value_node", "/>", "value", v)
		}
		w.close(p.Type + "_list")
		w.close("property")
	}
}

// escape writes a value so that a parser of attributes reads it back: markup,
// and the white space that it would take for blanks.
func escape(out io.Writer, value string) {
	_ = xml.EscapeText(out, []byte(value)) // a bytes.Buffer takes everything
}

// ProfileError is a part of a profile that SMF would not take.
type ProfileError struct {
	What, Value, Reason string
}

// Error names it.
func (e *ProfileError) Error() string {
	return fmt.Sprintf("profile: %s %q: %s", e.What, e.Value, e.Reason)
}

func (*ProfileError) Kind() fault.Kind { return fault.Failed }

// Validate checks the names (uu_check_name of libuutil), the types and that
// the values can stand in a document. It does not know which services a zone
// has: what it does not have is passed over there.
func (p Profile) Validate() error {
	if p.Name == "" {
		return &ProfileError{"name", p.Name, "empty"}
	}
	for _, s := range p.Services {
		for part := range strings.SplitSeq(s.Name, "/") {
			if err := checkName("service name", part); err != nil {
				return err
			}
		}
		if err := checkName("instance name", s.Instance); err != nil {
			return err
		}
		for _, g := range s.Groups {
			if err := g.validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g ProfileGroup) validate() error {
	if err := checkName("property group name", g.Name); err != nil {
		return err
	}
	if err := checkName("property group type", g.Type); err != nil {
		return err
	}
	for _, p := range g.Properties {
		if err := checkName("property name", p.Name); err != nil {
			return err
		}
		if !slices.Contains(propertyTypes(), p.Type) {
			return &ProfileError{"property type", p.Type, "not known"}
		}
		for _, v := range p.Values {
			if strings.IndexFunc(v, notXML) >= 0 || !utf8.ValidString(v) {
				return &ProfileError{"value of " + p.Name, v, "cannot stand in a document"}
			}
		}
	}
	return nil
}

// propertyTypes are those of service_bundle.dtd.1.
func propertyTypes() []string {
	return []string{"count", "integer", "opaque", "host", "hostname", "net_address", "net_address_v4", "net_address_v6",
		"time", "astring", "ustring", "boolean", "fmri", "uri"}
}

func checkName(what, name string) error {
	rest := name
	if _, after, domain := strings.Cut(name, ","); domain {
		rest = after
	}
	for i, r := range rest {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !(r >= '0' && r <= '9' || r == '-' || r == '_')) {
			return &ProfileError{what, name, "a letter, then letters, digits, - and _"}
		}
	}
	if rest == "" {
		return &ProfileError{what, name, "empty"}
	}
	return nil
}

// notXML is what no XML 1.0 document can hold, escaped or not.
func notXML(r rune) bool {
	return !(r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000)
}
