package net

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// ipadm(8): interfaces and addresses of the zone that it runs in. Texts,
// options and their order of checking are those of
// usr/src/cmd/cmd-inet/usr.sbin/ipadm/ipadm.c. It exits 1 for any failure. Its
// die() writes the words to standard error and the newline behind them to
// standard output, so that a failure leaves "\n" there.

// ipadmCall is one run of ipadm.
type ipadmCall struct {
	tx   *world.Tx
	zone string
	args []string // behind the subcommand
	c    cli.Call
}

// Ipadm runs ipadm(8). Without a subcommand it is show-addr.
func Ipadm(tx *world.Tx, c cli.Call) cli.Reply {
	args := c.Args
	if len(args) == 0 {
		args = []string{"show-addr"}
	}
	run := map[string]func(*ipadmCall) cli.Reply{
		"create-if": (*ipadmCall).createIf, "delete-if": (*ipadmCall).deleteIf, "show-if": (*ipadmCall).showIf,
		"set-ifprop": (*ipadmCall).setIfprop, "create-addr": (*ipadmCall).createAddr, "delete-addr": (*ipadmCall).deleteAddr,
		"show-addr": (*ipadmCall).showAddr,
	}[args[0]]
	cli.Simulated(run != nil)
	i := &ipadmCall{tx: tx, zone: c.Zone, c: c, args: args[1:]}
	if err := network.CheckIPDaemon(tx, c.Zone); err != nil {
		return i.die("Could not open handle to library - %s", err)
	}
	return run(i)
}

// die ends with an error, in its odd way.
func (i *ipadmCall) die(format string, args ...any) cli.Reply {
	return cli.Reply{Stdout: "\n", Stderr: "ipadm: " + fmt.Sprintf(format, args...), Exit: 1}
}

// ended is how a change ends: with the error, if there is one, behind what failed.
func (i *ipadmCall) ended(err error, failed string) cli.Reply {
	if err != nil {
		return i.die("%s: %s", failed, err)
	}
	return cli.Reply{}
}

func (i *ipadmCall) createIf() cli.Reply {
	given, operands := cli.Options(i.args, "t", nil)
	name := cli.Operand(operands)
	return i.ended(network.CreateInterface(i.tx, i.zone, name, given.Has('t')), "Could not create "+name+" ")
}

func (i *ipadmCall) deleteIf() cli.Reply {
	_, operands := cli.Options(i.args, "", nil)
	name := cli.Operand(operands)
	return i.ended(network.DeleteInterface(i.tx, i.zone, name), "Could not delete "+name)
}

// showIf names the interfaces, for programs.
func (i *ipadmCall) showIf() cli.Reply {
	given, operands := cli.Options(i.args, "po:", nil)
	cli.Simulated(given.Has('p') && len(operands) == 0)
	columns := []cli.Column[*world.Interface]{cli.NewColumn("IFNAME", 11, func(f *world.Interface) string { return f.Name })}
	out, _ := cli.Table(columns, given.Fields(), true, false, network.Interfaces(i.tx, i.zone))
	return cli.Reply{Stdout: out}
}

// setIfprop is set_ifprop, of the MTU with -t. One call sets it for one protocol.
func (i *ipadmCall) setIfprop() cli.Reply {
	given, operands := cli.Options(i.args, "m:p:t", nil)
	value, ok := strings.CutPrefix(given.One('p'), "mtu=")
	mtu, err := strconv.Atoi(value)
	protocol := given.One('m')
	cli.Simulated(ok && err == nil && given.Has('t') && (protocol == "ipv4" || protocol == "ipv6"))
	return i.ended(network.SetInterfaceMTU(i.tx, i.zone, cli.Operand(operands), protocol, mtu), "set-ifprop: mtu")
}

// dadWait is how long create-addr waits for duplicate address detection
// (DAD_WAIT_TIME in usr/src/lib/libipadm/common/libipadm.c). An address that is
// still tentative then, or a duplicate, is no failure.
const dadWait = time.Second

// createAddr is do_create_addr.
func (i *ipadmCall) createAddr() cli.Reply {
	given, operands := cli.Options(i.args, "T:a:w:t", nil)
	n := network.NewAddress{Object: cli.Operand(operands), Type: given.One('T'), Address: given.One('a'), Temporary: given.Has('t')}
	switch n.Type {
	case "static":
		cli.Simulated(given.Has('a') && !given.Has('w'))
	case "dhcp":
		cli.Simulated(!given.Has('a') && (!given.Has('w') || given.One('w') == "0"))
	default:
		cli.Simulated(n.Type == "addrconf" && !given.Has('a') && !given.Has('w'))
	}
	words := append([]string{"ipadm"}, i.c.Args...)
	if f := i.tx.TakeFault(words, world.FaultSlowDAD); f != nil {
		n.SlowProbe = f.Delay
	}
	n.NoLease = i.tx.TakeFault(words, world.FaultNoLease) != nil
	a, err := network.CreateAddress(i.tx, i.zone, n)
	if err != nil {
		return i.die("Could not create address: %s", err)
	}
	after := a.Timeline[len(a.Timeline)-1].From.Sub(i.tx.Now)
	switch {
	case n.Type != "dhcp":
		after = min(after, dadWait)
	case given.Has('w'):
		after = 0
	default:
		// A lease that does not come is waited for 120 s (DHCP_IPC_WAIT_DEFAULT in
		// usr/src/lib/libdhcpagent/common/dhcpagent_ipc.h), and then it warns.
		cli.Simulated(len(a.Timeline) > 1)
	}
	return cli.Reply{Next: &cli.Next{After: after, Do: func(*world.Tx) cli.Reply { return cli.Reply{} }}}
}

func (i *ipadmCall) deleteAddr() cli.Reply {
	_, operands := cli.Options(i.args, "", nil)
	return i.ended(network.DeleteAddress(i.tx, i.zone, cli.Operand(operands)), "could not delete address")
}

// showAddr: an operand is an object, or "INTERFACE/" for all on one.
func (i *ipadmCall) showAddr() cli.Reply {
	given, operands := cli.Options(i.args, "po:", nil)
	one := cli.AtMostOne(operands)
	var rows []network.AddressView
	for _, a := range network.Addresses(i.tx, i.zone) {
		if one == "" || a.Object == one || strings.HasSuffix(one, "/") && strings.HasPrefix(a.Object, one) {
			rows = append(rows, a)
		}
	}
	cli.Simulated(one == "" || strings.Contains(one, "/"))
	if one != "" && !strings.HasSuffix(one, "/") && len(rows) == 0 {
		return i.die("Could not get address: %s", network.IPNotFound) // since illumos 16677; before: "Address object not found"
	}
	out, _ := cli.Table([]cli.Column[network.AddressView]{
		cli.NewColumn("ADDROBJ", 18, func(a network.AddressView) string { return a.Object }),
		cli.NewColumn("TYPE", 9, func(a network.AddressView) string { return a.Type }),
		cli.NewColumn("STATE", 13, func(a network.AddressView) string { return a.State }),
		cli.NewColumn("ADDR", 46, func(a network.AddressView) string { return a.Address }),
	}, given.Fields(), given.Has('p'), false, rows)
	return cli.Reply{Stdout: out}
}
