package net

import (
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// over is the name of the lower link as this zone sees it; an aggregation's are
// its ports.
func (d *dladmCall) over(l *world.Link) string {
	if (l.Class == "vnic" || l.Class == "vlan") && (d.zone != world.GlobalZone || network.FindLink(d.tx, l.Over) == nil) {
		return cli.UnknownField
	}
	return l.Over
}

// speed is in Mb/s: what the lower link has, 0 over an etherstub.
func (d *dladmCall) speed(l *world.Link) string {
	if lower := network.FindLink(d.tx, l.Over); lower != nil && lower.Class != "etherstub" {
		return "1000"
	}
	return "0"
}

// of are the links of a class, or the one of them that is named.
func (d *dladmCall) of(class, name string) []*world.Link {
	var links []*world.Link
	for _, l := range network.LinksIn(d.tx, d.zone) {
		if l.Class == class && (name == "" || l.Name == name) {
			links = append(links, l)
		}
	}
	return links
}

// shown is a table. Values that are too wide break with wrap.
func shown[R any](d *dladmCall, columns []cli.Column[R], fields *string, parsable, wrap bool, rows []R) cli.Reply {
	out, fatal := cli.Table(columns, fields, parsable, wrap, rows)
	if fatal != "" {
		return d.die("%s", fatal)
	}
	return cli.Reply{Stdout: out}
}

func name(l *world.Link) string    { return l.Name }
func address(l *world.Link) string { return network.PrintMAC(l.MAC) }

func (d *dladmCall) showLink() cli.Reply {
	given, operands := cli.Options(d.args, "po:", nil)
	links := network.LinksIn(d.tx, d.zone)
	if one := cli.AtMostOne(operands); one != "" {
		l := d.find(one)
		if l == nil {
			return d.die("link %s is not valid: %s", one, network.LinkNotFound)
		}
		links = []*world.Link{l}
	}
	return shown(d, []cli.Column[*world.Link]{
		cli.NewColumn("LINK", 12, name),
		cli.NewColumn("CLASS", 10, func(l *world.Link) string { return l.Class }),
		cli.NewColumn("MTU", 7, func(l *world.Link) string { return strconv.Itoa(network.LinkMTU(d.tx, l)) }),
		cli.NewColumn("STATE", 9, func(l *world.Link) string { return map[bool]string{true: "up", false: "down"}[l.Up] }),
		cli.NewColumn("BRIDGE", 11, func(*world.Link) string { return "" }),
		cli.NewColumn("OVER", 30, d.over),
	}, given.Fields(), given.Has('p'), true, links)
}

// showPhys has only the addresses, for programs.
func (d *dladmCall) showPhys() cli.Reply {
	given, operands := cli.Options(d.args, "mpo:", nil)
	cli.Simulated(given.Has('m') && given.Has('p') && len(operands) == 0)
	columns := []cli.Column[*world.Link]{cli.NewColumn("LINK", 13, name), cli.NewColumn("ADDRESS", 19, address)}
	return shown(d, columns, given.Fields(), true, false, d.of("phys", ""))
}

// showVNIC is do_show_vnic_common. OmniOS and SmartOS have ZONE too
// (github.com/omniosorg/illumos-omnios pull 367).
func (d *dladmCall) showVNIC() cli.Reply {
	given, operands := cli.Options(d.args, "po:l:", map[string]byte{"link": 'l'})
	one, over := cli.AtMostOne(operands), given.One('l')
	if one != "" && d.find(one) == nil {
		return d.die("invalid vnic name '%s': %s", one, network.LinkNotFound)
	}
	cli.Simulated(one == "" || d.find(one).Class == "vnic" || d.find(one).Class == "etherstub")
	var links []*world.Link
	for _, l := range d.of("vnic", one) {
		if over == "" || l.Over == over {
			links = append(links, l)
		}
	}
	var zone func(*world.Link) string
	if d.tx.State.Mode != world.Helios {
		zone = func(l *world.Link) string { return l.Zone }
	}
	return shown(d, []cli.Column[*world.Link]{
		cli.NewColumn("LINK", 13, name),
		cli.NewColumn("OVER", 13, d.over),
		cli.NewColumn("SPEED", 9, d.speed),
		cli.NewColumn("MACADDRESS", 18, address),
		cli.NewColumn("MACADDRTYPE", 20, func(l *world.Link) string { return l.MACType }),
		cli.NewColumn("VID", 7, func(l *world.Link) string { return strconv.Itoa(l.VLAN) }),
		cli.NewColumn("ZONE", 17, zone),
	}, given.Fields(), given.Has('p'), false, links)
}

// aggrRow is an aggregation, or one of its ports.
type aggrRow struct{ aggr, port, address string }

// showAggr is do_show_aggr with -x, for programs: what an aggregation does with
// packets is not simulated.
func (d *dladmCall) showAggr() cli.Reply {
	given, operands := cli.Options(d.args, "xpo:", nil)
	cli.Simulated(given.Has('x') && given.Has('p') && len(operands) == 0)
	var rows []aggrRow
	for _, l := range d.of("aggr", "") {
		rows = append(rows, aggrRow{l.Name, "", address(l)})
		for port := range strings.SplitSeq(l.Over, ",") {
			rows = append(rows, aggrRow{l.Name, port, address(d.find(port))})
		}
	}
	return shown(d, []cli.Column[aggrRow]{
		cli.NewColumn("LINK", 12, func(r aggrRow) string { return r.aggr }),
		cli.NewColumn("PORT", 15, func(r aggrRow) string { return r.port }),
		cli.NewColumn("ADDRESS", 19, func(r aggrRow) string { return r.address }),
	}, given.Fields(), true, false, rows)
}
