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
	Exact       bool         // the mask counts too; else the longest prefix that holds the address
	Gateway     netip.Addr   // zero: any (get only)
	Interface   string       // -ifp; empty: any
	Local       bool         // -interface: the gateway is an address of this zone
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
	i := slices.IndexFunc(s.Routes, func(e *world.Route) bool {
		return e.Destination == r.key() && e.Gateway == r.Gateway.String() && !e.Inactive &&
			(r.Interface == "" || r.Interface == e.Interface)
	})
	if i < 0 {
		return nil
	}
	return s.Routes[i]
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
	if saved := saved(s, r); saved != nil {
		saved.Inactive, saved.Interface, saved.Bound = false, via, bound
		return nil
	}
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
		if r.Local && p.Addr() == r.Gateway || !r.Local && p.Contains(r.Gateway) {
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

// FindRoute looks a route up (RTM_GET, ip_rts_request in
// usr/src/uts/common/inet/ip/ip_rts.c).
func FindRoute(tx *world.Tx, zone string, r RouteRequest) (RouteView, error) {
	best, found := RouteView{}, false
	for _, v := range Routes(tx, zone) {
		switch {
		case v.Destination.Addr().Is4() != r.Destination.Addr().Is4(),
			r.Exact && v.Destination != r.Destination.Masked(),
			!r.Exact && !v.Destination.Contains(r.Destination.Addr()),
			r.Gateway.IsValid() && v.Gateway != r.Gateway,
			r.Interface != "" && v.Interface != r.Interface,
			found && v.Destination.Bits() <= best.Destination.Bits():
			continue
		}
		best, found = v, true
	}
	if !found {
		return RouteView{}, syscall.ESRCH
	}
	return best, nil
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

// saved is the entry of /etc/inet/static_routes.
func saved(s *world.Stack, r RouteRequest) *world.Route {
	i := slices.IndexFunc(s.Routes, func(e *world.Route) bool {
		return e.Persistent && e.Destination == r.key() && e.Gateway == r.Gateway.String()
	})
	if i < 0 {
		return nil
	}
	return s.Routes[i]
}

// SaveRoute enters a route into /etc/inet/static_routes; false: it was there.
func SaveRoute(tx *world.Tx, zone string, r RouteRequest) bool {
	s := stack(tx, zone)
	if saved(s, r) != nil {
		return false
	}
	if e := route(s, r); e != nil {
		e.Persistent = true
	} else {
		s.Routes = append(s.Routes, &world.Route{Destination: r.key(), Gateway: r.Gateway.String(), Persistent: true, Inactive: true})
	}
	return true
}

// UnsaveRoute takes a route out of /etc/inet/static_routes; false: it was not
// there.
func UnsaveRoute(tx *world.Tx, zone string, r RouteRequest) bool {
	s := stack(tx, zone)
	e := saved(s, r)
	if e == nil {
		return false
	}
	e.Persistent = false
	s.Routes = slices.DeleteFunc(s.Routes, func(e *world.Route) bool { return e.Inactive && !e.Persistent })
	return true
}
