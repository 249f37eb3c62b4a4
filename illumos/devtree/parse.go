package devtree

import (
	"fmt"
	"strings"
)

// Parse reads `prtconf -vD`: after the heading a line for each node, indented
// by four blanks for each level; below it, one level deeper, sections with a
// title and a colon, whose lines are deeper still: properties, and minor nodes
// with their links (dump_devs, dump_prop_list and dump_minor_data of
// usr/src/cmd/prtconf/pdevinfo.c). The first node is the root. Errors are
// ErrSyntax.
//
// Guess prtconf-indents-by-four: `prtconf -vD` indents by four blanks for each level, and prints of
// each node the properties and minor nodes before its children (pdevinfo.c).
// Check: `prtconf -vD`
func Parse(out []byte) ([]*Node, error) {
	text := string(out)
	if !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("device tree is cut off: %w", ErrSyntax)
	}
	_, tree, found := strings.Cut(text, "System Peripherals (Software Nodes):\n")
	if !found {
		return nil, fmt.Errorf("device tree has no heading: %w", ErrSyntax)
	}
	p := treeParser{section: -1}
	for line := range strings.Lines(tree) {
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("device tree: %q: %w", line, err)
		}
	}
	if len(p.all) == 0 {
		return nil, fmt.Errorf("device tree has no root: %w", ErrSyntax)
	}
	return p.all, nil
}

// treeParser reads line after line.
type treeParser struct {
	all     []*Node
	path    []*Node // from the root to the last node
	section int     // the level of the section that is read, -1 for none
	name    string  // of the property whose value comes
}

func (p *treeParser) line(line string) error {
	text := strings.TrimLeft(line, " ")
	level := (len(line) - len(text)) / 4
	if p.section >= 0 && level > p.section {
		p.detail(text)
		return nil
	}
	p.section, p.name = -1, ""
	switch {
	case len(line)-len(text) != 4*level || level > len(p.path):
		return fmt.Errorf("not indented as a tree is: %w", ErrSyntax)
	case strings.HasSuffix(text, ":") && level > 0:
		p.section, p.path = level, p.path[:level]
		return nil
	case level == 0 && len(p.all) > 0:
		return fmt.Errorf("a second root: %w", ErrSyntax)
	}
	n := parseNode(text)
	p.path = p.path[:level]
	if level > 0 {
		n.Parent = p.path[level-1]
	}
	p.path = append(p.path, n)
	p.all = append(p.all, n)
	return nil
}

// parseNode reads a node's line: "blkdev, instance #1 (driver name: blkdev)".
func parseNode(text string) *Node {
	n := &Node{Properties: map[string]string{}}
	if _, rest, found := strings.Cut(text, "(driver name: "); found {
		n.Driver, _, _ = strings.Cut(rest, ")")
	}
	n.Name, _, _ = strings.Cut(text, ", instance #")
	n.Name, _, _ = strings.Cut(n.Name, " (")
	return n
}

// detail reads a line of a section.
func (p *treeParser) detail(text string) {
	n := p.path[len(p.path)-1]
	if rest, found := strings.CutPrefix(text, "name='"); found {
		p.name, _, _ = strings.Cut(rest, "'")
		return
	}
	if value, found := strings.CutPrefix(text, "value="); found && p.name != "" {
		if _, twice := n.Properties[p.name]; !twice {
			n.Properties[p.name] = value
		}
		p.name = ""
		return
	}
	if link, found := strings.CutPrefix(text, "dev_link="); found {
		n.Links = append(n.Links, link)
	}
}
