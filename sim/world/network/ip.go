package network

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// This file holds the IP stacks: one for the global zone and one for each
// zone with an exclusive stack that the kernel knows. Persistent interfaces
// and addresses of a zone outlive its halt, as /etc/ipadm/ipadm.conf does.

// IPStatus is a status of libipadm, as its text (ipadm_errors in
// usr/src/lib/libipadm/common/libipadm.c).
type IPStatus string

// The statuses that the simulated stacks give.
const (
	IPIfExists       IPStatus = "Interface already exists"
	IPObjectExists   IPStatus = "Address object already exists"
	IPAddrconfExists IPStatus = "Addrconf already in progress"
	IPNoInterface    IPStatus = "Interface does not exist"
	IPBadArg         IPStatus = "Invalid argument provided"
	IPNoLink         IPStatus = "Could not open DLPI link"
	IPNotFound       IPStatus = "Object not found"
	IPIfInUse        IPStatus = "Interface already in use"
	IPAddressInUse   IPStatus = "Address already in use"
	IPNotAvailable   IPStatus = "Can't assign requested address"
	IPTemporary      IPStatus = "Persistent operation on temporary object"
	IPNoDaemon       IPStatus = "Could not communicate with ipmgmtd"
)

// Error is the text.
func (s IPStatus) Error() string { return string(s) }

// Loopback is the interface that every stack has.
const Loopback = "lo0"

// stack is a zone's stack, made if it does not exist. The caller may change it.
func stack(tx *world.Tx, zone string) *world.Stack {
	if !tx.Write && tx.State.Stacks[zone] == nil {
		return &world.Stack{}
	}
	tx.TouchStack(zone)
	if tx.State.Stacks == nil {
		tx.State.Stacks = map[string]*world.Stack{}
	}
	if tx.State.Stacks[zone] == nil {
		tx.State.Stacks[zone] = &world.Stack{}
	}
	return tx.State.Stacks[zone]
}

// StartStack makes the stack of a zone that gets ready: the loopback
// interface is there, and what was made persistently comes back if its link
// does.
func StartStack(tx *world.Tx, zone string) {
	s := stack(tx, zone)
	if find(s, Loopback) == nil {
		up := []world.Timepoint{{State: "ok", From: tx.Now}}
		s.Interfaces = slices.Insert(s.Interfaces, 0, &world.Interface{Name: Loopback})
		s.Addresses = slices.Insert(s.Addresses, 0,
			&world.Address{Object: "lo0/v4", Type: "static", Address: "127.0.0.1/8", Timeline: up},
			&world.Address{Object: "lo0/v6", Type: "static", Address: "::1/128", Timeline: up})
	}
	for _, a := range s.Addresses {
		if interfaceOf(a) == Loopback || len(a.Timeline) != 0 || LinkIn(tx, zone, interfaceOf(a)) == nil {
			continue
		}
		if a.Type == "dhcp" {
			configureDHCP(tx, zone, a, false)
		} else {
			a.Timeline = probe(tx, zone, a, 0)
		}
	}
}

// ClearStack takes a zone's stack down, at halt or reboot: what was temporary
// is forgotten, the rest is disabled.
func ClearStack(tx *world.Tx, zone string) {
	tx.TouchStack(zone)
	s := tx.State.Stacks[zone]
	if s == nil {
		return
	}
	s.Interfaces = slices.DeleteFunc(s.Interfaces, func(i *world.Interface) bool { return i.Temporary || i.Name == Loopback })
	s.Addresses = slices.DeleteFunc(s.Addresses, func(a *world.Address) bool { return a.Temporary || interfaceOf(a) == Loopback })
	s.Routes = slices.DeleteFunc(s.Routes, func(r *world.Route) bool { return !r.Persistent })
	for _, r := range s.Routes {
		r.Inactive = zone != world.GlobalZone
	}
	for _, a := range s.Addresses {
		a.Timeline = nil
	}
	if zone != world.GlobalZone && len(s.Interfaces) == 0 && len(s.Addresses) == 0 && len(s.Routes) == 0 {
		delete(tx.State.Stacks, zone)
	}
}

// DropStack forgets a zone's stack with all that was persistent: the files
// that held it are gone with the zone's root.
func DropStack(tx *world.Tx, zone string) {
	tx.TouchStack(zone)
	delete(tx.State.Stacks, zone)
}

// find is the interface of that name, or nil.
func find(s *world.Stack, name string) *world.Interface {
	if s == nil {
		return nil
	}
	for _, i := range s.Interfaces {
		if i.Name == name {
			return i
		}
	}
	return nil
}

