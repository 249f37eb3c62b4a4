// Package net holds dladm, ipadm, netstat and route.
package net

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// dladm(8): datalinks. Texts, options and their order of checking are those of
// usr/src/cmd/dladm/dladm.c. The command exits 1 for any failure, usage
// included, and prints errors on standard error.

// dladmCall is one run of dladm.
type dladmCall struct {
	tx    *world.Tx
	zone  string
	args  []string // behind the subcommand
	usage string   // of the subcommand
	c     cli.Call
	warn  strings.Builder
}

// dladmCommand is a subcommand.
type dladmCommand struct {
	name  string
	run   func(*dladmCall) cli.Reply
	usage string
}

// dladmCommands are the subcommands that are simulated.
func dladmCommands() []dladmCommand {
	return []dladmCommand{
		{"rename-link", (*dladmCall).renameLink, "    rename-link      <oldlink> <newlink>"},
		{"show-link", (*dladmCall).showLink,
			"    show-link        [-pP] [-o <field>,..] [-s [-i <interval>]] [<link>]\n"},
		{"set-linkprop", (*dladmCall).setLinkprop, "    set-linkprop     [-t] -p <prop>=<value>[,...] <name>"},
		{"reset-linkprop", (*dladmCall).resetLinkprop, "    reset-linkprop   [-t] [-p <prop>,...] <name>"},
		{"show-linkprop", (*dladmCall).showLinkprop,
			"    show-linkprop    [-cP] [-o <field>,...] [-p <prop>,...] <name>\n"},
		{"create-aggr", (*dladmCall).createAggr,
			"    create-aggr      [-t] [-P <policy>] [-L <mode>] [-T <time>] [-u <address>]\n" +
				"\t\t     -l <link> [-l <link>...] <link>"},
		{"delete-aggr", (*dladmCall).deleteAggr, "    delete-aggr      [-t] <link>\n"},
		{"show-aggr", (*dladmCall).showAggr,
			"    show-aggr        [-pPLx] [-o <field>,..] [-s [-i <interval>]] [<link>]\n"},
		{"create-vlan", (*dladmCall).createVLAN, "    create-vlan      [-ft] -l <link> -v <vid> [link]"},
		{"delete-vlan", (*dladmCall).deleteVLAN, "    delete-vlan      [-t] <link>\n"},
		{"show-phys", (*dladmCall).showPhys,
			"    show-phys        [-m | -H | -P] [[-p] [-o <field>[,...]] [<link>]\n"},
		{"create-vnic", (*dladmCall).createVNIC,
			"    create-vnic      [-t] -l <link> [-m <value> | auto |\n" +
				"\t\t     {factory [-n <slot-id>]} | {random [-r <prefix>]} |\n" +
				"\t\t     {vrrp -V <vrid> -A {inet | inet6}} [-v <vid> [-f]]\n" +
				"\t\t     [-p <prop>=<value>[,...]] <vnic-link>"},
		{"delete-vnic", (*dladmCall).deleteVNIC, "    delete-vnic      [-t] <vnic-link>"},
		{"show-vnic", (*dladmCall).showVNIC, "    show-vnic        [-pP] [-l <link>] [-s [-i <interval>]] [<link>]\n"},
		{"create-etherstub", (*dladmCall).createEtherstub, "    create-etherstub [-t] <link>"},
		{"delete-etherstub", (*dladmCall).deleteEtherstub, "    delete-etherstub [-t] <link>"},
		{"show-etherstub", (*dladmCall).showEtherstub, "    show-etherstub   [-t] [<link>]\n"},
	}
}

// unsimulatedDladm are real subcommands that the simulated sled does not have.
const unsimulatedDladm = " add-aggr remove-aggr modify-aggr up-aggr scan-wifi connect-wifi" +
	" disconnect-wifi show-wifi show-ether create-secobj delete-secobj show-secobj show-vlan" +
	" create-iptun delete-iptun modify-iptun show-iptun delete-phys create-part delete-part show-part show-ib" +
	" create-simnet delete-simnet modify-simnet show-simnet create-bridge delete-bridge modify-bridge add-bridge" +
	" remove-bridge show-bridge create-overlay delete-overlay modify-overlay show-overlay show-usage" +
	" create-tfport delete-tfport show-tfport "

