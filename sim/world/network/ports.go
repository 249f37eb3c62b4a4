package network

import (
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/sim/world"
)

// This file makes and removes the ports of OPTE, as opteadm does with dlmgmtd and the
// driver xde (oxidecomputer/opte, lib/opte-ioctl/src/lib.rs and xde/src/xde.rs). A port is a
// link of its own that zones and VMs use as they use a VNIC.

// classMisc is the class of links that no driver of the gate makes.
const classMisc = "misc"

// NewMiscLink is a link id of that class in dlmgmtd; a name that dladm(8) would not take
// is none there either (dlmgmt_create_common in usr/src/cmd/dlmgmtd/dlmgmt_door.c).
func NewMiscLink(tx *world.Tx, name, mac string, mtu int) error {
	switch {
	case !ValidLinkName(name):
		return LinkBadArg
	case nameTaken(tx, name):
		return LinkExists
	}
	l := &world.Link{Name: name, Class: classMisc, MAC: mac, Temporary: true, Up: true, Properties: map[string]string{}}
	if mtu != etherMTU {
		l.Properties["mtu"] = strconv.Itoa(mtu)
	}
	tx.State.Links = append(tx.State.Links, l)
	return nil
}

// Port finds a port of OPTE; nil: there is none of that name.
func Port(tx *world.Tx, name string) *world.OPTEPort {
	for _, p := range tx.OPTE().Ports {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// DeletePort removes a port with its link. Busy is as of a VNIC (dls_devnet_destroy).
func DeletePort(tx *world.Tx, p *world.OPTEPort) error {
	l := FindLink(tx, p.Name)
	world.Simulated(l != nil && l.Class == classMisc)
	if err := DeleteLink(tx, l); err != nil {
		return err
	}
	o := tx.OPTE()
	o.Ports = slices.DeleteFunc(o.Ports, func(other *world.OPTEPort) bool { return other == p })
	ClearMapping(tx, p.VNI, p.IP)
	return nil
}

// SetMapping says where an address of a VPC is; it replaces what was said before.
func SetMapping(tx *world.Tx, m world.OPTEMapping) {
	ClearMapping(tx, m.VNI, m.IP)
	o := tx.KeepOPTE()
	if o.V2P = append(o.V2P, m); !slices.Contains(o.VPCs, m.VNI) {
		o.VPCs = append(o.VPCs, m.VNI)
	}
}

// ClearMapping forgets where one is, whatever was said.
func ClearMapping(tx *world.Tx, vni uint32, ip string) {
	o := tx.OPTE()
	o.V2P = slices.DeleteFunc(o.V2P, func(m world.OPTEMapping) bool { return m.VNI == vni && m.IP == ip })
}
