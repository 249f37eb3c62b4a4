package opte

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// mapping are the operands of set-v2p and clear-v2p.
func (a *adm) mapping() world.OPTEMapping {
	w := a.exactly(4)
	return world.OPTEMapping{IP: address(w[0]).String(), MAC: macAddress(w[1]), Physical: address6(w[2]), VNI: vni(w[3])}
}

func (a *adm) setV2P() cli.Reply {
	network.SetMapping(a.tx, a.mapping())
	return cli.Reply{}
}

// clearV2P asks only for the address and the VNI, and is content if there is nothing
// (VpcMappings::del in lib/oxide-vpc/src/engine/overlay.rs).
func (a *adm) clearV2P() cli.Reply {
	m := a.mapping()
	if a.tx.State.OPTE != nil {
		network.ClearMapping(a.tx, m.VNI, m.IP)
	}
	return cli.Reply{}
}

// dumpV2P is print_v2p (lib/oxide-vpc/src/print.rs). A VPC that had a mapping once is listed.
func (a *adm) dumpV2P() cli.Reply {
	a.exactly(0)
	of := func(vpc uint32) (found []world.OPTEMapping) {
		for _, m := range a.tx.OPTE().V2P {
			if m.VNI == vpc {
				found = append(found, m)
			}
		}
		return found
	}
	return printed(func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Virtual to Physical Mappings\n%s\n", strings.Repeat("=", 70))
		for _, vpc := range slices.Sorted(slices.Values(a.tx.OPTE().VPCs)) {
			fmt.Fprintf(w, "\nVPC %d\n%s\n", vpc, strings.Repeat("-", 70))
			for _, family := range families() {
				fmt.Fprintf(w, "\n%s mappings\n%s\nVPC_IP\tVPC MAC ADDR\tUNDERLAY IP\n", family, strings.Repeat("-", 70))
				for _, m := range sorted(of(vpc), family, func(m world.OPTEMapping) netip.Addr { return address(m.IP) }) {
					fmt.Fprintf(w, "%s\t%s\t%s\n", m.IP, printMAC(m.MAC), m.Physical)
				}
				w.Flush()
			}
		}
	})
}

func families() []string { return []string{"IPv4", "IPv6"} }

// sorted are those of one family, in the order of their addresses.
func sorted[T any](all []T, family string, at func(T) netip.Addr) (found []T) {
	for _, one := range all {
		if at(one).Is4() == (family == "IPv4") {
			found = append(found, one)
		}
	}
	slices.SortStableFunc(found, func(x, y T) int { return at(x).Compare(at(y)) })
	return found
}

// tunnels are the operands of set-v2b and clear-v2b.
func (a *adm) tunnels() (prefix string, ends []string) {
	cli.Simulated(len(a.operands) > 1)
	for _, text := range a.operands[1:] {
		ends = append(ends, address6(text))
	}
	return cidr(a.operands[0]).String(), ends
}

// setV2B adds tunnels to those that the prefix has (Virt2Boundary::set).
func (a *adm) setV2B() cli.Reply {
	prefix, ends := a.tunnels()
	o := a.tx.KeepOPTE()
	i := slices.IndexFunc(o.V2B, func(b world.OPTEBoundary) bool { return b.Prefix == prefix })
	if i < 0 {
		o.V2B = append(o.V2B, world.OPTEBoundary{Prefix: prefix})
		i = len(o.V2B) - 1
	}
	all := append(o.V2B[i].Tunnels, ends...)
	slices.SortFunc(all, func(x, y string) int { return address(x).Compare(address(y)) })
	o.V2B[i].Tunnels = slices.Compact(all)
	return cli.Reply{}
}

// clearV2B removes tunnels; a missing one is no error (Virt2Boundary::remove).
func (a *adm) clearV2B() cli.Reply {
	prefix, ends := a.tunnels()
	o := a.tx.OPTE()
	for i := range o.V2B {
		if o.V2B[i].Prefix == prefix {
			o.V2B[i].Tunnels = slices.DeleteFunc(o.V2B[i].Tunnels, func(end string) bool { return slices.Contains(ends, end) })
		}
	}
	o.V2B = slices.DeleteFunc(o.V2B, func(b world.OPTEBoundary) bool { return len(b.Tunnels) == 0 })
	return cli.Reply{}
}

// boundaryVNI is BOUNDARY_SERVICES_VNI.
const boundaryVNI = 99

// dumpV2B is print_v2b.
func (a *adm) dumpV2B() cli.Reply {
	a.exactly(0)
	return printed(func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Virtual to Boundary Mappings\n%s\n", strings.Repeat("=", 70))
		for _, family := range families() {
			fmt.Fprintf(w, "\n%s mappings\n%s\nTUNNELED PREFIX\tBOUNDARY IP\tVNI\n", family, strings.Repeat("-", 70))
			for _, b := range sorted(a.tx.OPTE().V2B, family, func(b world.OPTEBoundary) netip.Addr { return cidr(b.Prefix).Addr() }) {
				for _, end := range b.Tunnels {
					fmt.Fprintf(w, "%s\t%s\t%d\n", b.Prefix, end, boundaryVNI)
				}
			}
			if family == "IPv4" {
				w.Flush()
			}
		}
		fmt.Fprintln(w)
	})
}
