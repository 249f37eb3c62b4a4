package network

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// This file makes the links that lie over physical ones and are no VNICs:
// aggregations and VLANs.

// Aggregation is what dladm(8) create-aggr asks for.
type Aggregation struct {
	Name      string
	Ports     []string
	Temporary bool
}

// CreateAggregation makes an aggregation of physical links that nobody uses
// (dladm_aggr_create in usr/src/lib/libdladm/common/libdlaggr.c, aggr_grp_create
// in usr/src/uts/common/io/aggr/aggr_grp.c). Its address is that of its first port.
func CreateAggregation(tx *world.Tx, a Aggregation) error {
	if nameTaken(tx, a.Name) {
		return LinkExists
	}
	l := &world.Link{Name: a.Name, Class: "aggr", Over: strings.Join(a.Ports, ","), MACType: "primary", Temporary: a.Temporary, Up: true, Properties: map[string]string{}}
	for i, name := range a.Ports {
		port := FindLink(tx, name)
		switch {
		case port == nil:
			return LinkNotFound
		case port.Class != "phys", slices.Contains(a.Ports[:i], name):
			return LinkBadArg // Guess: the driver takes no others, and says so.
		case linkOpen(tx, port) || hasLinksAbove(tx, name):
			return LinkBusy
		}
		if i == 0 {
			l.MAC = port.MAC
		}
	}
	tx.State.Links = append(tx.State.Links, l)
	return nil
}

// VLAN is what dladm(8) create-vlan asks for.
type VLAN struct {
	Name, Over string
	ID         int
	Temporary  bool
}

// CreateVLAN makes a VLAN link, which has the address of the link below it
// (dladm_vlan_create in usr/src/lib/libdladm/common/libdlvlan.c: a VNIC of
// another class).
func CreateVLAN(tx *world.Tx, v VLAN) error {
	lower := FindLink(tx, v.Over)
	switch {
	case lower == nil:
		return LinkNotFound
	case lower.Class == "vnic" || lower.Class == "vlan":
		return LinkBadArg
	case portOf(tx, v.Over) != "":
		return LinkBusy
	case lower.Temporary && !v.Temporary:
		return LinkPersistOnTemp
	case nameTaken(tx, v.Name), slices.ContainsFunc(tx.State.Links, func(l *world.Link) bool {
		return l.Class == "vlan" && l.Over == v.Over && l.VLAN == v.ID && !l.Inactive
	}):
		return LinkExists
	case v.ID == defaultTag(lower):
		return LinkDefaultTagBusy
	}
	tx.State.Links = append(tx.State.Links, &world.Link{Name: v.Name, Class: "vlan", Over: v.Over, MAC: lower.MAC, MACType: "primary",
		VLAN: v.ID, Temporary: v.Temporary, Up: true, Properties: map[string]string{}})
	return nil
}

// portOf is the aggregation that a physical link is a port of.
func portOf(tx *world.Tx, name string) string {
	for _, l := range tx.State.Links {
		if l.Class == "aggr" && !l.Inactive && slices.Contains(strings.Split(l.Over, ","), name) {
			return l.Name
		}
	}
	return ""
}
