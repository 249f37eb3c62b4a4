package network

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// maxLinkName is how long a link's name may be (MAXLINKNAMELEN - 1).
const maxLinkName = 31

// ValidLinkName says whether dladm(8) takes a name for a new link: letters,
// digits, underscore and period, no digit at the beginning, a number without
// leading zeros at the end (dladm_valid_linkname in
// usr/src/lib/libdladm/common/libdladm.c).
func ValidLinkName(name string) bool {
	if name == "" || len(name) > maxLinkName || isDigit(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && !isDigit(c) && c != '_' && c != '.' {
			return false
		}
	}
	number := name[len(strings.TrimRight(name, "0123456789")):]
	return number == "0" || number != "" && number[0] != '0'
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// VNIC is what dladm(8) create-vnic asks for.
type VNIC struct {
	Name, Over string
	MAC        string // padded; empty: a random one
	VLAN       int    // 0: untagged
	MTU        string // of -p; empty: that of the lower link
	Temporary  bool
}

// CreateVNIC makes a VNIC over a physical link, an aggregation or an etherstub
// (dladm_vnic_create in usr/src/lib/libdladm/common/libdlvnic.c, vnic_dev_create
// in usr/src/uts/common/io/vnic/vnic_dev.c).
func CreateVNIC(tx *world.Tx, v VNIC) error {
	lower := lowerOf(tx, v.Over, v.Temporary)
	switch {
	case nameTaken(tx, v.Name):
		return LinkExists
	case v.VLAN == defaultTag:
		return LinkDefaultTagBusy
	}
	l := &world.Link{Name: v.Name, Class: "vnic", Over: v.Over, MAC: v.MAC, MACType: "fixed", VLAN: v.VLAN,
		Temporary: v.Temporary, Up: true, Properties: map[string]string{}}
	if v.MTU != "" {
		world.Simulated(checkMTU(tx, l, v.MTU) == nil)
		l.Properties["mtu"] = v.MTU
	}
	for l.MAC == "" {
		l.MACType = "random"
		if mac := randomMAC(tx); !macInUse(tx, mac, l) {
			l.MAC = mac
		}
	}
	world.Simulated(!multicastMAC(l.MAC) && l.MAC != "00:00:00:00:00:00" && l.MAC != lower.MAC)
	if macInUse(tx, l.MAC, l) {
		return LinkMACInUse
	}
	tx.State.Links = append(tx.State.Links, l)
	return nil
}

// defaultTag is the VLAN that untagged packets of a link belong to.
const defaultTag = 1

// lowerOf is a link that a VNIC or a VLAN can be made over: a port of an aggregation
// is for that alone, and what is temporary carries nothing persistent.
func lowerOf(tx *world.Tx, over string, temporary bool) *world.Link {
	lower := FindLink(tx, over)
	world.Simulated(lower != nil && lower.Class != "vnic" && lower.Class != "vlan" && (temporary || !lower.Temporary) &&
		!slices.ContainsFunc(tx.State.Links, func(l *world.Link) bool {
			return l.Class == "aggr" && slices.Contains(strings.Split(l.Over, ","), over)
		}))
	return lower
}

// nameTaken says whether the global zone cannot have another link of this
// name. In the gate the name of a link that a zone has is free again (illumos 10001);
// OmniOS refuses it (github.com/omniosorg/illumos-omnios pull 367). SmartOS is
// taken to be as the gate.
func nameTaken(tx *world.Tx, name string) bool {
	return slices.ContainsFunc(tx.State.Links, func(l *world.Link) bool {
		return l.Name == name && (l.Zone == "" || tx.State.Mode == world.OmniOS)
	})
}

// macInUse says whether the link cannot have an address: two clients of one lower
// link share an address only on different VLANs (mac_addr_in_use in
// usr/src/uts/common/io/mac/mac_client.c).
func macInUse(tx *world.Tx, mac string, l *world.Link) bool {
	return slices.ContainsFunc(tx.State.Links, func(other *world.Link) bool {
		return other.Over == l.Over && other.VLAN == l.VLAN && other.MAC == mac
	})
}

// CreateEtherstub makes an etherstub.
func CreateEtherstub(tx *world.Tx, name string, temporary bool) error {
	if nameTaken(tx, name) {
		return LinkExists
	}
	tx.State.Links = append(tx.State.Links, &world.Link{
		Name: name, Class: "etherstub", Temporary: temporary, Up: true, Properties: map[string]string{},
	})
	return nil
}

// CreateAggregation makes an aggregation of physical links that nobody uses
// (dladm_aggr_create in usr/src/lib/libdladm/common/libdlaggr.c, aggr_grp_create
// in usr/src/uts/common/io/aggr/aggr_grp.c). Its address is that of its first port.
func CreateAggregation(tx *world.Tx, name string, ports []string) {
	for i, port := range ports {
		l := FindLink(tx, port)
		world.Simulated(l != nil && l.Class == "phys" && !slices.Contains(ports[:i], port) && !linkOpen(tx, l) && !hasLinksAbove(tx, port))
	}
	world.Simulated(!nameTaken(tx, name))
	tx.State.Links = append(tx.State.Links, &world.Link{Name: name, Class: "aggr", Over: strings.Join(ports, ","),
		MAC: FindLink(tx, ports[0]).MAC, MACType: "primary", Up: true, Properties: map[string]string{}})
}

// CreateVLAN makes a VLAN link, which has the address of the link below it
// (dladm_vlan_create in usr/src/lib/libdladm/common/libdlvlan.c: a VNIC of
// another class).
func CreateVLAN(tx *world.Tx, name, over string, vlan int) {
	lower := lowerOf(tx, over, false)
	world.Simulated(vlan != defaultTag && !nameTaken(tx, name) && !slices.ContainsFunc(tx.State.Links, func(l *world.Link) bool {
		return l.Class == "vlan" && l.Over == over && l.VLAN == vlan
	}))
	tx.State.Links = append(tx.State.Links, &world.Link{Name: name, Class: "vlan", Over: over, MAC: lower.MAC, MACType: "primary",
		VLAN: vlan, Up: true, Properties: map[string]string{}})
}

// DeleteLink removes a link that the global zone has and that is no hardware. Busy
// means: lent to a zone, plumbed, open in a VM or by a command that looks at it, or with
// VNICs above it (dls_devnet_unset in usr/src/uts/common/io/dls/dls_mgmt.c).
func DeleteLink(tx *world.Tx, l *world.Link) error {
	if l.Zone != "" || linkOpen(tx, l) || linkHeld(tx, l) || hasLinksAbove(tx, l.Name) {
		return LinkBusy
	}
	tx.State.Links = slices.DeleteFunc(tx.State.Links, func(other *world.Link) bool { return other == l })
	return nil
}

func hasLinksAbove(tx *world.Tx, name string) bool {
	return slices.ContainsFunc(tx.State.Links, func(l *world.Link) bool { return l.Over == name })
}
