package layout

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// What people have published are mostly the tables that commands print for people. This
// file reads them where there is no output for programs.

// rows are the lines of a table below its header, in the header's order; a
// cell "--" is empty.
func rows(out string, header ...string) (all [][]string) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case slices.Equal(f, header):
			all = [][]string{}
		case all != nil && len(f) == len(header):
			for i := range f {
				if f[i] == "--" {
					f[i] = ""
				}
			}
			all = append(all, f)
		}
	}
	return all
}

// linkTables are dladm show-link and show-vnic. What a VNIC lies over is a link, too.
func (l *layout) linkTables() {
	s := l.tx.State
	for _, f := range rows(l.output("dladm show-link", "dladm"), "LINK", "CLASS", "MTU", "STATE", "BRIDGE", "OVER") {
		s.Links = append(s.Links, &world.Link{Name: f[0], Class: f[1], Over: f[5], Up: f[3] == "up", Temporary: f[1] == "vnic",
			Properties: map[string]string{"mtu": f[2]}})
	}
	find := func(name, class string) *world.Link {
		i := slices.IndexFunc(s.Links, func(link *world.Link) bool { return link.Name == name })
		if i < 0 {
			i = len(s.Links)
			s.Links = append(s.Links, &world.Link{Name: name, Class: class, Up: true, Temporary: class != "phys", Properties: map[string]string{}})
		}
		return s.Links[i]
	}
	for _, f := range rows(l.output("dladm show-vnic"), "LINK", "OVER", "SPEED", "MACADDRESS", "MACADDRTYPE", "VID") {
		find(f[1], map[bool]string{true: "etherstub", false: "phys"}[f[2] == "0"])
		link := find(f[0], "vnic")
		link.Over, link.MAC, link.MACType, link.VLAN = f[1], padded(f[3]), f[4], int(number(f[5]))
	}
}

// addressTable is ipadm show-addr. Without it, the ways to the networks of interfaces have
// their addresses.
func (l *layout) addressTable() (all [][]string) {
	all = rows(l.output("ipadm show-addr", "ipadm"), "ADDROBJ", "TYPE", "STATE", "ADDR")
	if all != nil {
		return all
	}
	seen := map[string]int{}
	for line := range strings.Lines(l.output("netstat -rn")) {
		f := strings.Fields(line)
		if len(f) < 6 || strings.Contains(f[2], "G") {
			continue
		}
		source, err := netip.ParseAddr(f[1])
		if err != nil {
			continue
		}
		bits := source.BitLen()
		if p, err := netip.ParsePrefix(f[0]); err == nil {
			bits = p.Bits()
		} else if a, err := netip.ParseAddr(f[0]); err == nil && !strings.Contains(f[2], "H") {
			bits = classful(a)
		}
		family := map[bool]string{true: "/v4", false: "/v6"}[source.Is4()]
		if seen[f[5]+family]++; seen[f[5]+family] > 1 {
			family += "x" + string(rune('a'+seen[f[5]+family]%26))
		}
		all = append(all, []string{f[5] + family, "static", "ok", netip.PrefixFrom(source, bits).String()})
	}
	return all
}

// gotRoute is the default route as route -n get tells it, where there is no table.
func (l *layout) gotRoute() {
	var gateway, through string
	for line := range strings.Lines(l.output("route -n get")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "gateway":
			gateway = value
		case "interface":
			through = value
		}
	}
	if gateway != "" {
		stack := l.tx.State.Stacks[world.GlobalZone]
		stack.Routes = append(stack.Routes, &world.Route{Destination: "default", Gateway: gateway, Interface: through})
	}
}
