package net

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// linkpropRow is a line of show-linkprop.
type linkpropRow struct {
	network.LinkProperty
	link, value, standard string
}

// linkpropShow is what a show-linkprop has to do, and what it has read.
type linkpropShow struct {
	given      cli.Given
	properties []network.LinkProperty
	rows       []linkpropRow
	failed     bool
}

func (d *dladmCall) showLinkprop() cli.Reply {
	given, operands := cli.Options(d.args, "p:co:", nil)
	all := network.LinkProperties()
	show := linkpropShow{given: given, properties: all}
	if asked := given.One('p'); asked != "" {
		show.properties = nil
		for name := range strings.SplitSeq(asked, ",") {
			i := slices.IndexFunc(all, func(p network.LinkProperty) bool { return p.Name == name })
			cli.Simulated(i >= 0)
			show.properties = append(show.properties, all[i])
		}
	}
	links := network.LinksIn(d.tx, d.zone)
	if one := cli.AtMostOne(operands); one != "" {
		l := d.find(one)
		if l == nil {
			return d.die("link %s is not valid: %s", one, network.LinkNotFound)
		}
		links = []*world.Link{l}
	}
	ids := make([]world.LinkID, len(links))
	for i, l := range links {
		ids[i] = l.ID()
	}
	return d.showNext(&show, ids)
}

// showNext reads one link after the other. It is no mere query: each is held open
// while its properties are read (show_linkprop_onelink).
//
// Guess vanished-link-has-no-line: a link that vanishes while `dladm show-linkprop` reads has no
// line, and makes it exit 1.
// Check: `while :; do dladm show-linkprop -c -o link,value -p zone; echo $?; done` while VNICs come
// and go
func (d *dladmCall) showNext(show *linkpropShow, links []world.LinkID) cli.Reply {
	if len(links) == 0 {
		reply := shown(d, linkpropColumns(), show.given.Fields(), show.given.Has('c'), true, show.rows)
		if show.failed {
			reply.Exit = 1
		}
		return reply
	}
	takes := d.tx.Latency(world.StepLink) + d.tx.Slower(world.FaultSlowLink, append(cli.Words(d.c), links[0].Name)...)
	return cli.Reply{Next: &cli.Next{Hold: &links[0], After: takes, Do: func(tx *world.Tx) cli.Reply {
		d.tx = tx
		l := network.Link(tx, links[0])
		show.failed = show.failed || l == nil
		for _, p := range show.properties {
			if l != nil {
				show.rows = append(show.rows, linkpropRow{p, l.Name, network.LinkValue(tx, l, p), network.LinkDefault(tx, l, p)})
			}
		}
		return d.showNext(show, links[1:])
	}}}
}

func linkpropColumns() []cli.Column[linkpropRow] {
	return []cli.Column[linkpropRow]{
		cli.NewColumn("LINK", 13, func(r linkpropRow) string { return r.link }),
		cli.NewColumn("PROPERTY", 16, func(r linkpropRow) string { return r.Name }),
		cli.NewColumn("PERM", 5, func(r linkpropRow) string { return r.Permission }),
		cli.NewColumn("VALUE", 15, func(r linkpropRow) string { return r.value }),
		cli.NewColumn("DEFAULT", 15, func(r linkpropRow) string { return r.standard }),
		cli.NewColumn("POSSIBLE", 20, func(r linkpropRow) string { return r.Possible }),
	}
}

// setLinkprop is set_linkprop, of one property. A failure is a warning.
func (d *dladmCall) setLinkprop() cli.Reply {
	given, operands := cli.Options(d.args, "p:t", nil)
	property, value, ok := strings.Cut(given.One('p'), "=")
	cli.Simulated(ok && network.CanSetLink(property))
	name := cli.Operand(operands)
	l := d.find(name)
	if l == nil {
		return d.die("link %s is not valid: %s", name, network.LinkNotFound)
	}
	err := d.change(func() error {
		if property == "zone" {
			return network.SetLinkZone(d.tx, l, value, given.Has('t'))
		}
		return network.SetLinkProperty(d.tx, l, property, value, given.Has('t'))
	})
	if possible, bad := errors.AsType[*network.OneOfError](err); bad {
		return d.die("warning: link property '%s' must be one of: %s", property, possible.Possible)
	}
	return d.ended(err, fmt.Sprintf("warning: cannot set link property '%s' on '%s'", property, name))
}

// resetLinkprop is reset_linkprop, of one property that has no default.
func (d *dladmCall) resetLinkprop() cli.Reply {
	given, operands := cli.Options(d.args, "p:t", nil)
	property, name := given.One('p'), cli.Operand(operands)
	cli.Simulated(given.Has('t') && property != "mtu" && network.CanSetLink(property))
	l := d.find(name)
	if l == nil {
		return d.die("link %s is not valid: %s", name, network.LinkNotFound)
	}
	err := d.change(func() error {
		if property == "zone" {
			return network.SetLinkZone(d.tx, l, world.GlobalZone, true)
		}
		network.ResetLinkProperty(d.tx, l, property)
		return nil
	})
	return d.ended(err, fmt.Sprintf("warning: cannot reset link property '%s' on '%s'", property, name))
}
