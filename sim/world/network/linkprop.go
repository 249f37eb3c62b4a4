package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
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

// CanSetLink says whether the simulated sled lets a property be set.
func CanSetLink(property string) bool {
	return slices.Contains([]string{"mtu", "protection", "allowed-ips", "maxbw", "zone"}, property)
}

// OneOfError is a value that is none of those that a property can have (DLADM_STATUS_BADVAL).
type OneOfError struct{ Possible string }

// Error is the status.
func (*OneOfError) Error() string { return "invalid value" }

// checkProtection takes a list of the values that there are
// (dladm_set_linkprop and check_prop in usr/src/lib/libdladm/common/linkprop.c).
func checkProtection(value string) error {
	i := slices.IndexFunc(LinkProperties(), func(p LinkProperty) bool { return p.Name == "protection" })
	possible := LinkProperties()[i].Possible
	for one := range strings.SplitSeq(value, ",") {
		if !slices.Contains(strings.Split(possible, ","), one) {
			return &OneOfError{possible}
		}
	}
	return nil
}

// checkAllowedIPs knows lists of addresses, each once.
func checkAllowedIPs(value string) {
	all := strings.Split(value, ",")
	for i, one := range all {
		_, err := netip.ParseAddr(one)
		world.Simulated(err == nil && !slices.Contains(all[:i], one))
	}
}

// bandwidth takes whole Mbit/s, at least the two above the least that MAC can shape
// (1.2 Mbit/s: MRP_MAXBW_MINVAL in usr/src/uts/common/sys/mac_flow.h, check_maxbw in linkprop.c), and gives what
// dladm_bw2str prints.
func bandwidth(value string) (string, error) {
	number, whole := strings.CutSuffix(value, "M")
	n, err := strconv.Atoi(number)
	world.Simulated(whole && err == nil && n > 0)
	if n < 2 {
		return "", LinkMinMaxBW
	}
	return fmt.Sprintf("%12s", fmt.Sprintf("%5d", n)), nil
}

// SetLinkZone moves a link into a zone that runs with a stack of its own, or back into the
// global zone, as zoneadmd does (check_zone and set_zone in
// usr/src/lib/libdladm/common/linkprop.c). The property is never persistent (PD_TEMPONLY).
//
// Guess zone-without-values: a value of the link property `zone` that is refused is "invalid
// value", without a list of those that there are.
// Check: `dladm set-linkprop -t -p zone=nope LINK`
func SetLinkZone(tx *world.Tx, l *world.Link, zone string, temporary bool) error {
	if !temporary {
		return LinkTempOnly
	}
	if zone == world.GlobalZone {
		return returnLink(tx, l)
	}
	z := tx.FindZone(zone)
	if z == nil || z.Kernel == nil || z.Kernel.Config.IPType != "exclusive" {
		return LinkBadVal
	}
	return LendLink(tx, zone, l.Name)
}

// SetLinkProperty sets a property of a link (dladm_set_linkprop in
// usr/src/lib/libdladm/common/linkprop.c). A temporary link's properties are
// temporary themselves: setting one persistently changes only what is active
// and is no error.
//
// Guess persistent-property-of-temporary-link: set-linkprop without -t on a temporary link is no
// error; reset-linkprop without properties leaves `zone` alone.
// Check: those commands, then show-linkprop
func SetLinkProperty(tx *world.Tx, l *world.Link, property, value string, temporary bool) error {
	var err error
	switch property {
	case "mtu":
		err = checkMTU(tx, l, value)
	case "protection":
		err = checkProtection(value)
	case "allowed-ips":
		checkAllowedIPs(value)
	case "maxbw":
		value, err = bandwidth(value)
	}
	if err != nil {
		return err
	}
	tx.TouchLink(l)
	if temporary {
		hide(l, property)
	} else {
		delete(l.Saved, property)
	}
	if l.Properties == nil {
		l.Properties = map[string]string{}
	}
	l.Properties[property] = value
	return nil
}

// hide keeps what a temporary change hides: it comes back at the next reboot.
func hide(l *world.Link, property string) {
	if _, hidden := l.Saved[property]; hidden {
		return
	}
	if l.Saved == nil {
		l.Saved = map[string]string{}
	}
	l.Saved[property] = l.Properties[property]
}

// ClearProtection takes off what the links of a zone hold it to
// (remove_datalink_protect in usr/src/cmd/zoneadmd/vplat.c): each teardown of a zone
// does so first, that of one whose boot failed too.
func ClearProtection(tx *world.Tx, zone string) {
	for l := range links(tx, zone) {
		for _, property := range []string{"protection", "allowed-ips"} {
			if l.Zone == zone && l.Properties[property] != "" {
				ResetLinkProperty(tx, l, property)
			}
		}
	}
}

// ResetLinkProperty gives a property of a link its default until the next reboot.
func ResetLinkProperty(tx *world.Tx, l *world.Link, property string) {
	tx.TouchLink(l)
	hide(l, property)
	delete(l.Properties, property)
}
