package net

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// Netstat runs netstat(8), of which there is only the routing table: -rn. The
// layout is that of
// usr/src/cmd/cmd-inet/usr.bin/netstat/netstat.c: an IPv4 network has no length,
// and a route that is bound to no interface has a blank there.
func Netstat(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := cli.Options(c.Args, "rn", nil)
	cli.Simulated(given.Has('r') && given.Has('n') && len(operands) == 0)
	var b strings.Builder
	netstatTable(&b, network.Routes(tx, c.Zone), false)
	netstatTable(&b, network.Routes(tx, c.Zone), true)
	return cli.Reply{Stdout: b.String()}
}

func netstatTable(b *strings.Builder, all []network.RouteView, six bool) {
	all = slices.DeleteFunc(slices.Clone(all), func(v network.RouteView) bool { return v.Destination.Addr().Is6() != six })
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(v, w network.RouteView) int { return v.Destination.Addr().Compare(w.Destination.Addr()) })
	line := "%-20s %-20s %-5s %5d %10d %-9s\n"
	if six {
		line = "%-27s %-27s %-5s %3d %7d %-5s\n"
		b.WriteString("\nRouting Table: IPv6\n" +
			"  Destination/Mask            Gateway                   Flags Ref   Use    If   \n" +
			"--------------------------- --------------------------- ----- --- ------- -----\n")
	} else {
		b.WriteString("\nRouting Table: IPv4\n" +
			"  Destination           Gateway           Flags  Ref     Use     Interface \n" +
			"-------------------- -------------------- ----- ----- ---------- --------- \n")
	}
	for _, v := range all {
		destination, flags, gateway := netstatName(v, six), "U", v.Gateway
		if v.Gateway.IsValid() {
			flags += "G"
		} else {
			gateway = v.Source
		}
		if v.Destination.IsSingleIP() {
			flags += "H"
		}
		name := v.Interface
		if !v.Bound {
			name = ""
		}
		fmt.Fprintf(b, line, destination, gateway, flags, 1, 0, name)
	}
}

// netstatName shows a network.
func netstatName(v network.RouteView, six bool) string {
	switch {
	case v.Destination.Bits() == 0:
		return "default"
	case six && !v.Destination.IsSingleIP():
		return v.Destination.String()
	}
	return v.Destination.Addr().String()
}
