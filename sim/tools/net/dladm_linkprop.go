package net

import (
	"errors"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// propLongNames are the long options of the *-linkprop subcommands: here -p
// names properties, and parsable is -c.
func propLongNames() map[string]byte {
	return map[string]byte{"temporary": 't', "output": 'o', "prop": 'p', "parsable": 'c', "parseable": 'c', "persistent": 'P'}
}

// linkpropRow is a line of show-linkprop.
type linkpropRow struct{ link, name, permission, value, standard, possible string }

// linkpropShow is what a show-linkprop has to do, and what it has read.
type linkpropShow struct {
	fields               *string
	parsable, persistent bool
	asked                []network.LinkSetting
	rows                 []linkpropRow
	failed               bool
}

func (d *dladmCall) showLinkprop() cli.Reply {
	options, operands := cli.Getopt(d.args, ":p:cPo:", propLongNames())
	var names string
	var show linkpropShow
	for _, opt := range options {
		switch opt.Letter {
		case 'p':
			names += opt.Value + ","
		case 'c':
			show.parsable = true
		case 'P':
			show.persistent = true
		case 'o':
			show.fields = &opt.Value
		default:
			return d.badOption(opt)
		}
	}
	links := d.walk(show.persistent)
	switch {
	case len(operands) > 1:
		return d.wrongUsage()
	case len(operands) == 1 && d.find(operands[0]) == nil:
		return d.die("link %s is not valid: %s", operands[0], network.LinkNotFound)
	case len(operands) == 1:
		links = []*world.Link{d.find(operands[0])}
	}
	var ok bool
	if show.asked, ok = parseLinkProps(names, true); !ok {
		return d.die("invalid link properties specified")
	}
	if _, fatal, _ := cli.OpenTable(linkpropColumns(), show.fields, show.parsable); fatal != "" {
		return d.die("%s", fatal)
	}
	ids := make([]world.LinkID, len(links))
	for i, l := range links {
		ids[i] = l.ID()
	}
	return d.showNext(&show, ids)
}

// showNext reads one link after the other. It is no mere query: each is held open
// while its properties are read, except for those that are persistent
// (show_linkprop_onelink).
func (d *dladmCall) showNext(show *linkpropShow, links []world.LinkID) cli.Reply {
	if len(links) == 0 {
		reply := showTable(d, linkpropColumns(), show.fields, show.parsable, true, show.rows)
		if show.failed && reply.Exit == 0 {
			reply.Stderr, reply.Exit = d.warn.String(), 1
		}
		return reply
	}
	read := func(tx *world.Tx) cli.Reply {
		d.tx = tx
		if l := network.Link(tx, links[0]); l != nil {
			d.readLinkprops(show, l)
		} else {
			show.failed = true // Guess: a link that is gone by now has no line, and is an error.
		}
		return d.showNext(show, links[1:])
	}
	if show.persistent {
		return read(d.tx)
	}
	takes := d.tx.Latency(world.StepLink) + d.tx.Slower(world.FaultSlowLink, append(cli.Words(d.c), links[0].Name)...)
	return cli.Reply{Next: &cli.Next{Hold: &links[0], After: takes, Do: read}}
}

// readLinkprops are the lines of a link: the properties asked for, or all of them.
// One that does not exist is a warning, and a line with "?".
func (d *dladmCall) readLinkprops(show *linkpropShow, l *world.Link) {
	if len(show.asked) == 0 {
		for _, p := range network.LinkProperties() {
			show.rows = append(show.rows, d.linkpropRow(l, p, show.persistent))
		}
	}
	for _, a := range show.asked {
		p, ok := network.FindLinkProperty(a.Name)
		if !ok {
			d.warning("cannot get link property '%s' for %s: %s", a.Name, l.Name, network.LinkNotFound)
			p, show.failed = network.LinkProperty{Name: a.Name, Default: cli.UnknownField}, true
		}
		show.rows = append(show.rows, d.linkpropRow(l, p, show.persistent))
	}
}

func (d *dladmCall) linkpropRow(l *world.Link, p network.LinkProperty, persistent bool) linkpropRow {
	row := linkpropRow{link: l.Name, name: p.Name, permission: "rw", value: network.LinkValue(d.tx, l, p), standard: network.LinkDefault(d.tx, l, p),
		possible: strings.Join(p.Possible, ",")}
	if p.ReadOnly {
		row.permission = "r-"
	}
	if saved, ok := l.Saved[p.Name]; ok && persistent {
		row.value = saved
	}
	return row
}

func linkpropColumns() []cli.Column[linkpropRow] {
	return []cli.Column[linkpropRow]{
		cli.NewColumn("LINK", 13, func(r linkpropRow) string { return r.link }),
		cli.NewColumn("PROPERTY", 16, func(r linkpropRow) string { return r.name }),
		cli.NewColumn("PERM", 5, func(r linkpropRow) string { return r.permission }),
		cli.NewColumn("VALUE", 15, func(r linkpropRow) string { return r.value }),
		cli.NewColumn("DEFAULT", 15, func(r linkpropRow) string { return r.standard }),
		cli.NewColumn("POSSIBLE", 20, func(r linkpropRow) string { return r.possible }),
	}
}

func (d *dladmCall) setLinkprop() cli.Reply   { return d.changeLinkprop(false) }
func (d *dladmCall) resetLinkprop() cli.Reply { return d.changeLinkprop(true) }

// changeLinkprop is set_linkprop. Failures are warnings; of several
// properties only the outcome of the last one decides the exit code.
func (d *dladmCall) changeLinkprop(reset bool) cli.Reply {
	options, operands := cli.Getopt(d.args, ":p:R:t", propLongNames())
	var text string
	var temporary bool
	for _, opt := range options {
		switch opt.Letter {
		case 'p':
			text += opt.Value + ","
		case 't':
			temporary = true
		case 'R':
			return d.die("-R: the simulated sled has no alternate roots")
		default:
			return d.badOption(opt)
		}
	}
	if len(operands) != 1 {
		return d.wrongUsage()
	}
	settings, ok := parseLinkProps(text, reset)
	l := d.find(operands[0])
	switch {
	case !ok:
		return d.die("invalid link properties specified")
	case len(settings) == 0 && !reset:
		return d.die("link property must be specified")
	case l == nil:
		return d.die("link %s is not valid: %s", operands[0], network.LinkNotFound)
	case len(settings) == 0:
		return d.resetAll(l, temporary)
	}
	var last error
	for _, s := range settings {
		last = d.changeOne(l, operands[0], s, reset, temporary)
	}
	return d.endOfChange(last)
}

func (d *dladmCall) endOfChange(last error) cli.Reply {
	reply := cli.Reply{Stderr: d.warn.String()}
	if last != nil {
		reply.Exit = 1
	}
	return reply
}

func (d *dladmCall) changeOne(l *world.Link, name string, s network.LinkSetting, reset, temporary bool) error {
	if !reset && len(s.Values) == 0 {
		d.warning("no value specified for '%s'", s.Name)
		return network.LinkBadArg
	}
	err := d.mayChange()
	switch {
	case err != nil:
	case reset:
		err = network.ResetLinkProperty(d.tx, l, s.Name, temporary)
	default:
		err = network.SetLinkProperty(d.tx, l, s, temporary)
	}
	p, _ := network.FindLinkProperty(s.Name)
	switch {
	case err == nil:
	case errors.Is(err, network.LinkNotFound):
		d.warning("invalid link property '%s'", s.Name)
	case errors.Is(err, network.LinkBadValue) && p.Possible != nil:
		d.warning("link property '%s' must be one of: %s", s.Name, strings.Join(p.Possible, ","))
	case reset:
		d.warning("cannot reset link property '%s' on '%s': %s", s.Name, name, err)
	default:
		d.warning("cannot set link property '%s' on '%s': %s", s.Name, name, err)
	}
	return err
}

// resetAll passes over what is read-only or cannot be persistent.
// Guess: that "zone" without -t is passed over too.
func (d *dladmCall) resetAll(l *world.Link, temporary bool) cli.Reply {
	var failed error
	for _, p := range network.LinkProperties() {
		err := d.mayChange()
		if err == nil {
			err = network.ResetLinkProperty(d.tx, l, p.Name, temporary)
		}
		if err != nil && !slices.Contains([]error{network.LinkReadOnly, network.LinkTemporaryOnly}, err) {
			d.warning("cannot reset link property '%s' on '%s': %s", p.Name, l.Name, err)
			failed = err
		}
	}
	return d.endOfChange(failed)
}
