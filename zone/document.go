package zone

import (
	"encoding/xml"
	"strings"
)

// document is the part of zonecfg.dtd.1 that a Config holds; elements and
// attributes that are not named here are ignored, as distributions add some.
type document struct {
	XMLName   xml.Name        `xml:"zone"`
	Name      string          `xml:"name,attr"`
	Zonepath  string          `xml:"zonepath,attr"`
	Brand     string          `xml:"brand,attr"`
	Autoboot  string          `xml:"autoboot,attr"`
	IPType    string          `xml:"ip-type,attr"`
	Limitpriv string          `xml:"limitpriv,attr"`
	Attrs     []attrElement   `xml:"attr"`
	FS        []fsElement     `xml:"filesystem"`
	Nets      []netElement    `xml:"network"`
	Devices   []deviceElement `xml:"device"`
	Datasets  []namedElement  `xml:"dataset"`
	Rctls     []rctlElement   `xml:"rctl"`
}

type attrElement struct {
	Name  string `xml:"name,attr"`
	Type  string `xml:"type,attr"`
	Value string `xml:"value,attr"`
}

type fsElement struct {
	Directory string         `xml:"directory,attr"`
	Special   string         `xml:"special,attr"`
	Type      string         `xml:"type,attr"`
	Options   []namedElement `xml:"fsoption"`
}

type netElement struct {
	Physical       string `xml:"physical,attr"`
	AllowedAddress string `xml:"allowed-address,attr"`
	Defrouter      string `xml:"defrouter,attr"`
	MAC            string `xml:"mac-addr,attr"`
}

type deviceElement struct {
	Match string `xml:"match,attr"`
}

type namedElement struct {
	Name string `xml:"name,attr"`
}

// A look at the sled reads the configurations of all zones, and encoding/xml takes
// twenty times as long for one as looking for what it must hold. So a file is first
// read as libxml2 writes it: elements with attributes in double quotes, nothing
// escaped, no text. Whatever else there is, encoding/xml reads.

// readDocument reads a configuration.
func readDocument(data []byte) (document, error) {
	if d, ok := writtenDocument(string(data)); ok {
		return d, nil
	}
	var d document
	err := xml.Unmarshal(data, &d)
	return d, err
}

// writtenDocument reads one that is written as libxml2 does.
func writtenDocument(text string) (d document, ok bool) {
	s := scanner{rest: text}
	s.head()
	s.element(0, func(name string) element {
		if name != "zone" {
			s.fail()
		}
		return element{[]attribute{
			{"name", &d.Name}, {"zonepath", &d.Zonepath}, {"brand", &d.Brand}, {"autoboot", &d.Autoboot}, {"ip-type", &d.IPType}, {"limitpriv", &d.Limitpriv},
		}, d.resource}
	})
	d.XMLName.Local = "zone"
	return d, !s.failed
}

// element is where the attributes of one go, and what is in it; nil: nowhere.
type element struct {
	attributes []attribute
	inner      func(name string) element
}

type attribute struct {
	name string
	to   *string
}

func (d *document) resource(name string) element {
	switch name {
	case "attr":
		a := added(&d.Attrs)
		return element{attributes: []attribute{{"name", &a.Name}, {"type", &a.Type}, {"value", &a.Value}}}
	case "filesystem":
		f := added(&d.FS)
		return element{[]attribute{{"directory", &f.Directory}, {"special", &f.Special}, {"type", &f.Type}}, f.option}
	case "network":
		n := added(&d.Nets)
		return element{attributes: []attribute{
			{"physical", &n.Physical}, {"allowed-address", &n.AllowedAddress}, {"defrouter", &n.Defrouter}, {"mac-addr", &n.MAC},
		}}
	case "device":
		return element{attributes: []attribute{{"match", &added(&d.Devices).Match}}}
	case "dataset":
		return element{attributes: []attribute{{"name", &added(&d.Datasets).Name}}}
	case "rctl":
		r := added(&d.Rctls)
		return element{[]attribute{{"name", &r.Name}}, r.value}
	}
	return element{}
}

func (f *fsElement) option(name string) element {
	if name != "fsoption" {
		return element{}
	}
	return element{attributes: []attribute{{"name", &added(&f.Options).Name}}}
}

// added is a new last one of a list, until the next is added.
func added[T any](list *[]T) *T {
	var one T
	*list = append(*list, one)
	return &(*list)[len(*list)-1]
}

// scanner reads what libxml2 writes. Once something is not as expected it has failed,
// and finds nothing more.
type scanner struct {
	rest   string
	failed bool
}

func (s *scanner) fail() { s.failed, s.rest = true, "" }

// next takes what comes next, if it is that.
func (s *scanner) next(what string) bool {
	rest, ok := strings.CutPrefix(s.rest, what)
	s.rest = rest
	return ok
}

func (s *scanner) expect(what string) {
	if !s.next(what) {
		s.fail()
	}
}

// blank takes blanks and ends of lines.
func (s *scanner) blank() { s.rest = strings.TrimLeft(s.rest, " \t\n") }

// head takes what stands before the first element.
func (s *scanner) head() {
	s.next(`<?xml version="1.0" encoding="UTF-8"?>`)
	s.blank()
	if s.next("<!DOCTYPE ") {
		s.upTo(">")
	}
	s.blank()
	if s.next("<!--") {
		s.upTo("-->")
	}
	s.blank()
}

// upTo takes all before an end, with it.
func (s *scanner) upTo(end string) {
	within, rest, found := strings.Cut(s.rest, end)
	strange := strings.ContainsAny(within, "<['") || strings.Contains(within, "--") || strings.Count(within, `"`)%2 > 0 ||
		strings.ContainsFunc(within, func(r rune) bool { return r > '~' || r < ' ' && r != '\n' && r != '\t' })
	if s.rest = rest; !found || strange {
		s.fail()
	}
}

// element takes one, with all that is in it.
func (s *scanner) element(depth int, of func(name string) element) {
	s.expect("<")
	name := s.word()
	var e element
	if of != nil && !s.failed {
		e = of(name)
	}
	for s.next(" ") {
		key := s.word()
		s.expect(`="`)
		value := s.value()
		s.expect(`"`)
		for _, a := range e.attributes {
			if a.name == key {
				*a.to = value
			}
		}
	}
	const deepest = 8 // a configuration has three levels
	if s.next("/>") || s.failed || depth == deepest {
		s.failed = s.failed || depth == deepest
		return
	}
	s.expect(">")
	for s.blank(); !s.failed && !s.next("</"); s.blank() {
		s.element(depth+1, e.inner)
	}
	s.expect(name)
	s.expect(">")
}

// word takes a name, in ASCII and of no other namespace.
func (s *scanner) word() string {
	n := 0
	for n < len(s.rest) && (letter(s.rest[n]) || n > 0 && (s.rest[n] == '-' || s.rest[n] >= '0' && s.rest[n] <= '9')) {
		n++
	}
	word := s.rest[:n]
	if s.rest = s.rest[n:]; n == 0 {
		s.fail()
	}
	return word
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// value takes that of an attribute, up to its quote.
func (s *scanner) value() string {
	n := 0
	for n < len(s.rest) && s.rest[n] >= ' ' && s.rest[n] <= '~' && s.rest[n] != '"' && s.rest[n] != '&' && s.rest[n] != '<' {
		n++
	}
	value := s.rest[:n]
	s.rest = s.rest[n:]
	return value
}
