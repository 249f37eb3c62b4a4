package system

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// prtconf(8): usr/src/cmd/prtconf. The tree is in devtree.go.

// memoryMB is the memory of the sled.
const memoryMB = 1048064

// prtconf is what the command was asked for.
type prtconf struct {
	verbose, drivers bool
	out              strings.Builder
}

// Prtconf is the command prtconf. Of its options -v, -D and -m are simulated.
func Prtconf(tx *world.Tx, c cli.Call) cli.Reply {
	const usage = "prtconf [ -F | -m | -V | -x | -abcdvpPD ] [ <device_path > ]\n"
	options, operands := cli.Getopt(c.Args, "abcdDvVxmpPFf:uC", nil)
	var p prtconf
	for _, o := range options {
		switch o.Letter {
		case 'v':
			p.verbose = true
		case 'D':
			p.drivers = true
		case 'm':
			return cli.Reply{Stdout: fmt.Sprintf("%d\n", memoryMB)}
		case '?':
			return cli.Reply{Stderr: "prtconf: illegal option -- " + o.Bad + "\n" + usage, Exit: 1}
		case ':':
			return cli.Reply{Stderr: "prtconf: option requires an argument -- " + o.Bad + "\n" + usage, Exit: 1}
		default:
			return cli.Reply{Stderr: fmt.Sprintf("prtconf: 'prtconf -%c' is not simulated\n", o.Letter), Exit: 1}
		}
	}
	if len(operands) > 0 {
		return cli.Reply{Stderr: "prtconf: a device path is not simulated\n", Exit: 1}
	}
	// The manufacturer that the SMBIOS tells.
	maker, machine := "Supermicro", "i86pc"
	if tx.State.Mode == world.Helios {
		maker, machine = "Oxide", "oxide"
	}
	fmt.Fprintf(&p.out, "System Configuration:  %s  %s\nMemory size: %d Megabytes\n", maker, machine, memoryMB)
	p.out.WriteString("System Peripherals (Software Nodes):\n\n")
	if c.Zone != world.GlobalZone {
		return cli.Reply{Stdout: p.out.String(), Stderr: "prtconf: devinfo facility not available\n"}
	}
	p.dump(deviceTree(tx), 0)
	return cli.Reply{Stdout: p.out.String()}
}

// node is a node of the device tree.
type node struct {
	name, driver string
	instance     int // below 0: none
	detached     bool
	sections     []section
	minors       func(*printout)
	children     []*node
}

// section is a list of properties with its title.
type section struct {
	title      string
	dev        bool // it tells which minor a property is of: none
	properties []property
}

// property is one property of a node: its type and its value as it is printed.
// An empty value is a boolean's.
type property struct{ name, kind, value string }

// integer is a property of type int, which prtconf prints in hexadecimal.
func integer(name string, n int) property {
	return property{name, "int", fmt.Sprintf("%08x", uint32(n))}
}

// integer64 is one of type int64.
func integer64(name string, n uint64) property {
	return property{name, "int64", fmt.Sprintf("%016x", n)}
}

// word is one of type string.
func word(name, value string) property { return property{name, "string", "'" + value + "'"} }

// boolean is one that is there or not.
func boolean(name string) property { return property{name: name, kind: "boolean"} }

// dump prints a node and what is below it (dump_devs).
func (p *prtconf) dump(n *node, level int) {
	o := &printout{&p.out}
	name := n.name
	if n.instance >= 0 && level > 0 {
		name += fmt.Sprintf(", instance #%d", n.instance)
	}
	switch {
	case p.drivers && n.driver != "":
		name += " (driver name: " + n.driver + ")"
	case !p.drivers && n.detached:
		name += " (driver not attached)"
	}
	o.line(level, "%s", name)
	if p.verbose {
		for _, s := range n.sections {
			o.line(level+1, "%s properties:", s.title)
			for _, property := range s.properties {
				o.property(level+2, property, s.dev)
			}
		}
		if n.minors != nil {
			o.line(level+1, "Device Minor Nodes:")
			n.minors(&printout{&p.out})
		}
	}
	for _, child := range n.children {
		p.dump(child, level+1)
	}
}

// printout prints lines at levels of indentation.
type printout struct{ to *strings.Builder }

func (o *printout) line(level int, format string, args ...any) {
	fmt.Fprintf(o.to, "%*s"+format+"\n", append([]any{4 * level, ""}, args...)...)
}

// property prints one (dump_prop_list).
func (o *printout) property(level int, p property, dev bool) {
	head := "name='" + p.name + "' type=" + p.kind
	if p.value != "" {
		head += " items=1"
	}
	if dev {
		head += " dev=none"
	}
	o.line(level, "%s", head)
	if p.value != "" {
		o.line(level, "    value=%s", p.value)
	}
}
