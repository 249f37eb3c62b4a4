package system

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// prtconf(8): usr/src/cmd/prtconf. The tree is in devtree.go.

// Prtconf is the command prtconf with -m alone, or with -v, and with -D or without it.
func Prtconf(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := cli.Options(c.Args, "mvD", nil)
	cli.Simulated(given.Has('v') != given.Has('m') && len(operands) == 0 && c.Zone == world.GlobalZone)
	if given.Has('m') {
		cli.Simulated(!given.Has('D'))
		return cli.Reply{Stdout: fmt.Sprintf("%d\n", world.MemoryMiB)}
	}
	// The manufacturer that the SMBIOS tells.
	maker, machine := "Supermicro", "i86pc"
	if tx.State.Mode == world.Helios {
		maker, machine = "Oxide", "oxide"
	}
	o := printout{drivers: given.Has('D')}
	fmt.Fprintf(&o, "System Configuration:  %s  %s\nMemory size: %d Megabytes\n", maker, machine, world.MemoryMiB)
	o.WriteString("System Peripherals (Software Nodes):\n\n")
	o.dump(deviceTree(tx), 0)
	return cli.Reply{Stdout: o.String()}
}

// node is a node of the device tree.
type node struct {
	name, driver string
	instance     int // below 0: none
	sections     []section
	minors       func(*printout)
	children     []*node
}

// section is a list of properties with its title.
type section struct {
	title      string
	dev        bool // each property names its minor: none
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

// printout prints lines at levels of indentation.
type printout struct {
	strings.Builder
	drivers bool
}

// dump prints a node and what is below it (dump_devs).
func (o *printout) dump(n *node, level int) {
	name := n.name
	if n.instance >= 0 && level > 0 {
		name += fmt.Sprintf(", instance #%d", n.instance)
	}
	switch {
	case o.drivers && n.driver != "":
		name += " (driver name: " + n.driver + ")"
	case !o.drivers && n.driver == "":
		name += " (driver not attached)"
	}
	o.line(level, "%s", name)
	for _, s := range n.sections {
		o.line(level+1, "%s properties:", s.title)
		for _, property := range s.properties {
			o.property(level+2, property, s.dev)
		}
	}
	if n.minors != nil {
		o.line(level+1, "Device Minor Nodes:")
		n.minors(o)
	}
	for _, child := range n.children {
		o.dump(child, level+1)
	}
}

func (o *printout) line(level int, format string, args ...any) {
	fmt.Fprintf(o, "%*s"+format+"\n", append([]any{4 * level, ""}, args...)...)
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
