package vnic

import (
	"strconv"

	"github.com/sledctl/sledctl/host"
)

func query(args ...string) host.Command {
	return host.Command{Program: "dladm", Args: args, ReadOnly: true}
}

func dladm(args ...string) host.Command { return host.Command{Program: "dladm", Args: args} }

// The two listings that together are List. Neither opens a link. show-linkprop would
// tell the zones of all links on every distribution, and holds each while it looks
// (show_linkprop_onelink in usr/src/cmd/dladm/dladm.c): a zone that boots meanwhile
// does not get its link.
//
// Guess listings-open-no-link: neither show-link nor show-vnic opens a link.
// Check: `truss -t ioctl,open dladm show-vnic -p -o link`
func listLinksCommand() host.Command {
	return query("show-link", "-p", "-o", "link,class,mtu,state")
}

// listVNICsCommand: ZONE is a column on OmniOS and SmartOS only.
func listVNICsCommand(zones bool) host.Command {
	fields := "link,over,macaddress,vid"
	if zones {
		fields += ",zone"
	}
	return query("show-vnic", "-p", "-o", fields)
}

// showZoneCommand holds the link.
//
// Guess linkprop-opens-links: `dladm show-linkprop` opens each link that it shows, which keeps it
// from moving into a zone meanwhile.
// Check: `truss -t open dladm show-linkprop -p zone net0`
// State: settled by usr/src/cmd/dladm/dladm.c:6937, usr/src/uts/common/io/dls/dls_mgmt.c:1705 and
// dls.c:61-67
//
// Guess every-link-has-zone: links of every class have the property `zone`.
// Check: `dladm show-linkprop -p zone`
// State: settled by usr/src/lib/libdladm/common/linkprop.c
func showZoneCommand(name string) host.Command {
	return query("show-linkprop", "-c", "-p", "zone", "-o", "value", name)
}

func listAddressesCommand() host.Command {
	return query("show-phys", "-m", "-p", "-o", "link,address")
}

// listAggregationsCommand: no shorter form of show-aggr has the address of one
// that takes its from a port.
func listAggregationsCommand() host.Command {
	return query("show-aggr", "-x", "-p", "-o", "link,port,address")
}

func showLinkCommand(name string) host.Command {
	return query("show-link", "-p", "-o", "link,class", name)
}

func showVNICCommand(name string) host.Command {
	return query("show-vnic", "-p", "-o", "over,macaddress", name)
}

func showMTUCommand(name string) host.Command {
	return query("show-linkprop", "-c", "-p", "mtu", "-o", "value", name)
}

// createCommand leaves the MTU out: create-vnic -p mtu= is not always applied
// (illumos 15695).
func createCommand(c Create) host.Command {
	args := []string{"create-vnic", "-t", "-l", c.Over, "-m", c.MAC}
	if c.VLAN != 0 {
		args = append(args, "-v", strconv.Itoa(c.VLAN))
	}
	return dladm(append(args, c.Name)...)
}

func setMTUCommand(name string, mtu int) host.Command {
	return dladm("set-linkprop", "-t", "-p", "mtu="+strconv.Itoa(mtu), name)
}

// showLimitsCommand holds the link. That keeps one which a zone has from no way back.
func showLimitsCommand(name string) host.Command {
	return query("show-linkprop", "-c", "-p", "protection,allowed-ips,maxbw", "-o", "property,value", name)
}

// setPropertyCommand sets one property: of several dladm would tell the last one's
// status only.
func setPropertyCommand(name, property, value string) host.Command {
	return dladm("set-linkprop", "-t", "-p", property+"="+value, name)
}

// resetPropertyCommand gives one property its default again.
func resetPropertyCommand(name, property string) host.Command {
	return dladm("reset-linkprop", "-t", "-p", property, name)
}

func deleteCommand(name string) host.Command { return dladm("delete-vnic", name) }

func createEtherstubCommand(name string) host.Command {
	return dladm("create-etherstub", "-t", name)
}

func deleteEtherstubCommand(name string) host.Command { return dladm("delete-etherstub", name) }
