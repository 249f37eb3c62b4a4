package net

import (
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// dadWait is how long create-addr waits for duplicate address detection
// (DAD_WAIT_TIME in usr/src/lib/libipadm/common/libipadm.c). An address that is
// still tentative then, or a duplicate, is no failure.
const dadWait = time.Second

// dhcpWait is how long create-addr waits for a lease unless -w says otherwise
// (DHCP_IPC_WAIT_DEFAULT in usr/src/lib/libdhcpagent/common/dhcpagent_ipc.h).
const dhcpWait = 120 * time.Second

// addrOptions are what create-addr was given.
type addrOptions struct {
	address          network.NewAddress
	wait             string
	static, dhcp, ra bool // options that belong to one type only were given
	hasAddress       bool
	properties       bool
	operands         []string
}

func (i *ipadmCall) readCreateAddr() (addrOptions, *cli.Reply) {
	var o addrOptions
	long := map[string]byte{"address": 'a', "down": 'd', "interface-id": 'i', "primary": '1', "prop": 'p', "reqhost": 'h',
		"temporary": 't', "type": 'T', "wait": 'w'}
	options, operands := cli.Getopt(i.args, ":1T:a:di:p:w:h:t", long)
	o.operands = operands
	for _, opt := range options {
		switch opt.Letter {
		case 'T':
			o.address.Type = opt.Value
		case 'a':
			o.address.Address, o.static, o.hasAddress = opt.Value, true, true
		case 'd':
			o.address.Down, o.static = true, true
		case 'i', 'p':
			o.ra, o.properties = true, true
		case 'w':
			o.wait, o.dhcp = opt.Value, true
		case '1', 'h':
			o.dhcp = true
		case 't':
			o.address.Temporary = true
		default:
			r := i.badOption(opt)
			return o, &r
		}
	}
	return o, nil
}

// createAddr is do_create_addr.
func (i *ipadmCall) createAddr() cli.Reply {
	o, end := i.readCreateAddr()
	if end != nil {
		return *end
	}
	kind := o.address.Type
	if kind == "" || len(o.operands) != 1 {
		return i.die("Invalid arguments\nusage: %s", i.usage)
	}
	object := o.operands[0]
	if _, name, ok := strings.Cut(object, "/"); !ok || name == "" {
		return i.die("invalid address object name: %s\nusage: %s", object, i.usage)
	}
	switch {
	case kind != "static" && kind != "dhcp" && kind != "addrconf":
		return i.die("Invalid address type %s", kind)
	case kind == "static" && (!o.hasAddress || o.ra || o.dhcp), kind == "dhcp" && (o.ra || o.static),
		kind == "addrconf" && (o.dhcp || o.static):
		return i.die("Invalid arguments for type %s\nusage: %s", kind, i.usage)
	case !network.ValidObject(object):
		return i.die("Error in creating address object: %s", network.IPBadArg)
	case o.properties:
		return i.die("-i and -p: the simulated sled has no routers that advertise")
	}
	o.address.Object = object
	if end := i.readStatic(&o.address); end != nil {
		return *end
	}
	wait, ok := parseWait(o.wait)
	if !ok {
		return i.die("Invalid argument")
	}
	return i.makeAddress(o.address, wait)
}

// readStatic understands "ADDRESS" and "local=ADDRESS".
func (i *ipadmCall) readStatic(n *network.NewAddress) *cli.Reply {
	if n.Type != "static" {
		return nil
	}
	var r cli.Reply
	switch local, ok := strings.CutPrefix(n.Address, "local="); {
	case strings.Contains(n.Address, "remote="):
		r = i.die("Could not create address: %s", network.IPBadArg) // a destination is for point-to-point links
		return &r
	case ok:
		n.Address = local
	}
	if _, err := network.ParseStatic(n.Address); err != nil {
		r = i.die("Error in setting local address: %s", err)
		return &r
	}
	return nil
}

// parseWait reads -w; negative is forever.
func parseWait(text string) (time.Duration, bool) {
	switch text {
	case "":
		return dhcpWait, true
	case "forever":
		return -1, true
	}
	n, err := strconv.Atoi(text)
	return time.Duration(n) * time.Second, err == nil && n >= 0
}

// makeAddress makes the object and waits as long as ipadm does.
func (i *ipadmCall) makeAddress(n network.NewAddress, wait time.Duration) cli.Reply {
	words := append([]string{"ipadm"}, i.c.Args...)
	if f := i.tx.TakeFault(words, world.FaultSlowDAD); f != nil {
		n.SlowProbe = f.Delay
	}
	n.NoLease = i.tx.TakeFault(words, world.FaultNoLease) != nil
	a, err := network.CreateAddress(i.tx, i.zone, n)
	if err != nil {
		return i.die("Could not create address: %s", err)
	}
	settled := a.Timeline[len(a.Timeline)-1].From.Sub(i.tx.Now)
	if n.Type == "dhcp" {
		return i.awaitLease(len(a.Timeline) > 1, settled, wait)
	}
	return cli.Reply{Next: &cli.Next{After: min(settled, dadWait), Do: func(*world.Tx) cli.Reply { return cli.Reply{} }}}
}

// awaitLease waits for the lease, but not longer than asked for: that it did
// not come in time is only a warning, and none at all with -w 0.
func (i *ipadmCall) awaitLease(comes bool, in, wait time.Duration) cli.Reply {
	after, late := in, false
	if forever := wait < 0; !forever && (!comes || in > wait) {
		after, late = wait, wait > 0
	} else if forever && !comes {
		never := func(*world.Tx) bool { return false }
		return cli.Reply{Next: &cli.Next{Until: never, Do: func(*world.Tx) cli.Reply { return cli.Reply{} }}}
	}
	return cli.Reply{Next: &cli.Next{After: after, Do: func(*world.Tx) cli.Reply {
		if late {
			i.warning("%s", network.IPDHCPTimeout)
		}
		return cli.Reply{Stderr: i.warn.String()}
	}}}
}

func (i *ipadmCall) deleteAddr() cli.Reply {
	options, operands := cli.Getopt(i.args, ":r", map[string]byte{"release": 'r'})
	release := false
	for _, opt := range options {
		if opt.Letter != 'r' {
			return i.badOption(opt)
		}
		release = true
	}
	if len(operands) != 1 {
		return i.wrongUsage()
	}
	a := network.FindAddress(i.tx, i.zone, operands[0])
	var err error
	switch {
	case a != nil && release && a.Type != "dhcp":
		err = network.IPNotSupported
	default:
		err = network.DeleteAddress(i.tx, i.zone, operands[0])
	}
	if err != nil {
		return i.die("could not delete address: %s", err)
	}
	return cli.Reply{}
}

// showAddr: an operand is an object, or "INTERFACE/" for all on one.
func (i *ipadmCall) showAddr() cli.Reply {
	parsable, fields, operand, end := i.readShow()
	if end != nil {
		return *end
	}
	if parsable && fields == nil {
		return i.die("-p requires -o")
	}
	if operand != "" && !strings.Contains(operand, "/") {
		return i.die("Invalid address object name provided")
	}
	if fields == nil {
		usual := "addrobj,type,state,addr"
		fields = &usual
	}
	var rows []network.AddressView
	for _, a := range network.Addresses(i.tx, i.zone) {
		if operand == "" || a.Object == operand || strings.HasSuffix(operand, "/") && strings.HasPrefix(a.Object, operand) {
			rows = append(rows, a)
		}
	}
	if operand != "" && !strings.HasSuffix(operand, "/") && len(rows) == 0 {
		return i.die("Could not get address: %s", network.IPNotFound) // since illumos 16677; before: "Address object not found"
	}
	return showIpadm(i, i.addrColumns(), fields, parsable, rows)
}

func (i *ipadmCall) addrColumns() []cli.Column[network.AddressView] {
	return []cli.Column[network.AddressView]{
		cli.NewColumn("ADDROBJ", 18, func(a network.AddressView) string { return a.Object }),
		cli.NewColumn("TYPE", 9, func(a network.AddressView) string { return a.Type }),
		cli.NewColumn("STATE", 13, func(a network.AddressView) string { return a.State }),
		cli.NewColumn("CURRENT", 8, func(a network.AddressView) string {
			if a.State == "ok" {
				return "U----"
			}
			return "-----"
		}),
		cli.NewColumn("PERSISTENT", 11, func(a network.AddressView) string {
			if a.Persistent {
				return "U--"
			}
			return "---"
		}),
		cli.NewColumn("ADDR", 46, func(a network.AddressView) string { return a.Address }),
	}
}
