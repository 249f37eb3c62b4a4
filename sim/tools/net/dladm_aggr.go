package net

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// aggrRow is an aggregation, or one of its ports.
type aggrRow struct{ aggr, port *world.Link }

// showAggr is do_show_aggr of usr/src/cmd/dladm/dladm.c, with -x only: what an
// aggregation does with packets is not simulated.
func (d *dladmCall) showAggr() cli.Reply {
	o, end := d.readShow(":LpPxsi:o:", "LpPxsi", showLongNames())
	if end != nil {
		return *end
	}
	if end := d.parsableNeedsFields(o); end != nil {
		return *end
	}
	if end := d.aggrOptions(o); end != nil {
		return *end
	}
	var rows []aggrRow
	found := o.operand == ""
	for _, l := range d.walk(false) {
		if l.Class != "aggr" || o.operand != "" && o.operand != l.Name {
			continue
		}
		found = true
		rows = append(rows, aggrRow{aggr: l})
		for name := range strings.SplitSeq(l.Over, ",") {
			if port := network.FindLink(d.tx, name); port != nil {
				rows = append(rows, aggrRow{aggr: l, port: port})
			}
		}
	}
	if !found {
		if d.find(o.operand) == nil {
			return d.die("non-existent aggregation '%s'", o.operand)
		}
		return d.die("failed to show aggr %s: %s", o.operand, network.LinkBadArg)
	}
	return showTable(d, d.aggrColumns(o.parsable), o.fields, o.parsable, false, rows)
}

// aggrOptions are the checks that show-aggr makes of how its options go together.
func (d *dladmCall) aggrOptions(o showOptions) *cli.Reply {
	has := func(letter byte) bool { _, ok := o.letters[letter]; return ok }
	var r cli.Reply
	switch {
	case has('i') && !has('s'):
		r = d.die("the option -i can be used only with -s")
	case has('L') && o.persistent:
		r = d.die("the option -P cannot be used with -L")
	case has('x') && has('L'):
		r = d.die("the option -L cannot be used with -x")
	case has('x') && o.persistent:
		r = d.die("the option -P cannot be used with -x")
	case !has('x'):
		r = d.die("show-aggr: the simulated sled has it with -x only")
	default:
		return nil
	}
	return &r
}

func (d *dladmCall) aggrColumns(parsable bool) []cli.Column[aggrRow] {
	of := func(r aggrRow) *world.Link {
		if r.port != nil {
			return r.port
		}
		return r.aggr
	}
	return []cli.Column[aggrRow]{
		cli.NewColumn("LINK", 12, func(r aggrRow) string {
			if r.port != nil && !parsable {
				return " "
			}
			return r.aggr.Name
		}),
		cli.NewColumn("PORT", 15, func(r aggrRow) string {
			if r.port == nil {
				return ""
			}
			return r.port.Name
		}),
		cli.NewColumn("SPEED", 5, func(r aggrRow) string { return fmt.Sprintf("%sMb", d.speed(of(r))) }),
		cli.NewColumn("DUPLEX", 10, func(aggrRow) string { return "full" }),
		cli.NewColumn("STATE", 10, func(r aggrRow) string { return linkState(of(r)) }),
		cli.NewColumn("ADDRESS", 19, func(r aggrRow) string { return network.PrintMAC(of(r).MAC) }),
		cli.NewColumn("PORTSTATE", 16, func(r aggrRow) string {
			if r.port == nil {
				return ""
			}
			return "attached"
		}),
	}
}
