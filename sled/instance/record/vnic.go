package record

import (
	"github.com/sledctl/sledctl/illumos/opte"
	"github.com/sledctl/sledctl/vnic"
)

// VNIC is a VNIC that belongs to an incarnation. It carries no mark on the host: name,
// MAC and lower link together say that it is sledctl's.
type VNIC struct {
	Name string `json:"name"`
	Over string `json:"over"`
	MAC  string `json:"mac"`
	VLAN int    `json:"vlan,omitempty"`
	// Port says that it is a port of OPTE, which lies over no link.
	Port bool `json:"port,omitempty"`
}

// Kind is what it is as an object of the host.
func (v VNIC) Kind() string {
	if v.Port {
		return "port"
	}
	return "vnic"
}

// Noun is what it is in a sentence.
func (v VNIC) Noun() string {
	if v.Port {
		return "port"
	}
	return "VNIC"
}

// VNICOf is the VNIC of a NIC of an instance, under a name.
func VNICOf(name string, n NIC) VNIC {
	return VNIC{Name: name, Over: n.Over, MAC: n.MAC, VLAN: n.VLAN, Port: n.OPTE}
}

// Is reports whether a link is the one that was made for it.
func (v VNIC) Is(l vnic.Link) bool {
	return l.MAC == v.MAC && l.Over == v.Over && l.VLAN == v.VLAN && (l.Class == opte.Class) == v.Port
}
