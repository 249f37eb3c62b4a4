package net

import (
	"strconv"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

func (d *dladmCall) showVNIC() cli.Reply      { return d.showVNICs(false) }
func (d *dladmCall) showEtherstub() cli.Reply { return d.showVNICs(true) }

// showVNICs is do_show_vnic_common: etherstubs are VNICs over nothing.
func (d *dladmCall) showVNICs(etherstub bool) cli.Reply {
	o, end := d.readShow(":pPl:si:o:", "si", map[string]byte{"output": 'o', "link": 'l'})
	if end != nil {
		return *end
	}
	over, limited := o.letters['l']
	_, statistics := o.letters['s']
	if _, interval := o.letters['i']; interval && !statistics {
		return d.die("the option -i can be used only with -s")
	}
	class := "vnic"
	if etherstub {
		class = "etherstub"
	}
	switch {
	case limited && etherstub:
		return d.die("option not supported for this command")
	case statistics:
		return d.die("-s: the simulated sled counts no packets")
	}
	var links []*world.Link
	for _, l := range d.walk(o.persistent) {
		if l.Class == class && (!limited || l.Over == over) && (o.operand == "" || l.Name == o.operand) {
			links = append(links, l)
		}
	}
	if o.operand != "" {
		switch l := d.find(o.operand); {
		case l == nil:
			return d.die("invalid vnic name '%s': %s", o.operand, network.LinkNotFound)
		case l.Class != "vnic" && l.Class != "etherstub":
			return d.die("failed to show vnic '%s': %s", o.operand, network.LinkBadArg)
		}
	}
	if limited && d.find(over) == nil {
		return d.die("invalid link name '%s': %s", over, network.LinkNotFound)
	}
	columns := d.vnicColumns()
	if etherstub {
		columns = columns[:1]
	}
	return showTable(d, columns, o.fields, o.parsable, false, links)
}

// vnicColumns: OmniOS and SmartOS have ZONE too
// (github.com/omniosorg/illumos-omnios pull 367).
func (d *dladmCall) vnicColumns() []cli.Column[*world.Link] {
	columns := []cli.Column[*world.Link]{
		cli.NewColumn("LINK", 13, func(l *world.Link) string { return l.Name }),
		cli.NewColumn("OVER", 13, d.over),
		cli.NewColumn("SPEED", 9, d.speed),
		cli.NewColumn("MACADDRESS", 18, func(l *world.Link) string { return network.PrintMAC(l.MAC) }),
		cli.NewColumn("MACADDRTYPE", 20, func(l *world.Link) string { return l.MACType }),
		cli.NewColumn("VID", 7, func(l *world.Link) string { return strconv.Itoa(l.VLAN) }),
	}
	if d.tx.State.Mode != world.Helios {
		columns = append(columns, cli.NewColumn("ZONE", 17, func(l *world.Link) string { return l.Zone }))
	}
	return columns
}
