package scf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// node is an element of a document.
type node struct {
	name     string
	attrs    map[string]string
	children []*node
	text     string
	line     int
}

// child is the first child of that name, or nil.
func (n *node) child(name string) *node {
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// each calls do for the children of that name, in order.
func (n *node) each(name string, do func(*node)) {
	for _, c := range n.children {
		if c.name == name {
			do(c)
		}
	}
}

// document is a parsed file: its root and the system identifier of its DOCTYPE.
type document struct {
	root   *node
	dtd    string
	hasDTD bool
}

var errMalformed = errors.New("couldn't parse document")

// readDocument parses XML into nodes; anything malformed is errMalformed.
func readDocument(data []byte) (*document, error) {
	d := &document{}
	in := xml.NewDecoder(bytes.NewReader(data))
	var stack []*node
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			if len(stack) > 0 {
				return nil, errMalformed
			}
			return d, nil
		}
		if err != nil {
			return nil, errMalformed
		}
		switch t := token.(type) {
		case xml.Directive:
			d.readDoctype(string(t))
		case xml.StartElement:
			if len(stack) == 0 && d.root != nil {
				return nil, errMalformed
			}
			n := newNode(in, t)
			if len(stack) == 0 {
				d.root = n
			} else {
				parent := stack[len(stack)-1]
				parent.children = append(parent.children, n)
			}
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) == 0 {
				if len(bytes.TrimSpace(t)) > 0 {
					return nil, errMalformed
				}
				continue
			}
			stack[len(stack)-1].text += string(t)
		}
	}
}

func newNode(in *xml.Decoder, t xml.StartElement) *node {
	// Attribute values are normalised: XML 1.0, section 3.3.3. encoding/xml
	// leaves that to its users. A blank that was written as a character
	// reference is normalised too, which a real parser would not do.
	blanks := strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ", "\r", " ")
	n := &node{name: qualified(t.Name), attrs: map[string]string{}}
	n.line, _ = in.InputPos()
	for _, a := range t.Attr {
		n.attrs[qualified(a.Name)] = blanks.Replace(a.Value)
	}
	return n
}

// qualified is a name with its prefix: encoding/xml gives the URI of those
// that it knows.
func qualified(n xml.Name) string {
	switch n.Space {
	case "":
		return n.Local
	case "http://www.w3.org/XML/1998/namespace", "xml":
		return "xml:" + n.Local
	case "http://www.w3.org/2001/XInclude", "xi":
		return "xi:" + n.Local
	}
	return n.Space + ":" + n.Local
}

// readDoctype takes the system identifier out of DOCTYPE name SYSTEM "id".
func (d *document) readDoctype(directive string) {
	rest, ok := strings.CutPrefix(directive, "DOCTYPE")
	if !ok {
		return
	}
	d.hasDTD = true
	if _, id, ok := strings.Cut(rest, "SYSTEM"); ok {
		id = strings.TrimSpace(id)
		if id != "" {
			if end := strings.IndexByte(id[1:], id[0]); end >= 0 {
				d.dtd = id[1 : 1+end]
			}
		}
	}
}
