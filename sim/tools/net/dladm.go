// Package net holds dladm, ipadm, netstat and route.
package net

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// dladm(8): datalinks. Texts, options and their order of checking are those of
// usr/src/cmd/dladm/dladm.c. The command exits 1 for any failure, and prints errors
// on standard error.

// dladmCall is one run of dladm.
type dladmCall struct {
	tx   *world.Tx
	zone string
	args []string // behind the subcommand
	c    cli.Call
}

// Dladm runs dladm(8).
func Dladm(tx *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) > 0)
	run := map[string]func(*dladmCall) cli.Reply{
		"show-link": (*dladmCall).showLink, "show-linkprop": (*dladmCall).showLinkprop, "set-linkprop": (*dladmCall).setLinkprop, "reset-linkprop": (*dladmCall).resetLinkprop,
		"show-phys": (*dladmCall).showPhys, "show-aggr": (*dladmCall).showAggr, "show-vnic": (*dladmCall).showVNIC,
		"create-vnic": (*dladmCall).createVNIC, "delete-vnic": (*dladmCall).deleteVNIC, "create-etherstub": (*dladmCall).createEtherstub,
		"delete-etherstub": (*dladmCall).deleteEtherstub, "create-aggr": (*dladmCall).createAggr, "create-vlan": (*dladmCall).createVLAN,
	}[c.Args[0]]
	cli.Simulated(run != nil)
	return run(&dladmCall{tx: tx, zone: c.Zone, args: c.Args[1:], c: c})
}

// die ends with an error.
func (d *dladmCall) die(format string, args ...any) cli.Reply {
	return cli.Reply{Stderr: "dladm: " + fmt.Sprintf(format, args...) + "\n", Exit: 1}
}

// ended is how a change ends: with the error, if there is one, behind what failed.
func (d *dladmCall) ended(err error, failed string) cli.Reply {
	if err != nil {
		return d.die("%s: %s", failed, err)
	}
	return cli.Reply{}
}

// find looks a link up.
func (d *dladmCall) find(name string) *world.Link { return network.LinkIn(d.tx, d.zone, name) }

// change refuses changes inside a zone: the limit set of a zone has no
// sys_dl_config unless its configuration grants it (privileges(7)), and zones
// that have it are not simulated.
func (d *dladmCall) change(do func() error) error {
	if d.zone != world.GlobalZone {
		return network.LinkDenied
	}
	return do()
}

// newLink is the operand of a command that makes a link.
func newLink(operands []string) string {
	name := cli.Operand(operands)
	cli.Simulated(network.ValidLinkName(name))
	return name
}

// vlanOf reads -v; 0: there is none.
func vlanOf(given cli.Given) int {
	if !given.Has('v') {
		return 0
	}
	vlan, err := strconv.Atoi(given.One('v'))
	cli.Simulated(err == nil && vlan >= 1 && vlan <= 4094)
	return vlan
}

// createVNIC is do_create_vnic.
func (d *dladmCall) createVNIC() cli.Reply {
	given, operands := cli.Options(d.args, "tl:m:p:v:", nil)
	v := network.VNIC{Name: newLink(operands), Over: given.One('l'), VLAN: vlanOf(given), Temporary: given.Has('t')}
	cli.Simulated(given.Has('l'))
	if mac := given.One('m'); mac != "" && mac != "random" {
		padded, ok := network.ParseMAC(mac)
		cli.Simulated(ok)
		v.MAC = padded
	}
	if property := given.One('p'); property != "" {
		mtu, ok := strings.CutPrefix(property, "mtu=")
		cli.Simulated(ok)
		v.MTU = mtu
	}
	if d.find(v.Over) == nil {
		return d.die("invalid link name '%s'", v.Over)
	}
	return cli.Reply{Next: &cli.Next{After: d.tx.Latency(world.StepVNIC), Do: func(tx *world.Tx) cli.Reply {
		d.tx = tx
		return d.makeVNIC(v)
	}}}
}

// makeVNIC is the work, once the time that it takes has passed.
func (d *dladmCall) makeVNIC(v network.VNIC) cli.Reply {
	if d.tx.TakeFault(append([]string{"dladm"}, d.c.Args...), world.FaultMTUIgnored) != nil {
		v.MTU = ""
	}
	err := d.change(func() error { return network.CreateVNIC(d.tx, v) })
	if errors.Is(err, network.LinkDefaultTagBusy) {
		return d.die("VLAN over '%s' may not use default_tag ID (see dladm(8))", v.Over)
	}
	return d.ended(err, "vnic creation over "+v.Over+" failed")
}

func (d *dladmCall) createEtherstub() cli.Reply {
	given, operands := cli.Options(d.args, "t", nil)
	name := newLink(operands)
	return d.ended(d.change(func() error { return network.CreateEtherstub(d.tx, name, given.Has('t')) }), "etherstub creation failed")
}

// createAggr is do_create_aggr. What LACP does with packets is not simulated.
func (d *dladmCall) createAggr() cli.Reply {
	given, operands := cli.Options(d.args, "l:L:", nil)
	cli.Simulated(d.zone == world.GlobalZone && len(given['l']) > 0 && slices.Contains([]string{"", "off", "active", "passive"}, given.One('L')))
	network.CreateAggregation(d.tx, newLink(operands), given['l'])
	return cli.Reply{}
}

// createVLAN is do_create_vlan.
func (d *dladmCall) createVLAN() cli.Reply {
	given, operands := cli.Options(d.args, "l:v:", nil)
	cli.Simulated(d.zone == world.GlobalZone && given.Has('v'))
	network.CreateVLAN(d.tx, newLink(operands), given.One('l'), vlanOf(given))
	return cli.Reply{}
}

func (d *dladmCall) deleteVNIC() cli.Reply      { return d.deleteLink("vnic", "a vnic") }
func (d *dladmCall) deleteEtherstub() cli.Reply { return d.deleteLink("etherstub", "an etherstub") }

// deleteLink is do_delete_vnic_common. Both subcommands say "vnic".
func (d *dladmCall) deleteLink(class, wanted string) cli.Reply {
	_, operands := cli.Options(d.args, "", nil)
	name := cli.Operand(operands)
	l := d.find(name)
	if l == nil {
		return d.die("invalid link name '%s'", name)
	}
	cli.Simulated(l.Class == "vnic" || l.Class == "etherstub")
	if l.Class != class {
		return d.die("'%s' is not %s", name, wanted)
	}
	return d.ended(d.change(func() error { return network.DeleteLink(d.tx, l) }), "vnic deletion failed")
}
