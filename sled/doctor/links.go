package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/vnic"
)

// linkChecks ask whether zones get connected.
func linkChecks() []Check {
	const group = "links"
	return []Check{
		{ID: "control-link", Group: group, About: "the control link exists, and VNICs can be made over it", Asks: []Question{askLinks, askRoute, askRecords}, Judge: judgeControlLink},
		{ID: "link-mtu", Group: group, About: "the control link carries packets as large as zones send", Asks: []Question{askLinks, askRoute, askRecords}, Judge: judgeMTU},
		{ID: "default-route", Group: group, About: "the sled has a default route", Asks: []Question{askRoute}, Judge: judgeRoute},
		{ID: "duplicate-addresses", Group: group, About: "no other host has one of the sled's addresses", Asks: []Question{askAddresses}, Judge: judgeAddresses},
	}
}

// controlLink is the link under the control VNICs, as bootstrap chooses it; empty: there
// is none.
func controlLink(s Seen) string {
	if name := cmp.Or(s.Settings.ControlLink, s.Settings.Etherstub, s.Records.ControlLink); name != "" {
		return name
	}
	return s.Route
}

func (s Seen) link(name string) (vnic.Link, bool) {
	i := slices.IndexFunc(s.Links, func(l vnic.Link) bool { return l.Name == name })
	if i < 0 {
		return vnic.Link{}, false
	}
	return s.Links[i], true
}

func judgeControlLink(s Seen) Finding {
	name := controlLink(s)
	l, there := s.link(name)
	const set = "set network.control_link to a link, or network.etherstub to a name"
	switch {
	case name == "":
		return fails("there is no control link: none is configured, and there is no default route").byHand(set).then("dladm show-link")
	case !there && name == s.Settings.Etherstub:
		return fine("etherstub %s: bootstrap makes it", name)
	case !there:
		return fails("link %s does not exist", name).byHand(set).then("dladm show-link")
	case !slices.Contains([]string{"phys", "aggr", "etherstub", "vlan", "overlay", "simnet"}, l.Class):
		return fails("link %s is of class %s: no VNIC can be made over it", name, l.Class).byHand(set).then("dladm show-link")
	case l.State == "down":
		return warns("link %s is down", name).then("dladm show-link " + name)
	}
	return fine("%s, of class %s", name, l.Class)
}

// The MTU of the underlay that the service of an image sets, and the least of IPv6.
const (
	imageMTU = 9000
	leastMTU = 1280
)

func judgeMTU(s Seen) Finding {
	name := controlLink(s)
	l, there := s.link(name)
	least, why := leastMTU, "IPv6 needs"
	switch {
	case s.Settings.Image:
		least, why = imageMTU, "zones of an image send"
	case s.Settings.MTU > 0:
		least, why = s.Settings.MTU, "network.mtu is"
	}
	switch {
	case !there:
		return fine("no control link yet")
	case l.MTU >= least:
		return fine("%s has %d", name, l.MTU)
	}
	f := fails("link %s has MTU %d, and %s %d", name, l.MTU, why, least)
	if l.Class == "phys" || l.Class == "aggr" {
		f = f.byHand("set network.etherstub where the network does not carry that")
	}
	return f.then("dladm set-linkprop -p mtu=" + strconv.Itoa(least) + " " + name)
}

func judgeRoute(s Seen) Finding {
	if s.Route == "" {
		return warns("the sled has no default route: it reaches its own networks only").byHand("add a default route, as with: route -p add default GATEWAY")
	}
	return fine("over %s", s.Route)
}

func judgeAddresses(s Seen) Finding {
	var twice []string
	for _, a := range s.Addresses {
		if a.State == "duplicate" {
			twice = append(twice, a.Object+" ("+a.Address.String()+")")
		}
	}
	if twice != nil {
		return fails("another host has the address of %s", strings.Join(twice, ", ")).byHand("give one of the two another address").then("ipadm show-addr")
	}
	return fine("%d addresses, none is a duplicate", len(s.Addresses))
}