// Dladm runs dladm(8).
func Dladm(tx *world.Tx, c cli.Call) cli.Reply {
	d := &dladmCall{tx: tx, zone: c.Zone, c: c}
	args := c.Args
	if len(args) == 0 {
		args = []string{"show-link"}
	}
	for _, command := range dladmCommands() {
		if command.name == args[0] {
			d.args, d.usage = args[1:], command.usage
			return command.run(d)
		}
	}
	switch {
	case args[0] == "help":
		return cli.Reply{Stderr: dladmUsageText()}
	case strings.Contains(unsimulatedDladm, " "+args[0]+" "):
		panic(world.Unsimulated{What: args[0]})
	}
	return cli.Reply{Stderr: fmt.Sprintf("dladm: unknown subcommand '%s'\n", args[0]) + dladmUsageText(), Exit: 1}
}

func dladmUsageText() string {
	var b strings.Builder
	b.WriteString("usage:  dladm <subcommand> <args> ...\n")
	for _, command := range dladmCommands() {
		b.WriteString(command.usage + "\n")
	}
	return b.String()
}

// wrongUsage prints the usage of everything.
func (d *dladmCall) wrongUsage() cli.Reply { return cli.Reply{Stderr: dladmUsageText(), Exit: 1} }

// die ends with an error.
func (d *dladmCall) die(format string, args ...any) cli.Reply {
	return cli.Reply{Stderr: d.warn.String() + "dladm: " + fmt.Sprintf(format, args...) + "\n", Exit: 1}
}

// warning is printed, and the command goes on.
func (d *dladmCall) warning(format string, args ...any) {
	fmt.Fprintf(&d.warn, "dladm: warning: "+format+"\n", args...)
}

// badOption is die_opterr.
func (d *dladmCall) badOption(o cli.Option) cli.Reply {
	if o.Letter == ':' {
		return d.die("option '-%s' requires a value\nusage: %s", o.Bad, d.usage)
	}
	return d.die("unrecognized option '-%s'\nusage: %s", o.Bad, d.usage)
}

func (d *dladmCall) twice(letter byte) cli.Reply {
	return d.die("the option -%c cannot be specified more than once", letter)
}

// find looks a link up as dladm_name2info does, which cuts a name at 31 bytes.
func (d *dladmCall) find(name string) *world.Link {
	if len(name) > 31 {
		name = name[:31]
	}
	return network.LinkIn(d.tx, d.zone, name)
}

// mayChange refuses changes inside a zone: the limit set of a zone has no
// sys_dl_config unless its configuration grants it (privileges(7)), and zones
// that have it are not simulated.
func (d *dladmCall) mayChange() error {
	if d.zone != world.GlobalZone {
		return network.LinkDenied
	}
	return nil
}

// over is the name of the lower link as this zone sees it; an aggregation's are
// its ports.
func (d *dladmCall) over(l *world.Link) string {
	switch {
	case l.Class == "aggr":
		return l.Over
	case l.Class != "vnic" && l.Class != "vlan":
		return ""
	case d.zone != world.GlobalZone || network.FindLink(d.tx, l.Over) == nil:
		return cli.UnknownField
	}
	return l.Over
}

// speed is in Mb/s: what the lower link has, 0 over an etherstub.
func (d *dladmCall) speed(l *world.Link) string {
	lower := network.FindLink(d.tx, l.Over)
	if l.Class == "phys" || l.Class == "aggr" || lower != nil && (lower.Class == "phys" || lower.Class == "aggr") {
		return "1000"
	}
	return strconv.Itoa(0)
}

// parseLinkProps reads -p NAME=VALUE[,VALUE...][,NAME=...]: a word without "="
// is one more value of the property before it (dladm_parse_args in
// usr/src/lib/libdladm/common/propfuncs.c). With names, words are properties.
func parseLinkProps(text string, names bool) (settings []network.LinkSetting, ok bool) {
	for _, word := range strings.Split(strings.TrimRight(text, ","), ",") {
		name, value, has := strings.Cut(word, "=")
		switch {
		case text == "":
			return nil, true
		case names:
			settings = append(settings, network.LinkSetting{Name: word})
			if has || word == "" {
				return nil, false
			}
		case has && name == "", !has && len(settings) == 0:
			return nil, false
		case has && value == "":
			settings = append(settings, network.LinkSetting{Name: name})
		case has:
			settings = append(settings, network.LinkSetting{Name: name, Values: []string{value}})
		default:
			last := &settings[len(settings)-1]
			last.Values = append(last.Values, word)
		}
	}
	return settings, true
}
