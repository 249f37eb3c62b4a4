package net

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/sim/world/network"
)

// exitOf gives the numbers of illumos, which differ from those of other
// systems (usr/src/uts/common/sys/errno.h).
func exitOf(err error) int {
	switch {
	case errors.Is(err, syscall.ESRCH):
		return 3
	case errors.Is(err, syscall.EEXIST):
		return 17
	case errors.Is(err, syscall.ENETUNREACH):
		return 128
	case err != nil:
		return 22
	}
	return 0
}

func routeWords(err error) string {
	switch {
	case errors.Is(err, syscall.ESRCH):
		return "not in table"
	case errors.Is(err, syscall.EEXIST):
		return "entry exists"
	case errors.Is(err, syscall.ENETUNREACH):
		return "Network is unreachable"
	}
	return "Invalid argument"
}

// short is print_rtcmd_short: "add net default: gateway 10.0.0.1".
func (r *routeCall) short(saved string) string {
	kind := "net"
	if !r.net && r.request.Destination.IsSingleIP() {
		kind = "host"
	}
	return fmt.Sprintf("%s%s %s %s: gateway %s", r.verb, saved, kind, r.destination, r.gateway)
}

// asked is how get names a destination that is not in the table.
func (r *routeCall) asked() string {
	if r.numeric {
		return " " + r.request.Destination.Addr().String()
	}
	return r.destination
}

// describe is print_getmsg.
func (r *routeCall) describe(v network.RouteView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "   route to: %s\n", routeName(r.request.Destination.Addr()))
	fmt.Fprintf(&b, "destination: %s\n       mask: %s\n", routeName(v.Destination.Addr()), routeName(netmask(v.Destination)))
	flags := "UP"
	if v.Gateway.IsValid() {
		fmt.Fprintf(&b, "    gateway: %s\n", v.Gateway)
		flags += ",GATEWAY"
	}
	if v.Destination.IsSingleIP() {
		flags += ",HOST"
	}
	flags += ",DONE"
	if v.Gateway.IsValid() {
		flags += ",STATIC"
	}
	fmt.Fprintf(&b, "  interface: %s\n      flags: <%s>\n", v.Interface, flags)
	b.WriteString(" recvpipe  sendpipe  ssthresh    rtt,ms rttvar,ms  hopcount      mtu     expire\n")
	for range 6 {
		b.WriteString("       0  ")
	}
	fmt.Fprintf(&b, "%8d         0 \n", v.MTU)
	return b.String()
}

func routeName(a netip.Addr) string {
	if a.IsUnspecified() {
		return "default"
	}
	return a.String()
}

func netmask(p netip.Prefix) netip.Addr {
	ones := make([]byte, len(p.Addr().AsSlice()))
	for i := range p.Bits() {
		ones[i/8] |= 1 << (7 - i%8)
	}
	mask, _ := netip.AddrFromSlice(ones)
	return mask
}
