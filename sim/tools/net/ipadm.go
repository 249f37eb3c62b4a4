package net

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// ipadm(8): interfaces and addresses of the zone that it runs in. Texts,
// options and their order of checking are those of
// usr/src/cmd/cmd-inet/usr.sbin/ipadm/ipadm.c. It exits 1 for any failure. Its
// die() writes the words to standard error and the newline behind them to
// standard output, so that a failure leaves "\n" there.

// ipadmCall is one run of ipadm.
type ipadmCall struct {
	tx    *world.Tx
	zone  string
	args  []string // behind the subcommand
	usage string   // of the subcommand
	c     cli.Call
	warn  strings.Builder
}

// ipadmCommand is a subcommand.
type ipadmCommand struct {
	name  string
	run   func(*ipadmCall) cli.Reply
	usage string
}

// ipadmCommands are the subcommands that are simulated.
func ipadmCommands() []ipadmCommand {
	return []ipadmCommand{
		{"create-if", (*ipadmCall).createIf, "\tcreate-if\t[-t] <interface>"},
		{"delete-if", (*ipadmCall).deleteIf, "\tdelete-if\t<interface>"},
		{"show-if", (*ipadmCall).showIf, "\tshow-if\t\t[[-p] -o <field>,...] [<interface>]\n"},
		{"set-ifprop", (*ipadmCall).setIfprop,
			"\tset-ifprop\t[-t] -p <prop>=<value[,...]> -m <protocol> <interface>"},
		{"create-addr", (*ipadmCall).createAddr,
			"\tcreate-addr\t[-t] -T static [-d] -a{local|remote}=addr[/prefixlen]\n\t\t\t<addrobj>\n" +
				"\tcreate-addr\t[-t] -T dhcp [-w <seconds> | forever]\n\t\t\t[-1] [-h <hostname>] <addrobj>\n" +
				"\tcreate-addr\t[-t] -T addrconf [-i interface-id]\n" +
				"\t\t\t[-p {stateful|stateless}={yes|no}] <addrobj>"},
		{"delete-addr", (*ipadmCall).deleteAddr, "\tdelete-addr\t[-r] <addrobj>"},
		{"show-addr", (*ipadmCall).showAddr, "\tshow-addr\t[[-p] -o <field>,...] [<addrobj>]\n"},
	}
}

// unsimulatedIpadm are real subcommands that the simulated sled does not have.
const unsimulatedIpadm = " disable-if enable-if show-ifprop reset-ifprop down-addr up-addr disable-addr enable-addr refresh-addr" +
	" set-addrprop reset-addrprop show-addrprop set-prop reset-prop show-prop "

// Ipadm runs ipadm(8).
func Ipadm(tx *world.Tx, c cli.Call) cli.Reply {
	i := &ipadmCall{tx: tx, zone: c.Zone, c: c}
	args := c.Args
	if len(args) == 0 {
		args = []string{"show-addr"}
	}
	if err := network.CheckIPDaemon(tx, c.Zone); err != nil {
		return i.die("Could not open handle to library - %s", err)
	}
	for _, command := range ipadmCommands() {
		if command.name == args[0] {
			i.args, i.usage = args[1:], command.usage
			return command.run(i)
		}
	}
	if strings.Contains(unsimulatedIpadm, " "+args[0]+" ") {
		panic(world.Unsimulated{What: args[0]})
	}
	var usage strings.Builder
	fmt.Fprintf(&usage, "ipadm: unknown subcommand '%s'\nusage:  ipadm <subcommand> <args> ...\n", args[0])
	for _, command := range ipadmCommands() {
		usage.WriteString(command.usage + "\n")
	}
	return cli.Reply{Stderr: usage.String(), Exit: 1}
}

// die ends with an error, in its odd way.
func (i *ipadmCall) die(format string, args ...any) cli.Reply {
	return cli.Reply{Stdout: "\n", Stderr: i.warn.String() + "ipadm: " + fmt.Sprintf(format, args...), Exit: 1}
}

// warning is printed, and the command goes on.
func (i *ipadmCall) warning(format string, args ...any) {
	fmt.Fprintf(&i.warn, "ipadm: warning: "+format+"\n", args...)
}

// wrongUsage is what most subcommands say about operands.
func (i *ipadmCall) wrongUsage() cli.Reply { return i.die("Usage: %s", i.usage) }

// badOption is die_opterr.
func (i *ipadmCall) badOption(o cli.Option) cli.Reply {
	if o.Letter == ':' {
		return i.die("option '-%s' requires a value\nusage: %s", o.Bad, i.usage)
	}
	return i.die("unrecognized option '-%s'\nusage: %s", o.Bad, i.usage)
}

// showIpadm opens a table and prints the rows.
func showIpadm[R any](i *ipadmCall, columns []cli.Column[R], fields *string, parsable bool, rows []R) cli.Reply {
	t, fatal, warning := cli.OpenTable(columns, fields, parsable)
	if fatal != "" {
		return i.die("%s", fatal)
	}
	if warning != "" {
		i.warning("%s", warning)
	}
	for _, r := range rows {
		t.Print(r)
	}
	return cli.Reply{Stdout: t.Out.String(), Stderr: i.warn.String()}
}

// readShow parses "[-p] [-o FIELDS] [OPERAND]" of the show-* subcommands.
func (i *ipadmCall) readShow() (parsable bool, fields *string, operand string, end *cli.Reply) {
	long := map[string]byte{"parsable": 'p', "output": 'o'}
	options, operands := cli.Getopt(i.args, "po:", long)
	for _, opt := range options {
		switch opt.Letter {
		case 'p':
			parsable = true
		case 'o':
			fields = &opt.Value
		default:
			opt.Letter = '?' // without a leading colon getopt_long(3C) tells no two faults apart
			r := i.badOption(opt)
			return false, nil, "", &r
		}
	}
	if len(operands) > 1 {
		r := i.wrongUsage()
		return false, nil, "", &r
	}
	if len(operands) == 1 {
		operand = operands[0]
	}
	return parsable, fields, operand, nil
}
