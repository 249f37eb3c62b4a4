package network

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// NewAddress is what ipadm(8) create-addr asks for.
type NewAddress struct {
	Object    string // net0/v4
	Type      string // static, dhcp, addrconf
	Address   string // of a static one, with or without a prefix length
	Temporary bool
	SlowProbe time.Duration // how much longer than usual duplicate detection takes
	NoLease   bool          // no DHCP server answers
}

// validObject says whether a name can be that of an address object:
// INTERFACE/NAME, the second a letter and then letters and digits, shorter
// than 32 bytes (i_ipadm_is_user_aobjname_valid in
// usr/src/lib/libipadm/common/ipadm_addr.c).
func validObject(object string) bool {
	ifname, name, ok := strings.Cut(object, "/")
	return ok && ValidLinkName(ifname) && name != "" && len(name) <= 31 && isLetter(name[0]) &&
		strings.IndexFunc(name, func(r rune) bool { return r > 127 || !isLetter(byte(r)) && !isDigit(byte(r)) }) < 0
}

// parseStatic reads ADDRESS/LENGTH, or an IPv6 address without a length, which is
// 64 (i_ipadm_get_default_prefixlen, with no netmasks(5) map).
func parseStatic(text string) netip.Prefix {
	if a, err := netip.ParseAddr(text); err == nil && a.Is6() && !a.IsLinkLocalUnicast() {
		text += "/64"
	}
	p, err := netip.ParsePrefix(text)
	world.Simulated(err == nil && !p.Addr().IsUnspecified())
	return p
}

// CreateAddress makes an address object (ipadm_create_addr in
// usr/src/lib/libipadm/common/ipadm_addr.c), and its interface if that is not
// there; a failure removes the interface again. The object is returned as
// it is now: duplicate detection and DHCP follow its timeline.
func CreateAddress(tx *world.Tx, zone string, n NewAddress) (*world.Address, error) {
	world.Simulated(validObject(n.Object))
	if n.Type == "static" {
		parseStatic(n.Address) // refuses
	}
	ifname, _, _ := strings.Cut(n.Object, "/")
	s := stack(tx, zone)
	existing := find(s, ifname)
	switch {
	case existing != nil && existing.Temporary && !n.Temporary:
		return nil, IPTemporary
	case FindAddress(tx, zone, n.Object) != nil:
		return nil, IPObjectExists
	}
	if existing == nil {
		if err := CreateInterface(tx, zone, ifname, n.Temporary); err != nil {
			return nil, err
		}
	}
	a := &world.Address{Object: n.Object, Type: n.Type, Temporary: n.Temporary}
	if err := configure(tx, zone, a, n); err != nil {
		if existing == nil {
			DeleteInterface(tx, zone, ifname) // it is there: it was just made
		}
		return nil, err
	}
	s.Addresses = append(s.Addresses, a)
	return a, nil
}

// configure gives the object its address and writes its future down.
func configure(tx *world.Tx, zone string, a *world.Address, n NewAddress) error {
	switch n.Type {
	case "static":
		return configureStatic(tx, zone, a, n)
	case "dhcp":
		configureDHCP(tx, zone, a, n.NoLease)
		return nil
	}
	return configureLinkLocal(tx, zone, a, n)
}

func configureStatic(tx *world.Tx, zone string, a *world.Address, n NewAddress) error {
	p := parseStatic(n.Address)
	switch {
	case p.Addr().Is6() && !p.Addr().IsLinkLocalUnicast() && interfaceOf(a) != Loopback && !hasLinkLocal(tx, zone, interfaceOf(a)):
		return IPNotAvailable // the first IPv6 address of an interface must be link-local (ip_sioctl_addr in usr/src/uts/common/inet/ip/ip_if.c)
	case holds(tx, zone, p.Addr()):
		return IPAddressInUse
	}
	a.Address = p.String()
	a.Timeline = probe(tx, zone, a, n.SlowProbe)
	return nil
}

// configureLinkLocal makes the address that an interface gets from its MAC
// (RFC 4291, appendix A). No router advertises a prefix here, so it stays the
// only one of the object.
func configureLinkLocal(tx *world.Tx, zone string, a *world.Address, n NewAddress) error {
	for _, other := range tx.State.Stacks[zone].Addresses {
		if interfaceOf(other) == interfaceOf(a) && other.Type == "addrconf" {
			return IPAddrconfExists
		}
	}
	a.Address = linkLocal(LinkIn(tx, zone, interfaceOf(a)).MAC).String() + "/10"
	a.Timeline = probe(tx, zone, a, n.SlowProbe)
	return nil
}

func linkLocal(mac string) netip.Addr {
	m, _ := hex.DecodeString(strings.ReplaceAll(mac, ":", ""))
	m = append(m, make([]byte, 6)...)
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// is compares texts: each address is written as netip writes it, and a sled has thousands.
func is(a *world.Address, text string) bool {
	length, found := strings.CutPrefix(a.Address, text)
	return found && strings.HasPrefix(length, "/")
}

// FindAddress looks an address object of a zone up, or gives nil.
func FindAddress(tx *world.Tx, zone, object string) *world.Address {
	for _, a := range stack(tx, zone).Addresses {
		if a.Object == object {
			return a
		}
	}
	return nil
}

// DeleteAddress removes an address object, the persistent configuration of it
// too.
func DeleteAddress(tx *world.Tx, zone, object string) error {
	if FindAddress(tx, zone, object) == nil {
		return IPNotFound
	}
	s := stack(tx, zone)
	s.Addresses = slices.DeleteFunc(s.Addresses, func(a *world.Address) bool { return a.Object == object })
	return nil
}

// AddressView is an address object as ipadm(8) show-addr prints it.
type AddressView struct{ Object, Type, State, Address string }

// Addresses lists the address objects of a zone: those of IPv4 first, then
// those of IPv6, each in the order of the interfaces
// (i_ipadm_get_all_addr_info walks the logical interfaces of either family).
func Addresses(tx *world.Tx, zone string) []AddressView {
	s := stack(tx, zone)
	var views []AddressView
	for _, six := range []bool{false, true} {
		for _, i := range s.Interfaces {
			for _, a := range s.Addresses {
				if interfaceOf(a) == i.Name && isIPv6(a) == six {
					views = append(views, viewAddress(tx, zone, a))
				}
			}
		}
	}
	return views
}

func isIPv6(a *world.Address) bool {
	p, err := netip.ParsePrefix(a.Address)
	return err == nil && p.Addr().Is6()
}

func viewAddress(tx *world.Tx, zone string, a *world.Address) AddressView {
	v := AddressView{Object: a.Object, Type: a.Type, Address: a.Address}
	v.State = world.At(a.Timeline, tx.Now).State
	switch p, err := netip.ParsePrefix(a.Address); {
	case v.State == "":
		v.State = "disabled"
	case a.Type == "dhcp" && v.State == "down":
		v.Address = "?"
	case err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast():
		v.Address = fmt.Sprintf("%s%%%s/%d", p.Addr(), interfaceOf(a), p.Bits())
	}
	return v
}

// AddressOwner is the zone whose stack answers for an address now: it has it
// in state ok.
func AddressOwner(tx *world.Tx, addr netip.Addr) (zone string, ok bool) {
	text := addr.String()
	for zone, s := range tx.State.Stacks {
		for _, a := range s.Addresses {
			if is(a, text) && interfaceOf(a) != Loopback && world.At(a.Timeline, tx.Now).State == "ok" {
				return zone, true
			}
		}
	}
	return "", false
}
