package network

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// LinkProperty describes a property of links as dladm(8) show-linkprop does.
// The real table (prop_table in usr/src/lib/libdladm/common/linkprop.c) is
// longer: this one has what every class of link here shows.
type LinkProperty struct{ Name, Permission, Default, Possible string }

// LinkProperties is the table, in the order in which they are listed.
func LinkProperties() []LinkProperty {
	return []LinkProperty{
		{"autopush", "rw", "", ""}, {"zone", "rw", "", ""}, {"state", "r-", "up", "up,down"}, {"mtu", "rw", "", ""},
		{"maxbw", "rw", "", ""}, {"cpus", "rw", "", ""}, {"pool", "rw", "", ""}, {"priority", "rw", "high", "low,medium,high"},
		{"tagmode", "rw", "vlanonly", "normal,vlanonly"}, {"default_tag", "rw", "1", ""},
		{"protection", "rw", "", "mac-nospoof,restricted,ip-nospoof,dhcp-nospoof"}, {"allowed-ips", "rw", "", ""},
		{"allowed-dhcp-cids", "rw", "", ""},
	}
}

// LinkValue is the current value of a property, "" if it has none.
func LinkValue(tx *world.Tx, l *world.Link, p LinkProperty) string {
	switch p.Name {
	case "zone":
		return l.Zone
	case "mtu":
		return strconv.Itoa(LinkMTU(tx, l))
	}
	return cmp.Or(l.Properties[p.Name], p.Default)
}

// LinkDefault is the default value of a property of this link.
func LinkDefault(tx *world.Tx, l *world.Link, p LinkProperty) string {
	if p.Name == "mtu" {
		return strconv.Itoa(defaultMTU(tx, l))
	}
	return p.Default
}

// LinkMTU is how large a packet the link carries.
func LinkMTU(tx *world.Tx, l *world.Link) int {
	if n, err := strconv.Atoi(l.Properties["mtu"]); err == nil {
		return n
	}
	return defaultMTU(tx, l)
}

// The bounds of an MTU. An etherstub carries 9000 bytes unless told otherwise
// (ANCHOR_VNIC_MAX_MTU in usr/src/uts/common/sys/vnic_impl.h); a VNIC at most
// what its lower link carries.
//
// Guess vnic-mtu-from-1280: the least MTU of a VNIC is 1280.
// Check: `dladm set-linkprop -t -p mtu=… x0`
const (
	minMTU     = 576
	etherMTU   = 1500
	anchorMTU  = 9000
	minVNICMTU = 1280 // the least that IPv6 needs
)

func defaultMTU(tx *world.Tx, l *world.Link) int {
	switch l.Class {
	case "etherstub":
		return anchorMTU
	case "vnic", "vlan", "aggr":
		below, _, _ := strings.Cut(l.Over, ",")
		if lower := FindLink(tx, below); lower != nil {
			return LinkMTU(tx, lower)
		}
	}
	return etherMTU
}

// checkMTU takes what the driver would.
//
// Guess mtu-refusal-texts: an MTU out of range is "invalid argument", and one below that of a VNIC
// over the link is "link busy".
// Check: `dladm set-linkprop -t -p mtu=… x0`
func checkMTU(tx *world.Tx, l *world.Link, value string) error {
	n, err := strconv.Atoi(value)
	world.Simulated(err == nil)
	low, high := minMTU, anchorMTU
	if lower := FindLink(tx, l.Over); l.Class == "vnic" && lower != nil {
		low, high = minVNICMTU, LinkMTU(tx, lower)
	}
	if n < low || n > high {
		return LinkBadArg
	}
	for _, above := range tx.State.Links {
		if set, err := strconv.Atoi(above.Properties["mtu"]); err == nil && above.Over == l.Name && set > n {
			return LinkBusy
		}
	}
	return nil
}

// SetLinkMTU sets the MTU of a link (dladm_set_linkprop in
// usr/src/lib/libdladm/common/linkprop.c). A temporary link's properties are
// temporary themselves: setting one persistently changes only what is active
// and is no error.
//
// Guess persistent-property-of-temporary-link: set-linkprop without -t on a temporary link is no
// error; reset-linkprop without properties leaves `zone` alone.
// Check: those commands, then show-linkprop
func SetLinkMTU(tx *world.Tx, l *world.Link, value string, temporary bool) error {
	if err := checkMTU(tx, l, value); err != nil {
		return err
	}
	tx.TouchLink(l)
	// What a temporary change hides comes back at the next reboot.
	if _, hidden := l.Saved["mtu"]; temporary && !hidden {
		if l.Saved == nil {
			l.Saved = map[string]string{}
		}
		l.Saved["mtu"] = l.Properties["mtu"]
	} else if !temporary {
		delete(l.Saved, "mtu")
	}
	if l.Properties == nil {
		l.Properties = map[string]string{}
	}
	l.Properties["mtu"] = value
	return nil
}
