package net

import (
	"errors"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// vnicLongNames are the long options of the subcommands that make links.
func vnicLongNames() map[string]byte {
	return map[string]byte{"temporary": 't', "mac-address": 'm', "slot": 'n', "mac-prefix": 'r', "vrid": 'V', "address-family": 'A'}
}

// vnicOptions are what create-vnic was given.
type vnicOptions struct {
	vnic                network.VNIC
	link                bool
	mac                 string // the word behind -m
	properties          string
	force, slot, prefix bool
	vrrp                bool
	operands            []string
}

func (d *dladmCall) readCreateVNIC() (vnicOptions, *cli.Reply) {
	var o vnicOptions
	refuse := func(format string, args ...any) (vnicOptions, *cli.Reply) {
		r := d.die(format, args...)
		return o, &r
	}
	options, operands := cli.Getopt(d.args, ":tfR:l:m:n:p:r:v:V:A:H", vnicLongNames())
	o.operands = operands
	for _, opt := range options {
		switch opt.Letter {
		case 't':
			o.vnic.Temporary = true
		case 'f':
			o.force = true
		case 'l':
			if len(opt.Value) > 31 {
				return refuse("link name too long")
			}
			o.vnic.Over, o.link = opt.Value, true
		case 'm':
			switch mac, ok := network.ParseMAC(opt.Value); {
			case o.mac != "":
				return refuse("cannot specify -m option twice")
			case opt.Value == "fixed":
				return refuse("'fixed' is not a valid MAC address")
			case ok:
				o.vnic.MAC = mac
			case opt.Value != "auto" && opt.Value != "random" && opt.Value != "factory" && opt.Value != "vrrp":
				return refuse("invalid MAC address")
			}
			o.mac = opt.Value
		case 'v':
			vid, err := strconv.Atoi(opt.Value)
			if o.vnic.VLAN != 0 {
				r := d.twice('v')
				return o, &r
			}
			if err != nil || vid < 1 || vid > 4094 {
				return refuse("invalid VLAN identifier '%s'", opt.Value)
			}
			o.vnic.VLAN = vid
		case 'p':
			o.properties += opt.Value + ","
		case 'n':
			o.slot = true
		case 'r':
			o.prefix = true
		case 'V', 'A':
			o.vrrp = true
		case 'R':
			return refuse("-R: the simulated sled has no alternate roots")
		default:
			r := d.badOption(opt)
			return o, &r
		}
	}
	return o, nil
}

// createVNIC is do_create_vnic.
func (d *dladmCall) createVNIC() cli.Reply {
	o, end := d.readCreateVNIC()
	if end != nil {
		return *end
	}
	switch {
	case o.force && o.vnic.VLAN == 0:
		return d.die("-f option can only be used with -v")
	case o.prefix && o.mac != "random", o.vrrp != (o.mac == "vrrp"), !o.link, o.slot && o.mac != "factory", len(o.operands) != 1:
		return d.wrongUsage()
	}
	name := o.operands[0]
	o.vnic.Name = name
	settings, ok := parseLinkProps(o.properties, false)
	switch {
	case len(name) > 31:
		return d.die("link name too long '%s'", name)
	case !network.ValidLinkName(name):
		return d.die("invalid link name '%s'", name)
	case d.find(o.vnic.Over) == nil:
		return d.die("invalid link name '%s'", o.vnic.Over)
	case !ok:
		return d.die("invalid vnic property")
	}
	if err := d.mayChange(); err != nil {
		return d.die("vnic creation over %s failed: %s", o.vnic.Over, err)
	}
	if o.mac == "factory" || o.vrrp || o.prefix {
		return d.die("vnic creation over %s failed: %s", o.vnic.Over, network.LinkNotSupported) // Guess: what hardware without slots says.
	}
	o.vnic.Properties = settings
	return cli.Reply{Next: &cli.Next{After: d.tx.Latency(world.StepVNIC), Do: func(tx *world.Tx) cli.Reply {
		d.tx = tx
		return d.makeVNIC(o.vnic)
	}}}
}

// makeVNIC is the work, once the time that it takes has passed.
func (d *dladmCall) makeVNIC(v network.VNIC) cli.Reply {
	if d.tx.TakeFault(append([]string{"dladm"}, d.c.Args...), world.FaultMTUIgnored) != nil {
		v.Properties = slices.DeleteFunc(v.Properties, func(s network.LinkSetting) bool { return s.Name == "mtu" })
	}
	err := network.CreateVNIC(d.tx, v)
	switch {
	case errors.Is(err, network.LinkDefaultTagBusy):
		return d.die("VLAN over '%s' may not use default_tag ID (see dladm(8))", v.Over)
	case err != nil:
		return d.die("vnic creation over %s failed: %s", v.Over, err)
	}
	return cli.Reply{}
}

// readNameAndFlag parses "[-t] NAME".
func (d *dladmCall) readNameAndFlag(spec string) (name string, temporary bool, end *cli.Reply) {
	options, operands := cli.Getopt(d.args, spec, vnicLongNames())
	for _, opt := range options {
		var r cli.Reply
		switch opt.Letter {
		case 't':
			temporary = true
			continue
		case 'R':
			r = d.die("-R: the simulated sled has no alternate roots")
		default:
			r = d.badOption(opt)
		}
		return "", false, &r
	}
	if len(operands) != 1 {
		r := d.wrongUsage()
		return "", false, &r
	}
	return operands[0], temporary, nil
}

func (d *dladmCall) createEtherstub() cli.Reply {
	name, temporary, end := d.readNameAndFlag("tR:")
	switch {
	case end != nil:
		return *end
	case len(name) > 31:
		return d.die("link name too long '%s'", name)
	case !network.ValidLinkName(name):
		return d.die("invalid link name '%s'", name)
	}
	err := d.mayChange()
	if err == nil {
		err = network.CreateEtherstub(d.tx, name, temporary)
	}
	if err != nil {
		return d.die("etherstub creation failed: %s", err)
	}
	return cli.Reply{}
}

func (d *dladmCall) deleteVNIC() cli.Reply      { return d.deleteLink("vnic") }
func (d *dladmCall) deleteEtherstub() cli.Reply { return d.deleteLink("etherstub") }

// deleteLink is do_delete_vnic_common. Both subcommands say "vnic".
func (d *dladmCall) deleteLink(class string) cli.Reply {
	name, activeOnly, end := d.readNameAndFlag(":R:t")
	if end != nil {
		return *end
	}
	l := d.find(name)
	switch {
	case l == nil:
		return d.die("invalid link name '%s'", name)
	case l.Class == "etherstub" && class == "vnic":
		return d.die("'%s' is not a vnic", name)
	case l.Class == "vnic" && class == "etherstub":
		return d.die("'%s' is not an etherstub", name)
	}
	err := d.mayChange()
	switch {
	case err != nil:
	case l.Class != "vnic" && l.Class != "etherstub":
		err = network.LinkNotFound // Guess: no such VNIC, says the driver of any other class.
	default:
		err = network.DeleteLink(d.tx, l, activeOnly)
	}
	if err != nil {
		return d.die("vnic deletion failed: %s", err)
	}
	return cli.Reply{}
}

func (d *dladmCall) renameLink() cli.Reply {
	options, operands := cli.Getopt(d.args, ":R:", vnicLongNames())
	if len(options) > 0 {
		return d.badOption(options[0])
	}
	if len(operands) != 2 {
		return d.wrongUsage()
	}
	err := d.mayChange()
	if err == nil {
		err = network.RenameLink(d.tx, operands[0], operands[1])
	}
	if err != nil {
		return d.die("rename operation failed: %s", err)
	}
	return cli.Reply{}
}
