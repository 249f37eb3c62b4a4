package layout

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// links are the datalinks. Where show-vnic has no ZONE, zones() says which VNICs a zone has.
func (l *layout) links() {
	type vnic struct {
		over, mac, zone string
		vlan            int
	}
	vnics, addresses, ports := map[string]vnic{}, map[string]string{}, map[string][]string{}
	for _, f := range parsable(l.output("dladm show-vnic -p -o link,over,macaddress,vid"), 4) {
		vnics[f[0]] = vnic{over: f[1], mac: padded(f[2]), vlan: int(number(f[3]))}
	}
	for _, f := range parsable(l.output("dladm show-vnic -p -o link,over,macaddress,vid,zone"), 5) {
		vnics[f[0]] = vnic{f[1], padded(f[2]), f[4], int(number(f[3]))}
	}
	for _, f := range parsable(l.output("dladm show-phys -m -p -o link,address"), 2) {
		addresses[f[0]] = padded(f[1])
	}
	for _, f := range parsable(l.output("dladm show-aggr -x -p -o link,port,address"), 3) {
		if f[1] == "" {
			addresses[f[0]] = padded(f[2])
		} else {
			ports[f[0]] = append(ports[f[0]], f[1])
		}
	}
	l.tx.State.Links = nil
	for _, f := range parsable(l.output("dladm show-link -p -o link,class,mtu,state"), 4) {
		link := &world.Link{Name: f[0], Class: f[1], MAC: addresses[f[0]], Up: f[3] == "up", Properties: map[string]string{"mtu": f[2]}}
		switch v := vnics[f[0]]; f[1] {
		case "vnic":
			link.Over, link.MAC, link.VLAN, link.Zone, link.MACType, link.Temporary = v.over, v.mac, v.vlan, v.zone, "fixed", true
		case "aggr":
			link.Over = strings.Join(ports[f[0]], ",")
		case "phys":
			link.MACType = "factory, slot 1"
		case "etherstub":
			link.Temporary = true
		default:
			l.note("link %s of class %s: what it lies over", f[0], f[1])
		}
		l.tx.State.Links = append(l.tx.State.Links, link)
	}
	if len(l.tx.State.Links) == 0 {
		l.linkTables()
	}
}

// padded is a MAC address with two digits in each group.
func padded(mac string) string {
	groups := strings.Split(mac, ":")
	for i, g := range groups {
		if len(g) == 1 {
			groups[i] = "0" + g
		}
	}
	return strings.Join(groups, ":")
}

// addresses are the address objects of the global zone.
func (l *layout) addresses() {
	l.tx.TouchStack(world.GlobalZone)
	stack := &world.Stack{}
	l.tx.State.Stacks[world.GlobalZone] = stack
	told := parsable(l.output("ipadm show-addr -p -o addrobj,type,state,addr"), 4)
	if told == nil {
		told = l.addressTable()
	}
	for _, f := range told {
		name, _, _ := strings.Cut(f[0], "/")
		address := strings.Replace(f[3], "%"+name, "", 1)
		temporary := slices.ContainsFunc(l.tx.State.Links, func(link *world.Link) bool { return link.Name == name && link.Temporary })
		if !slices.ContainsFunc(stack.Interfaces, func(i *world.Interface) bool { return i.Name == name }) {
			stack.Interfaces = append(stack.Interfaces, &world.Interface{Name: name, Temporary: temporary})
		}
		stack.Addresses = append(stack.Addresses, &world.Address{
			Object: f[0], Type: f[1], Address: address, Temporary: temporary, Timeline: []world.Timepoint{{State: f[2], From: l.tx.Now}},
		})
	}
}
