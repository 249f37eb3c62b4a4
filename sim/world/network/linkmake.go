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
	Temporary  bool
	Properties []LinkSetting // of -p, in their order
}

// CreateVNIC makes a VNIC over a physical link or an etherstub
// (dladm_vnic_create in usr/src/lib/libdladm/common/libdlvnic.c, vnic_dev_create
// in usr/src/uts/common/io/vnic/vnic_dev.c).
func CreateVNIC(tx *world.Tx, v VNIC) error {
	lower := FindLink(tx, v.Over)
	switch {
	case lower == nil:
		return LinkNotFound
	case lower.Class == "vnic" || lower.Class == "vlan":
		return LinkBadArg
	case portOf(tx, v.Over) != "":
		return LinkBusy // Guess: an aggregation has its ports for itself.
	case lower.Temporary && !v.Temporary:
		return LinkPersistOnTemp
	case nameTaken(tx, v.Name):
		return LinkExists
	case v.VLAN != 0 && v.VLAN == defaultTag(lower):
		return LinkDefaultTagBusy
	}
	l := &world.Link{Name: v.Name, Class: "vnic", Over: v.Over, MAC: v.MAC, MACType: "fixed", VLAN: v.VLAN,
		Temporary: v.Temporary, Up: true, Properties: map[string]string{}}
	for _, p := range v.Properties {
		if err := checkSetting(tx, l, p, false); err != nil {
			return err
		}
	}
	if err := assignMAC(tx, l, lower); err != nil {
		return err
	}
	for _, p := range v.Properties {
		l.Properties[p.Name] = p.joined()
	}
	tx.State.Links = append(tx.State.Links, l)
	return nil
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

// assignMAC draws an address for the VNIC, or proves that it may have the one
// asked for: two clients of one lower link share an address only on different
// VLANs (mac_addr_in_use in usr/src/uts/common/io/mac/mac_client.c).
func assignMAC(tx *world.Tx, l, lower *world.Link) error {
	for l.MAC == "" {
		l.MACType = "random"
		if mac := randomMAC(tx); !macInUse(tx, mac, l.Over, l.VLAN) {
			l.MAC = mac
		}
	}
	switch {
	case multicastMAC(l.MAC) || l.MAC == "00:00:00:00:00:00":
		return LinkBadMAC
	case lower.Class == "phys" && l.MAC == lower.MAC:
		return LinkMACReserved // Guess: that the primary address of the lower link gives this status.
	case macInUse(tx, l.MAC, l.Over, l.VLAN):
		return LinkMACInUse
	}
	return nil
}

func macInUse(tx *world.Tx, mac, over string, vlan int) bool {
	return slices.ContainsFunc(tx.State.Links, func(l *world.Link) bool {
		return !l.Inactive && l.Over == over && l.VLAN == vlan && l.MAC == mac
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

// DeleteLink removes a link that the global zone has and that is no hardware. Busy
// means: lent to a zone, plumbed, open in a VM or by a command that looks at it, or with
// VNICs above it (dls_devnet_unset in usr/src/uts/common/io/dls/dls_mgmt.c). With activeOnly
// the persistent configuration stays, and the link is back after a reboot.
func DeleteLink(tx *world.Tx, l *world.Link, activeOnly bool) error {
	switch {
	case l.Class == "phys":
		return LinkNotFound // Guess: there is nothing that could be deleted, says the driver.
	case l.Zone != "" || linkOpen(tx, l) || linkHeld(tx, l) || hasLinksAbove(tx, l.Name):
		return LinkBusy
	case activeOnly && !l.Temporary:
		l.Inactive = true
		return nil
	}
	tx.State.Links = slices.DeleteFunc(tx.State.Links, func(other *world.Link) bool { return other == l })
	return nil
}

func hasLinksAbove(tx *world.Tx, name string) bool {
	return slices.ContainsFunc(tx.State.Links, func(l *world.Link) bool { return l.Over == name && !l.Inactive })
}

// RenameLink renames a link that nothing uses (dlmgmt_create_common and
// dls_devnet_rename: busy while it is open, lent, or has links above it).
func RenameLink(tx *world.Tx, from, to string) error {
	l := FindLink(tx, from)
	switch {
	case l == nil:
		return LinkNotFound
	case !ValidLinkName(to):
		return LinkBadArg
	case nameTaken(tx, to):
		return LinkExists // Guess: renaming onto a physical link that was removed is not simulated.
	case l.Zone != "" || linkOpen(tx, l) || linkHeld(tx, l) || hasLinksAbove(tx, from):
		return LinkBusy
	}
	l.Name = to
	return nil
}
