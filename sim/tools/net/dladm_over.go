package net

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world/network"
)

// overOptions are what create-aggr and create-vlan were given.
type overOptions struct {
	links     []string // of -l, and of -d
	vlan      int
	temporary bool
	operands  []string
}

// readOver parses the options that both have; each has letters of its own, which
// are checked by value and change nothing that is simulated.
func (d *dladmCall) readOver(spec string, check func(cli.Option) *cli.Reply) (overOptions, *cli.Reply) {
	var o overOptions
	refuse := func(format string, args ...any) (overOptions, *cli.Reply) {
		r := d.die(format, args...)
		return o, &r
	}
	options, operands := cli.Getopt(d.args, spec, vnicLongNames())
	o.operands = operands
	for _, opt := range options {
		switch opt.Letter {
		case 't':
			o.temporary = true
		case 'f':
		case 'l', 'd':
			o.links = append(o.links, opt.Value)
		case 'v':
			if o.vlan != 0 {
				r := d.twice('v')
				return o, &r
			}
			vid, err := strconv.Atoi(opt.Value)
			if err != nil || vid < 1 || vid > 4094 {
				return refuse("invalid VLAN identifier '%s'", opt.Value)
			}
			o.vlan = vid
		case 'R':
			return refuse("-R: the simulated sled has no alternate roots")
		case ':', '?':
			r := d.badOption(opt)
			return o, &r
		default:
			if r := check(opt); r != nil {
				return o, r
			}
		}
	}
	return o, nil
}

// createAggr is do_create_aggr. What LACP and policies do with packets is not
// simulated.
func (d *dladmCall) createAggr() cli.Reply {
	o, end := d.readOver(":d:l:L:P:R:tfu:T:p:", d.checkAggrOption)
	switch {
	case end != nil:
		return *end
	case len(o.links) == 0 || len(o.operands) != 1:
		return d.wrongUsage()
	}
	name := o.operands[0]
	if key, err := strconv.Atoi(name); err == nil {
		name = fmt.Sprint("aggr", key)
	}
	switch {
	case len(name) > 31:
		return d.die("link name too long '%s'", o.operands[0])
	case !network.ValidLinkName(name):
		return d.die("invalid link name '%s'", o.operands[0])
	}
	for _, l := range o.links {
		if d.find(l) == nil {
			return d.die("invalid link name '%s': %s", l, network.LinkNotFound)
		}
	}
	err := d.mayChange()
	if err == nil {
		err = network.CreateAggregation(d.tx, network.Aggregation{Name: name, Ports: o.links, Temporary: o.temporary})
	}
	if err != nil {
		return d.die("create operation failed: %s", err)
	}
	return cli.Reply{}
}

func (d *dladmCall) checkAggrOption(opt cli.Option) *cli.Reply {
	known := map[byte]string{'L': "off active passive", 'T': "short long"}
	what := map[byte]string{'L': "LACP mode", 'T': "LACP timer value"}
	if words, ok := known[opt.Letter]; ok && !strings.Contains(" "+words+" ", " "+opt.Value+" ") {
		r := d.die("invalid %s '%s'", what[opt.Letter], opt.Value)
		return &r
	}
	return nil
}

// createVLAN is do_create_vlan.
func (d *dladmCall) createVLAN() cli.Reply {
	o, end := d.readOver(":tfR:l:v:p:", func(cli.Option) *cli.Reply { return nil })
	switch {
	case end != nil:
		return *end
	case len(o.links) > 1:
		return d.twice('l')
	case o.vlan == 0 || len(o.links) == 0 || len(o.operands) > 1:
		return d.wrongUsage()
	}
	over := o.links[0]
	name, named := vlanName(over, o.vlan)
	if len(o.operands) == 1 {
		name, named = o.operands[0], true
	}
	switch {
	case len(name) > 31:
		return d.die("vlan name too long '%s'", name)
	case !named, d.find(over) == nil:
		return d.die("invalid link name '%s'", over)
	}
	err := d.mayChange()
	if err == nil && !network.ValidLinkName(name) {
		err = network.LinkBadArg
	}
	if err == nil {
		err = network.CreateVLAN(d.tx, network.VLAN{Name: name, Over: over, ID: o.vlan, Temporary: o.temporary})
	}
	switch {
	case errors.Is(err, network.LinkDefaultTagBusy):
		return d.die("VLAN over '%s' may not use default_tag ID (see dladm(8))", over)
	case err != nil:
		return d.die("create operation failed: %s", err)
	}
	return cli.Reply{}
}

// vlanName is what a VLAN is called that is given no name: the driver, and the
// VLAN's number times 1000 and the instance.
func vlanName(over string, vlan int) (string, bool) {
	driver := strings.TrimRight(over, "0123456789")
	ppa, err := strconv.Atoi(over[len(driver):])
	return fmt.Sprint(driver, vlan*1000+ppa), err == nil && ppa < 1000
}

// deleteOver is do_delete_aggr and do_delete_vlan.
func (d *dladmCall) deleteOver(class string) cli.Reply {
	name, activeOnly, end := d.readNameAndFlag(":R:t")
	if end != nil {
		return *end
	}
	l := d.find(name)
	err := d.mayChange()
	switch {
	case l == nil:
		return d.die("delete operation failed: %s", network.LinkNotFound)
	case l.Class != class:
		return d.die("delete operation failed: %s", network.LinkBadArg) // Guess: of which status.
	case err == nil:
		err = network.DeleteLink(d.tx, l, activeOnly)
	}
	if err != nil {
		return d.die("delete operation failed: %s", err)
	}
	return cli.Reply{}
}

func (d *dladmCall) deleteAggr() cli.Reply { return d.deleteOver("aggr") }
func (d *dladmCall) deleteVLAN() cli.Reply { return d.deleteOver("vlan") }
