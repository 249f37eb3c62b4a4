package net

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// route(8): the routing table of the zone that it runs in. Texts and exit codes
// are those of usr/src/cmd/cmd-inet/usr.sbin/route.c: what the kernel answers is
// printed on standard output and its errno is the exit code; a fault of the command
// line goes to standard error, with 1. Networks are added and deleted, each with
// its length, and the default route is looked up.

// routeCall is what a command line asks for.
type routeCall struct {
	verb        string // add, delete, get
	six         bool
	destination string
	gateway     string
	ifname      string
}

// Route runs route(8).
func Route(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := cli.Options(c.Args, "n", nil)
	r := readRoute(operands)
	if r.ifname != "" && network.FindInterface(tx, c.Zone, r.ifname) == nil {
		return cli.Reply{Stderr: "route: " + r.ifname + ": no such interface\n", Exit: 1}
	}
	if r.verb == "get" {
		cli.Simulated(given.Has('n') && r.destination == "default" && r.gateway == "" && r.ifname == "")
		view, err := network.DefaultRoute(tx, c.Zone, r.six)
		if err != nil {
			text, exit := errnoOf(err)
			return cli.Reply{Stdout: " " + r.prefix().Addr().String() + text + "\n", Exit: exit}
		}
		return cli.Reply{Stdout: describe(view)}
	}
	gateway, err := netip.ParseAddr(r.gateway)
	cli.Simulated(err == nil && gateway.Is6() == r.six)
	request := network.RouteRequest{Destination: r.prefix(), Gateway: gateway, Interface: r.ifname}
	if r.verb == "add" {
		err = network.AddRoute(tx, c.Zone, request)
	} else {
		err = network.DeleteRoute(tx, c.Zone, request)
	}
	// print_rtcmd_short: "add net default: gateway 10.0.0.1".
	text, exit := errnoOf(err)
	return cli.Reply{Stdout: fmt.Sprintf("%s net %s: gateway %s%s\n", r.verb, r.destination, r.gateway, text), Exit: exit}
}

// readRoute is args_to_rtcmd: keywords behind a "-", then destination and gateway.
func readRoute(words []string) routeCall {
	cli.Simulated(len(words) > 1 && (words[0] == "add" || words[0] == "delete" || words[0] == "get"))
	r := routeCall{verb: words[0]}
	for i := 1; i < len(words); i++ {
		switch word := words[i]; {
		case word == "-inet" || word == "-inet6":
			r.six = word == "-inet6"
		case word == "-ifp" && i+1 < len(words):
			i++
			r.ifname = words[i]
		case r.destination == "":
			r.destination = word
		default:
			cli.Simulated(r.gateway == "")
			r.gateway = word
		}
	}
	return r
}

// prefix is the destination. Names are not looked up: the simulated sled has no
// name service.
func (r routeCall) prefix() netip.Prefix {
	if r.destination == "default" {
		return netip.PrefixFrom(map[bool]netip.Addr{false: netip.IPv4Unspecified(), true: netip.IPv6Unspecified()}[r.six], 0)
	}
	p, err := netip.ParsePrefix(r.destination)
	cli.Simulated(err == nil && p.Addr().Is6() == r.six && !p.IsSingleIP())
	return p
}

// errnoOf gives the numbers of illumos, which differ from those of other
// systems (usr/src/uts/common/sys/errno.h), and the text of each.
func errnoOf(err error) (text string, exit int) {
	switch err {
	case syscall.ESRCH:
		return ": not in table", 3
	case syscall.EEXIST:
		return ": entry exists", 17
	case syscall.ENETUNREACH:
		return ": Network is unreachable", 128
	}
	return "", 0
}

// describe is print_getmsg, of a default route.
func describe(v network.RouteView) string {
	return fmt.Sprintf("   route to: default\ndestination: default\n       mask: default\n    gateway: %s\n  interface: %s\n"+
		"      flags: <UP,GATEWAY,DONE,STATIC>\n"+
		" recvpipe  sendpipe  ssthresh    rtt,ms rttvar,ms  hopcount      mtu     expire\n%s%8d         0 \n",
		v.Gateway, v.Interface, strings.Repeat("       0  ", 6), v.MTU)
}
