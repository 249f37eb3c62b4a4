package network

import (
	"hash/fnv"
	"net/netip"
	"slices"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// configureDHCP writes down when the lease comes. Until then the object has
// no address and is down. A server answers on untagged physical links and
// aggregations only: nobody runs one behind an etherstub.
func configureDHCP(tx *world.Tx, zone string, a *world.Address, silent bool) {
	a.Timeline = []world.Timepoint{{State: "down", From: tx.Now}}
	lower := domainOf(tx, zone, interfaceOf(a))
	if root := FindLink(tx, lower.link); silent || lower.vlan != 0 || root == nil || root.Class != "phys" && root.Class != "aggr" {
		return
	}
	a.Address = lease(tx, lower, a.Object+zone).String()
	a.Timeline = append(a.Timeline, world.Timepoint{State: "ok", From: tx.Now.Add(tx.Latency(world.StepDHCP))})
}

// lease picks a free address of 192.168.77.0/24, the network that the global
// zone is on: the same one for the same client if it can.
func lease(tx *world.Tx, d domain, client string) netip.Prefix {
	h := fnv.New32a()
	h.Write([]byte(client))
	for i := h.Sum32(); ; i++ {
		a := netip.AddrFrom4([4]byte{192, 168, 77, byte(100 + i%150)})
		if !takenIn(tx, d, a) {
			return netip.PrefixFrom(a, 24)
		}
	}
}

// probe is the future of an address that was just configured: tentative while
// duplicate address detection runs, then ok, or duplicate if somebody on the
// same network has it.
func probe(tx *world.Tx, zone string, a *world.Address, slower time.Duration) []world.Timepoint {
	outcome := "ok"
	if p, err := netip.ParsePrefix(a.Address); err == nil && takenIn(tx, domainOf(tx, zone, interfaceOf(a)), p.Addr()) {
		outcome = "duplicate"
	}
	if interfaceOf(a) == Loopback {
		return []world.Timepoint{{State: "ok", From: tx.Now}}
	}
	return []world.Timepoint{
		{State: "tentative", From: tx.Now},
		{State: outcome, From: tx.Now.Add(tx.Latency(world.StepAddress) + slower)},
	}
}

// domain is where a packet without a router goes: a lower link and a VLAN.
type domain struct {
	link string
	vlan int
}

func domainOf(tx *world.Tx, zone, name string) domain {
	l := LinkIn(tx, zone, name)
	switch {
	case l == nil:
		return domain{link: zone + " " + name} // no other's
	case l.Over != "":
		return domain{l.Over, l.VLAN}
	}
	return domain{link: l.Name}
}

// takenIn says whether some stack answers for the address in that domain.
func takenIn(tx *world.Tx, d domain, addr netip.Addr) bool {
	text := addr.String()
	for zone, s := range tx.State.Stacks {
		for _, a := range s.Addresses {
			if !is(a, text) {
				continue
			}
			if state := world.At(a.Timeline, tx.Now).State; (state == "ok" || state == "tentative" || a.Type == "dhcp") && domainOf(tx, zone, interfaceOf(a)) == d {
				return true
			}
		}
	}
	return false
}

// holds says whether this very stack has the address up: the kernel then
// refuses it at once (ip_addr_availability_check in
// usr/src/uts/common/inet/ip/ip_if.c).
func holds(tx *world.Tx, zone string, addr netip.Addr) bool {
	text := addr.String()
	return slices.ContainsFunc(tx.State.Stacks[zone].Addresses, func(a *world.Address) bool {
		state := world.At(a.Timeline, tx.Now).State
		return is(a, text) && (state == "ok" || state == "tentative")
	})
}

func hasLinkLocal(tx *world.Tx, zone, ifname string) bool {
	return slices.ContainsFunc(tx.State.Stacks[zone].Addresses, func(a *world.Address) bool {
		p, err := netip.ParsePrefix(a.Address)
		return err == nil && interfaceOf(a) == ifname && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()
	})
}
