package opte

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// address reads an IP address (crates/opte-api/src/ip.rs).
func address(text string) netip.Addr {
	ip, err := netip.ParseAddr(text)
	cli.Simulated(err == nil && ip.Zone() == "" && !ip.Is4In6())
	return ip
}

func address6(text string) string {
	ip := address(text)
	cli.Simulated(ip.Is6())
	return ip.String()
}

// cidr reads a prefix; bits behind it are dropped.
func cidr(text string) netip.Prefix {
	p, err := netip.ParsePrefix(text)
	cli.Simulated(err == nil)
	return p.Masked()
}

// vni reads a number of 24 bits.
func vni(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 24)
	cli.Simulated(err == nil)
	return uint32(n)
}

func macAddress(text string) string {
	mac, ok := network.ParseMAC(text)
	cli.Simulated(ok)
	return mac
}

// printMAC is Display of MacAddr.
func printMAC(mac string) string { return strings.ToUpper(mac) }

// createXDE is Command::CreateXde: one family of addresses, a link id of dlmgmtd, and
// create_xde of the driver.
func (a *adm) createXDE() cli.Reply {
	p := &world.OPTEPort{
		Name: a.exactly(1)[0], MAC: macAddress(a.one("--guest-mac")), GatewayMAC: macAddress(a.one("--gateway-mac")),
		VNI: vni(a.one("--vpc-vni")), Physical: address6(a.one("--src-underlay-addr")),
	}
	ip, gateway, subnet := address(a.one("--private-ip")), address(a.one("--gateway-ip")), cidr(a.one("--vpc-subnet"))
	family := map[bool]string{true: "IPv4", false: "IPv6"}[ip.Is4()]
	switch {
	case subnet.Addr().Is4() != ip.Is4():
		return died("expected %s VPC subnet", family)
	case gateway.Is4() != ip.Is4():
		return died("expected %s gateway IP", family)
	}
	p.IP, p.Gateway, p.Subnet = ip.String(), gateway.String(), subnet.String()
	if text, has := a.maybe("--ephemeral-ip"); has {
		if address(text).Is4() != ip.Is4() {
			return died("expected %s external IP", family)
		}
		p.Ephemeral = address(text).String()
	}
	for _, text := range a.options["--floating-ip"] {
		if address(text).Is4() != ip.Is4() {
			return died("expected %s floating IP", family)
		}
		p.Floating = append(p.Floating, address(text).String())
	}
	delete(a.options, "--floating-ip")
	if why := a.snat(ip.Is4(), p); why != "" {
		return died("expected %s %s", family, why)
	}
	a.dhcp()
	mtu := 1500
	if text, has := a.maybe("--mtu"); has {
		n, err := strconv.ParseUint(text, 10, 32)
		cli.Simulated(err == nil && n >= 1280 && n <= 9000)
		mtu = int(n)
	}
	return a.makePort(p, mtu)
}

