package disk

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrSyntax is output that prtconf and fstyp do not print.
var ErrSyntax = errors.New("not in the form of prtconf or fstyp")

// node is a node of the device tree.
type node struct {
	name, driver string
	properties   map[string]string // as printed
	links        []string          // below /dev
	parent       *node
}

// parseTree reads `prtconf -vD`: after the heading a line for each node, indented
// by four blanks for each level; below it, one level deeper, sections with a
// title and a colon, whose lines are deeper still: properties, and minor nodes
// with their links (dump_devs, dump_prop_list and dump_minor_data of
// usr/src/cmd/prtconf/pdevinfo.c). The first node is the root. Errors are
// ErrSyntax.
//
// Guess prtconf-indents-by-four: `prtconf -vD` indents by four blanks for each level, and prints of
// each node the properties and minor nodes before its children (pdevinfo.c).
// Check: `prtconf -vD`
func parseTree(out []byte) ([]*node, error) {
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
	all     []*node
	path    []*node // from the root to the last node
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
		n.parent = p.path[level-1]
	}
	p.path = append(p.path, n)
	p.all = append(p.all, n)
	return nil
}

// parseNode reads a node's line: "blkdev, instance #1 (driver name: blkdev)".
func parseNode(text string) *node {
	n := &node{properties: map[string]string{}}
	if _, rest, found := strings.Cut(text, "(driver name: "); found {
		n.driver, _, _ = strings.Cut(rest, ")")
	}
	n.name, _, _ = strings.Cut(text, ", instance #")
	n.name, _, _ = strings.Cut(n.name, " (")
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
		if _, twice := n.properties[p.name]; !twice {
			n.properties[p.name] = value
		}
		p.name = ""
		return
	}
	if link, found := strings.CutPrefix(text, "dev_link="); found {
		n.links = append(n.links, link)
	}
}

// text is a property that is one string.
func (n *node) text(property string) (string, error) {
	value, there := n.properties[property]
	inner, opens := strings.CutPrefix(value, "'")
	inner, closes := strings.CutSuffix(inner, "'")
	switch {
	case !there:
		return "", fmt.Errorf("%s has no %s: %w", n.name, property, ErrSyntax)
	case !opens || !closes || strings.Contains(inner, "' + '"):
		return "", fmt.Errorf("%s of %s: %s is no string: %w", property, n.name, value, ErrSyntax)
	}
	return inner, nil
}

// number is a property that is one integer, which is printed in hexadecimal.
func (n *node) number(property string) (uint64, error) {
	if n == nil {
		return 0, fmt.Errorf("no node for %s: %w", property, ErrSyntax)
	}
	value, there := n.properties[property]
	if !there {
		return 0, fmt.Errorf("%s has no %s: %w", n.name, property, ErrSyntax)
	}
	number, err := strconv.ParseUint(value, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %s is no integer: %w", property, n.name, value, ErrSyntax)
	}
	return number, nil
}

// above is the parent, if it has the driver.
func (n *node) above(driver string) *node {
	if n == nil || n.parent == nil || n.parent.driver != driver {
		return nil
	}
	return n.parent
}

// whole is the link of the whole disk: the one below /dev/dsk without a slice or
// partition.
func (n *node) whole() (string, bool) {
	for _, link := range n.links {
		short, found := strings.CutPrefix(link, deviceDir)
		at := strings.LastIndexByte(short, 'd')
		if found && at > 0 && at < len(short)-1 && strings.Trim(short[at+1:], "0123456789") == "" {
			return link, true
		}
	}
	return "", false
}

// file is the output of `fstyp -a` for a device.
type file struct {
	system     string // "zfs", "ufs" …
	name, guid string // of a pool
}

// parseContent reads `fstyp -a`: the name of the file system, then what its
// module tells; that of ZFS prints the configuration in a label (dump_nvlist of
// usr/src/cmd/fs.d/zfs/fstyp/fstyp.c). A label without a name and identity is an
// error. Errors are ErrSyntax.
func parseContent(out []byte) (file, error) {
	system, rest, ended := strings.Cut(string(out), "\n")
	f := file{system: system}
	if !ended || strings.Trim(system, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || system == "" {
		return file{}, fmt.Errorf("%q is no file system: %w", system, ErrSyntax)
	}
	if system != "zfs" {
		return f, nil
	}
	for line := range strings.Lines(rest) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "name":
			f.name = strings.Trim(value, "'")
		case "pool_guid":
			f.guid = value
		}
	}
	if _, err := strconv.ParseUint(f.guid, 10, 64); err != nil || f.name == "" {
		return file{}, fmt.Errorf("a label of ZFS without name and guid: %w", ErrSyntax)
	}
	return f, nil
}
