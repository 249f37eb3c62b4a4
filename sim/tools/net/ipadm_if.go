package net

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

func (i *ipadmCall) createIf() cli.Reply {
	options, operands := cli.Getopt(i.args, ":t", map[string]byte{"temporary": 't'})
	temporary := false
	for _, opt := range options {
		if opt.Letter != 't' {
			return i.badOption(opt)
		}
		temporary = true
	}
	if len(operands) != 1 {
		return i.wrongUsage()
	}
	if err := network.CreateInterface(i.tx, i.zone, operands[0], temporary); err != nil {
		return i.die("Could not create %s : %s", operands[0], err)
	}
	return cli.Reply{}
}

// deleteIf takes no options: "-t" would be a name.
func (i *ipadmCall) deleteIf() cli.Reply {
	if len(i.args) != 1 {
		return i.wrongUsage()
	}
	if err := network.DeleteInterface(i.tx, i.zone, i.args[0]); err != nil {
		return i.die("Could not delete %s: %s", i.args[0], err)
	}
	return cli.Reply{}
}

func (i *ipadmCall) showIf() cli.Reply {
	parsable, fields, name, end := i.readShow()
	if end != nil {
		return *end
	}
	rows := network.Interfaces(i.tx, i.zone)
	if name != "" {
		one := network.FindInterface(i.tx, i.zone, name)
		if one == nil {
			return i.die("Could not get interface(s): %s", network.IPNoInterface)
		}
		rows = []*world.Interface{one}
	}
	return showIpadm(i, i.ifColumns(), fields, parsable, rows)
}

// ifColumns: CLASS came with IPMP support in ipadm (illumos 11 of 2021).
func (i *ipadmCall) ifColumns() []cli.Column[*world.Interface] {
	loopback := func(f *world.Interface, yes, no string) string {
		if f.Name == "lo0" {
			return yes
		}
		return no
	}
	return []cli.Column[*world.Interface]{
		cli.NewColumn("IFNAME", 11, func(f *world.Interface) string { return f.Name }),
		cli.NewColumn("CLASS", 10, func(f *world.Interface) string { return loopback(f, "VIRTUAL", "IP") }),
		cli.NewColumn("STATE", 9, func(f *world.Interface) string {
			if network.InterfaceUp(i.tx, i.zone, f.Name) {
				return "ok"
			}
			return "down"
		}),
		cli.NewColumn("CURRENT", 13, func(f *world.Interface) string { return loopback(f, "-m-v------46", "bm--------46") }),
		cli.NewColumn("PERSISTENT", 11, func(f *world.Interface) string {
			if f.Temporary || f.Name == "lo0" {
				return "---"
			}
			return "-46"
		}),
	}
}

// ifProperty is a property of interfaces (ipadm(8), INTERFACE PROPERTIES).
type ifProperty struct {
	name, protocol, possible string
}

// ifProperties is the table that is simulated.
func ifProperties() []ifProperty {
	return []ifProperty{
		{"arp", "ipv4", "on,off"},
		{"forwarding", "ipv4", "on,off"},
		{"metric", "ipv4", ""},
		{"mtu", "ipv4", ""},
		{"exchange_routes", "ipv4", "on,off"},
		{"usesrc", "ipv4", ""},
		{"forwarding", "ipv6", "on,off"},
		{"metric", "ipv6", ""},
		{"mtu", "ipv6", ""},
		{"nud", "ipv6", "on,off"},
		{"exchange_routes", "ipv6", "on,off"},
		{"usesrc", "ipv6", ""},
		{"group", "ip", ""},
		{"standby", "ip", "on,off"},
	}
}

func findIfProperty(name, protocol string) (ifProperty, bool) {
	for _, p := range ifProperties() {
		if p.name == name && p.protocol == protocol {
			return p, true
		}
	}
	return ifProperty{}, false
}

// knownProtocol is ipadm_str2proto.
func knownProtocol(name string) bool {
	return slices.Contains([]string{"ip", "ipv4", "ipv6", "tcp", "udp", "sctp", "icmp"}, name)
}

// setIfprop is set_ifprop. One call sets one property for one protocol.
func (i *ipadmCall) setIfprop() cli.Reply {
	long := map[string]byte{"module": 'm', "prop": 'p', "temporary": 't'}
	options, operands := cli.Getopt(i.args, ":m:p:t", long)
	given := map[byte]string{}
	for _, opt := range options {
		_, twice := given[opt.Letter]
		switch {
		case opt.Letter == ':' || opt.Letter == '?':
			return i.badOption(opt)
		case twice && opt.Letter != 't':
			return i.die("-%c must be specified once only", opt.Letter)
		case opt.Letter == 'p' && !strings.Contains(opt.Value, "="):
			return i.die("Invalid prop=val specified\n%s", i.usage)
		}
		given[opt.Letter] = opt.Value
	}
	setting, p := given['p']
	protocol, m := given['m']
	_, temporary := given['t']
	if !p || !m || len(operands) != 1 {
		return i.wrongUsage()
	}
	if !knownProtocol(protocol) {
		return i.die("invalid protocol '%s' specified", protocol)
	}
	name, value, _ := strings.Cut(setting, "=")
	if err := i.setOne(operands[0], name, value, protocol, temporary); err != nil {
		return i.die("set-ifprop: %s: %s", name, err)
	}
	return cli.Reply{}
}

func (i *ipadmCall) setOne(ifname, name, value, protocol string, temporary bool) error {
	property, ok := findIfProperty(name, protocol)
	f := network.FindInterface(i.tx, i.zone, ifname)
	switch {
	case !ok:
		return network.IPUnknownProp
	case f == nil:
		return network.IPNoInterface
	case f.Temporary && !temporary:
		return network.IPTemporary
	case property.possible != "" && !slices.Contains(strings.Split(property.possible, ","), value):
		return network.IPBadArg
	case name != "mtu":
		return network.SetInterfaceProperty(i.tx, i.zone, ifname, protocol, name, value)
	}
	mtu, err := strconv.Atoi(value)
	if err != nil {
		return network.IPBadArg
	}
	return network.SetInterfaceMTU(i.tx, i.zone, ifname, protocol, mtu)
}