// snat reads the three options of SnatConfig, of which clap wants all or none. The driver shows none of
// them.
func (a *adm) snat(four bool, p *world.OPTEPort) (why string) {
	ip, has := a.maybe("--snat-ip")
	first, begins := a.maybe("--snat-start")
	last, ends := a.maybe("--snat-end")
	cli.Simulated(has == begins && has == ends)
	if !has {
		return ""
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, failed := strconv.ParseUint(last, 10, 16)
	cli.Simulated(err == nil && failed == nil && from <= to)
	if address(ip).Is4() != four {
		return "SNAT IP"
	}
	p.SNAT = fmt.Sprintf("%s/%d-%d", address(ip), from, to)
	return ""
}

// dhcp reads what a port tells its guest.
func (a *adm) dhcp() {
	a.maybe("--hostname")
	a.maybe("--host-domain")
	for _, list := range a.options["--dns-servers"] {
		for one := range strings.SplitSeq(list, ",") {
			address(one)
		}
	}
	delete(a.options, "--dns-servers")
	delete(a.options, "--domain-search-list")
}

func (a *adm) makePort(p *world.OPTEPort, mtu int) cli.Reply {
	o := a.tx.OPTE()
	failed := ""
	switch i := slices.IndexFunc(o.Ports, func(other *world.OPTEPort) bool { return other.VNI == p.VNI && other.MAC == p.MAC }); {
	case o.Underlay == nil:
		failed = system(invalid, "underlay not initialized")
	case i >= 0: // its field port is the new one's name
		failed = fmt.Sprintf("MacExists { port: %q, vni: Vni { inner: %d }, mac: MacAddr { inner: %s } }", p.Name, p.VNI, printMAC(p.MAC))
	}
	switch err := network.NewMiscLink(a.tx, p.Name, p.MAC, mtu); {
	case errors.Is(err, network.LinkExists):
		return died("netadm failed dlmgmtd: link id creation failed: %d", exists)
	case err != nil:
		return died("netadm failed dlmgmtd: link id creation failed: %d", invalid)
	case failed != "":
		cli.Simulated(network.DeleteLink(a.tx, network.FindLink(a.tx, p.Name)) == nil) // the link id goes again
		return refused("CreateXde", failed)
	}
	p.Rules = map[string]*world.OPTERules{
		"firewall in": {}, "firewall out": {}, "router in": {},
		"router out": {Next: 1, Rules: []world.OPTERule{{Predicates: []string{"any(inner.ip.dst=224.0.0.0/4,inner.ip6.dst=ff00::/8)"}, Action: "Allow"}}},
	}
	o.Ports = append(o.Ports, p)
	network.SetMapping(a.tx, world.OPTEMapping{VNI: p.VNI, IP: p.IP, MAC: p.MAC, Physical: p.Physical})
	return cli.Reply{}
}

// deleteXDE is OpteHdl::delete_xde. Other links have no port.
func (a *adm) deleteXDE() cli.Reply {
	name := a.exactly(1)[0]
	if network.FindLink(a.tx, name) == nil {
		return died("netadm failed not found: link %s not found", name)
	}
	p := network.Port(a.tx, name)
	if p == nil {
		return refused("DeleteXde", portNotFound(name))
	}
	if network.DeletePort(a.tx, p) != nil {
		return refused("DeleteXde", system(busy, fmt.Sprintf("failed to destroy DLS devnet: %d", busy)))
	}
	return cli.Reply{}
}

// listPorts is print_port_header and print_port. Ports named opteN come in the order of N; without
// such a name they are compared as texts.
func (a *adm) listPorts() cli.Reply {
	a.exactly(0)
	ports := slices.Clone(a.tx.OPTE().Ports)
	slices.SortStableFunc(ports, func(x, y *world.OPTEPort) int {
		n, numbered := optNumber(x.Name)
		m, both := optNumber(y.Name)
		if numbered && both {
			return cmp.Compare(n, m)
		}
		return strings.Compare(x.Name, y.Name)
	})
	return printed(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "LINK\tMAC ADDRESS\tIPv4 ADDRESS\tEPHEMERAL IPv4\tFLOATING IPv4\tIPv6 ADDRESS\tEXTERNAL IPv6\tFLOATING IPv6\tSTATE")
		for _, p := range ports {
			a.printPort(w, p)
		}
	})
}

func optNumber(name string) (uint64, bool) {
	text, found := strings.CutPrefix(name, "opte")
	n, err := strconv.ParseUint(text, 10, 64)
	return n, found && err == nil
}

// printPort has a row for each floating address, and then an empty one if there are several.
func (a *adm) printPort(w *tabwriter.Writer, p *world.OPTEPort) {
	const none = "None"
	own := []string{p.IP, cmp.Or(p.Ephemeral, none), none}
	if len(p.Floating) > 0 {
		own[2] = p.Floating[0]
	}
	other := []string{none, none, none}
	state := "ready"
	if l := network.FindLink(a.tx, p.Name); l.Zone != "" && a.opened(l) {
		state = "running"
	}
	four, six := own, other
	if !address(p.IP).Is4() {
		four, six = other, own
	}
	fmt.Fprintln(w, strings.Join(slices.Concat([]string{p.Name, printMAC(p.MAC)}, four, six, []string{state}), "\t"))
	for _, ip := range p.Floating[min(1, len(p.Floating)):] {
		cells := make([]string, 9)
		cells[4] = ip
		if !address(ip).Is4() {
			cells[4], cells[7] = "", ip
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if len(p.Floating) > 1 {
		fmt.Fprintln(w, strings.Repeat("\t", 8))
	}
}

// opened says whether a client has started the link: a VM's viona does (xde_mc_start).
func (a *adm) opened(l *world.Link) bool {
	return slices.ContainsFunc(a.tx.State.Processes, func(p *world.Process) bool {
		return p.VM != nil && p.Zone == l.Zone && slices.Contains(p.VM.Links, l.Name) && world.At(p.VM.Timeline, a.tx.Now).State != "Destroyed"
	})
}

// printed is what is written through a tabwriter with two blanks between columns: that of the
// crate tabwriter has elastic tab stops as Go's has.
func printed(write func(*tabwriter.Writer)) cli.Reply {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 2, 0, 2, ' ', 0)
	write(w)
	w.Flush()
	return cli.Reply{Stdout: b.String()}
}
