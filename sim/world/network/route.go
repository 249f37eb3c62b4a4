package network

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/sledctl/sledctl/sim/world"
)

// RouteRequest is what route(8) asks the kernel about. Its errors are the
// numbers that the kernel answers: syscall.ESRCH, EEXIST, ENETUNREACH.
type RouteRequest struct {
	Destination netip.Prefix // 0.0.0.0/0 and ::/0 are default
	Gateway     netip.Addr
	Interface   string // -ifp; empty: any
}

// RouteView is an entry of the table, or the way to a network that an
// interface is on.
type RouteView struct {
	Destination netip.Prefix
	Gateway     netip.Addr // zero for an interface's own network
	Source      netip.Addr // of an interface's own network
	Interface   string
	Bound       bool // to the interface
	MTU         int
}

// key is how a Route is stored.
func (r RouteRequest) key() string {
	if r.Destination.Bits() == 0 {
		return "default"
	}
	return r.Destination.Masked().String()
}

// route is the entry of the active table with that destination and gateway.
func route(s *world.Stack, r RouteRequest) *world.Route {
	for _, e := range s.Routes {
		if e.Destination == r.key() && e.Gateway == r.Gateway.String() && !e.Inactive && (r.Interface == "" || r.Interface == e.Interface) {
			return e
		}
	}
	return nil
}

// AddRoute enters a route (ip_rt_add in usr/src/uts/common/inet/ip/ip_if.c): its
// gateway must lie on a network that an address of this zone is on.
func AddRoute(tx *world.Tx, zone string, r RouteRequest) error {
	s := stack(tx, zone)
	via, ok := nextHop(tx, zone, r)
	if !ok {
		return syscall.ENETUNREACH
	}
	bound := r.Interface != ""
	r.Interface = via
	if route(s, r) != nil {
		return syscall.EEXIST
	}
	// The entry of /etc/inet/static_routes is not made active again.
	world.Simulated(!slices.ContainsFunc(s.Routes, func(e *world.Route) bool {
		return e.Persistent && e.Destination == r.key() && e.Gateway == r.Gateway.String()
	}))
	s.Routes = append(s.Routes, &world.Route{Destination: r.key(), Gateway: r.Gateway.String(), Interface: via, Bound: bound})
	return nil
}

// nextHop is the interface through which the gateway is reached.
func nextHop(tx *world.Tx, zone string, r RouteRequest) (string, bool) {
	for _, a := range tx.State.Stacks[zone].Addresses {
		p, err := netip.ParsePrefix(a.Address)
		if err != nil || world.At(a.Timeline, tx.Now).State != "ok" || r.Interface != "" && interfaceOf(a) != r.Interface {
			continue
		}
		if p.Contains(r.Gateway) {
			return interfaceOf(a), true
		}
	}
	return "", false
}

// DeleteRoute takes a route out of the table; a persistent one stays in the
// file.
func DeleteRoute(tx *world.Tx, zone string, r RouteRequest) error {
	s := stack(tx, zone)
	e := route(s, r)
	if e == nil {
		return syscall.ESRCH
	}
	e.Inactive = true
	s.Routes = slices.DeleteFunc(s.Routes, func(e *world.Route) bool { return e.Inactive && !e.Persistent })
	return nil
}

// DefaultRoute looks the default route of a family up (RTM_GET, ip_rts_request in
// usr/src/uts/common/inet/ip/ip_rts.c).
func DefaultRoute(tx *world.Tx, zone string, six bool) (RouteView, error) {
	for _, v := range Routes(tx, zone) {
		if v.Destination.Bits() == 0 && v.Destination.Addr().Is6() == six {
			return v, nil
		}
	}
	return RouteView{}, syscall.ESRCH
}

// Routes lists the active routes and the networks of the interfaces.
func Routes(tx *world.Tx, zone string) []RouteView {
	s := stack(tx, zone)
	var table []RouteView
	for _, e := range s.Routes {
		gateway, err := netip.ParseAddr(e.Gateway)
		if err != nil || e.Inactive {
			continue
		}
		table = append(table, RouteView{Destination: prefix(e, gateway), Gateway: gateway, Interface: e.Interface, Bound: e.Bound,
			MTU: InterfaceMTU(tx, zone, e.Interface, family(gateway))})
	}
	for _, a := range s.Addresses {
		if p, err := netip.ParsePrefix(a.Address); err == nil && world.At(a.Timeline, tx.Now).State == "ok" {
			if interfaceOf(a) == Loopback {
				p = netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
			}
			table = append(table, RouteView{Destination: p.Masked(), Source: p.Addr(), Interface: interfaceOf(a), Bound: true,
				MTU: InterfaceMTU(tx, zone, interfaceOf(a), family(p.Addr()))})
		}
	}
	return table
}

// prefix is the destination; default takes its family from the gateway.
func prefix(e *world.Route, gateway netip.Addr) netip.Prefix {
	if p, err := netip.ParsePrefix(e.Destination); err == nil {
		return p
	}
	if gateway.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "ipv4"
	}
	return "ipv6"
}
