package net

import (
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// showLongNames are the long options of the show-* subcommands.
func showLongNames() map[string]byte {
	return map[string]byte{"statistics": 's', "interval": 'i', "parsable": 'p', "parseable": 'p', "output": 'o', "persistent": 'P'}
}

// showOptions are what the show-* subcommands take.
type showOptions struct {
	parsable, persistent bool
	fields               *string
	letters              map[byte]string // others that were given
	operand              string
}

// readShow parses a command line of a show-* subcommand. once are the options
// that may not come twice; a non-nil Reply ends the command.
func (d *dladmCall) readShow(spec, once string, long map[string]byte) (showOptions, *cli.Reply) {
	o := showOptions{letters: map[byte]string{}}
	seen := map[byte]bool{}
	options, operands := cli.Getopt(d.args, spec, long)
	for _, opt := range options {
		if seen[opt.Letter] && strings.IndexByte(once, opt.Letter) >= 0 {
			r := d.twice(opt.Letter)
			return o, &r
		}
		seen[opt.Letter] = true
		switch opt.Letter {
		case 'p':
			o.parsable = true
		case 'P':
			o.persistent = true
		case 'o':
			o.fields = &opt.Value
		case ':', '?':
			r := d.badOption(opt)
			return o, &r
		default:
			o.letters[opt.Letter] = opt.Value
		}
	}
	if len(operands) > 1 {
		r := d.wrongUsage()
		return o, &r
	}
	if len(operands) == 1 {
		o.operand = operands[0]
	}
	return o, nil
}

// parsableNeedsFields is the check that show-link and show-phys make
// themselves.
func (d *dladmCall) parsableNeedsFields(o showOptions) *cli.Reply {
	if !o.parsable {
		return nil
	}
	var r cli.Reply
	switch {
	case o.fields == nil:
		r = d.die("-p requires -o")
	case strings.EqualFold(*o.fields, "all"):
		r = d.die("\"-o all\" is invalid with -p")
	default:
		return nil
	}
	return &r
}

// table opens a table and prints the rows.
func showTable[R any](d *dladmCall, columns []cli.Column[R], fields *string, parsable, wrap bool, rows []R) cli.Reply {
	t, fatal, warning := cli.OpenTable(columns, fields, parsable)
	if fatal != "" {
		return d.die("%s", fatal)
	}
	if warning != "" {
		d.warning("%s", warning)
	}
	t.Wrap = wrap && !parsable
	for _, r := range rows {
		t.Print(r)
	}
	return cli.Reply{Stdout: t.Out.String(), Stderr: d.warn.String()}
}

// persistentOnly keeps the links that -P shows.
func (d *dladmCall) walk(persistent bool) []*world.Link {
	if !persistent {
		return network.LinksIn(d.tx, d.zone)
	}
	var kept []*world.Link
	for _, l := range d.tx.State.Links {
		if !l.Temporary && d.zone == world.GlobalZone {
			kept = append(kept, l)
		}
	}
	return kept
}

func (d *dladmCall) showLink() cli.Reply {
	o, end := d.readShow(":pPsi:o:", "pPsi", showLongNames())
	if end != nil {
		return *end
	}
	_, statistics := o.letters['s']
	if _, interval := o.letters['i']; interval && !statistics {
		return d.die("the option -i can be used only with -s")
	}
	if statistics {
		return d.die("-s: the simulated sled counts no packets")
	}
	links := d.walk(o.persistent)
	if o.operand != "" {
		l := d.find(o.operand)
		switch {
		case len(o.operand) > 31:
			return d.die("link name too long")
		case l == nil:
			return d.die("link %s is not valid: %s", o.operand, network.LinkNotFound)
		case o.persistent && l.Temporary:
			return d.die("link %s is a temporary link: %s", o.operand, network.LinkBadArg)
		}
		links = []*world.Link{l}
	}
	if end := d.parsableNeedsFields(o); end != nil {
		return *end
	}
	columns := d.linkColumns()
	if o.persistent {
		columns = []cli.Column[*world.Link]{columns[0], columns[1], columns[4], columns[5]}
	}
	return showTable(d, columns, o.fields, o.parsable, true, links)
}

func (d *dladmCall) linkColumns() []cli.Column[*world.Link] {
	return []cli.Column[*world.Link]{
		cli.NewColumn("LINK", 12, func(l *world.Link) string { return l.Name }),
		cli.NewColumn("CLASS", 10, func(l *world.Link) string { return l.Class }),
		cli.NewColumn("MTU", 7, func(l *world.Link) string { return strconv.Itoa(network.LinkMTU(d.tx, l)) }),
		cli.NewColumn("STATE", 9, linkState),
		cli.NewColumn("BRIDGE", 11, func(*world.Link) string { return "" }),
		cli.NewColumn("OVER", 30, d.over),
	}
}

func linkState(l *world.Link) string {
	if l.Up {
		return "up"
	}
	return "down"
}

func (d *dladmCall) showPhys() cli.Reply {
	o, end := d.readShow(":pPo:mH", "pP", showLongNames())
	if end != nil {
		return *end
	}
	if end := d.parsableNeedsFields(o); end != nil {
		return *end
	}
	_, addresses := o.letters['m']
	if _, groups := o.letters['H']; groups {
		return d.die("-H: the simulated sled has no rings")
	}
	var links []*world.Link
	for _, l := range d.walk(o.persistent) {
		if l.Class == "phys" {
			links = append(links, l)
		}
	}
	if o.operand != "" {
		l := d.find(o.operand)
		switch {
		case l == nil:
			return d.die("link %s is not valid: %s", o.operand, network.LinkNotFound)
		case l.Class != "phys":
			return d.die("failed to show physical link %s: %s", o.operand, network.LinkBadArg)
		}
		links = []*world.Link{l}
	}
	switch {
	case addresses && o.persistent:
		return d.die("-m not compatible with -P")
	case addresses:
		return showTable(d, d.physAddressColumns(), o.fields, o.parsable, false, links)
	case o.persistent && o.fields == nil:
		persistent := "link,device,media,flags"
		o.fields = &persistent
	case o.fields == nil:
		active := "link,media,state,speed,duplex,device"
		o.fields = &active
	}
	return showTable(d, d.physColumns(), o.fields, o.parsable, false, links)
}

// physColumns: the device of a link is e1000gN here.
func (d *dladmCall) physColumns() []cli.Column[*world.Link] {
	return []cli.Column[*world.Link]{
		cli.NewColumn("LINK", 13, func(l *world.Link) string { return l.Name }),
		cli.NewColumn("MEDIA", 21, func(*world.Link) string { return "Ethernet" }),
		cli.NewColumn("STATE", 11, linkState),
		cli.NewColumn("SPEED", 9, d.speed),
		cli.NewColumn("DUPLEX", 9, func(*world.Link) string { return "full" }),
		cli.NewColumn("DEVICE", 13, d.device),
		cli.NewColumn("FLAGS", 7, func(*world.Link) string { return "-----" }),
	}
}

// device counts the physical links.
func (d *dladmCall) device(l *world.Link) string {
	n := 0
	for _, other := range d.tx.State.Links {
		switch {
		case other == l:
			return "e1000g" + strconv.Itoa(n)
		case other.Class == "phys":
			n++
		}
	}
	return cli.UnknownField
}

func (d *dladmCall) physAddressColumns() []cli.Column[*world.Link] {
	return []cli.Column[*world.Link]{
		cli.NewColumn("LINK", 13, func(l *world.Link) string { return l.Name }),
		cli.NewColumn("SLOT", 9, func(*world.Link) string { return "primary" }),
		cli.NewColumn("ADDRESS", 19, func(l *world.Link) string { return network.PrintMAC(l.MAC) }),
		cli.NewColumn("INUSE", 5, func(*world.Link) string { return "yes" }),
		cli.NewColumn("CLIENT", 13, func(l *world.Link) string { return l.Name }),
	}
}
