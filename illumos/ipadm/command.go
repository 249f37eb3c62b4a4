package ipadm

import (
	"net/netip"

	"github.com/sledctl/sledctl/host"
)

func query(zone, program string, args ...string) host.Command {
	return host.Command{Program: program, Args: args, Zone: zone, ReadOnly: true}
}

func ipadm(zone string, args ...string) host.Command {
	return host.Command{Program: "ipadm", Args: args, Zone: zone}
}

func listAddressesCommand(zone string) host.Command {
	return query(zone, "ipadm", "show-addr", "-p", "-o", "addrobj,type,state,addr")
}

func showAddressCommand(zone, object string) host.Command {
	return query(zone, "ipadm", "show-addr", "-p", "-o", "addrobj,type,state,addr", object)
}

// listRoutesCommand: route(8) has no listing.
func listRoutesCommand(zone string) host.Command { return query(zone, "netstat", "-rn") }

func defaultRouteCommand(family string) host.Command {
	return query("", "route", "-n", "get", family, "default")
}

func deleteInterfaceCommand(zone, link string) host.Command { return ipadm(zone, "delete-if", link) }

// createAddressCommand. A dhcp address is not waited for here: a command that
// changes something must end soon, because it is never killed. AwaitAddress
// waits.
//
// Guess dhcp-without-waiting: `create-addr -T dhcp -w 0` returns at once and in silence, and the
// object shows "down" and "?" until its lease (ipadm_addr.c).
// Check: that line in a zone; `ipadm show-addr`
func createAddressCommand(s CreateAddress) host.Command {
	args := []string{"create-addr", "-t", "-T", s.Type}
	switch s.Type {
	case Static:
		args = append(args, "-a", s.Address)
	case DHCP:
		args = append(args, "-w", "0")
	}
	return ipadm(s.Zone, append(args, s.Object)...)
}

func deleteAddressCommand(zone, object string) host.Command {
	return ipadm(zone, "delete-addr", object)
}

// routeCommand names the family before each address, as route(8) wants it.
func routeCommand(verb, zone, destination, gateway, link string) host.Command {
	family := "-inet"
	if a, err := netip.ParseAddr(gateway); err == nil && a.Is6() {
		family = "-inet6"
	}
	args := []string{verb, family, destination, family, gateway}
	if link != "" {
		args = append(args, "-ifp", link)
	}
	return host.Command{Program: "route", Args: args, Zone: zone}
}