// LinkPlumbed says whether IP uses a link in a zone.
func LinkPlumbed(tx *world.Tx, zone, name string) bool {
	return find(tx.State.Stacks[zone], name) != nil
}

// Interfaces lists a zone's interfaces, loopback first, in the order of their
// making.
func Interfaces(tx *world.Tx, zone string) []*world.Interface {
	return stack(tx, zone).Interfaces
}

// FindInterface looks an interface of a zone up, or gives nil.
func FindInterface(tx *world.Tx, zone, name string) *world.Interface {
	return find(tx.State.Stacks[zone], name)
}

// ipmgmtd is the service whose daemon every ipadm(8) talks to.
const ipmgmtd = "svc:/network/ip-interface-management:default"

// CheckIPDaemon refuses while ipmgmtd(8) of the zone is not running.
func CheckIPDaemon(tx *world.Tx, zone string) error {
	if r := tx.SMF(zone); r != nil {
		if service := r.Instances[ipmgmtd]; service != nil && world.At(service.Timeline, tx.Now).State == "online" {
			return nil
		}
	}
	return IPNoDaemon
}

// CreateInterface plumbs a link for IPv4 and IPv6 (i_ipadm_plumb_if in
// usr/src/lib/libipadm/common/ipadm_if.c). A name can be an interface's that can be
// a link's: at most 31 bytes, with a number at the end (ifparse_ifspec in
// usr/src/lib/libinetutil/common/ifspec.c).
func CreateInterface(tx *world.Tx, zone, name string, temporary bool) error {
	world.Simulated(ValidLinkName(name))
	s := stack(tx, zone)
	if find(s, name) != nil {
		return IPIfExists
	}
	link := LinkIn(tx, zone, name)
	switch {
	case link == nil || link.Class == "etherstub":
		return IPNoLink
	case zone == world.GlobalZone && link.Zone != "":
		return IPIfInUse
	case link.Temporary && !temporary:
		return IPTemporary
	}
	s.Interfaces = append(s.Interfaces, &world.Interface{Name: name, Temporary: temporary})
	return nil
}

// DeleteInterface unplumbs an interface and forgets all addresses on it, the
// persistent ones too, and the routes through it.
func DeleteInterface(tx *world.Tx, zone, name string) error {
	s := tx.State.Stacks[zone]
	if find(s, name) == nil {
		return IPNoInterface
	}
	tx.TouchStack(zone)
	s.Interfaces = slices.DeleteFunc(s.Interfaces, func(i *world.Interface) bool { return i.Name == name })
	s.Addresses = slices.DeleteFunc(s.Addresses, func(a *world.Address) bool { return interfaceOf(a) == name })
	for _, r := range s.Routes {
		r.Inactive = r.Inactive || r.Interface == name
	}
	s.Routes = slices.DeleteFunc(s.Routes, func(r *world.Route) bool { return r.Inactive && !r.Persistent })
	return nil
}

// InterfaceMTU is the MTU of an interface for "ipv4" or "ipv6": that of its
// link unless it was set smaller.
func InterfaceMTU(tx *world.Tx, zone, name, protocol string) int {
	i := FindInterface(tx, zone, name)
	if i == nil || i.Name == Loopback {
		return 8232 // usr/src/uts/common/inet/ip.h, IP_LOOPBACK_MTU
	}
	link := etherMTU
	if l := LinkIn(tx, zone, name); l != nil {
		link = LinkMTU(tx, l)
	}
	if n, err := strconv.Atoi(i.Properties[protocol+" mtu"]); err == nil {
		return min(n, link)
	}
	return link
}

// SetInterfaceMTU sets it. IPv4 needs 68 bytes, IPv6 1280, and neither more
// than the link carries (ip_sioctl_mtu in usr/src/uts/common/inet/ip/ip_if.c).
//
// Guess interface-mtu-refusal-text: an MTU that the link does not carry is "Invalid argument
// provided"; the real check may say "Value is outside the allowed range".
// Check: that command
func SetInterfaceMTU(tx *world.Tx, zone, name, protocol string, mtu int) error {
	i := FindInterface(tx, zone, name)
	if i == nil {
		return IPNoInterface
	}
	least := map[string]int{"ipv4": 68, "ipv6": 1280}[protocol]
	link := LinkIn(tx, zone, name)
	if link == nil || mtu < least || mtu > LinkMTU(tx, link) {
		return IPBadArg
	}
	tx.TouchStack(zone)
	if i.Properties == nil {
		i.Properties = map[string]string{}
	}
	i.Properties[protocol+" mtu"] = strconv.Itoa(mtu)
	return nil
}

// interfaceOf is the interface of an address object.
func interfaceOf(a *world.Address) string {
	name, _, _ := strings.Cut(a.Object, "/")
	return name
}
