// Package layout says how an incarnation of an instance looks on the host: its zone's
// configuration and profile, the names of its address and its service, where its
// Propolis answers, and the VM that Propolis is asked for.
//
// All of it follows from the record and a Blueprint, which is what the sled's
// configuration adds. Observing compares with it, and the bring-up makes it.
package layout

import (
	"net/netip"

	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/packaging"
)

// Blueprint is what the zone of an incarnation and the Propolis in it follow from, besides
// the record.
type Blueprint struct {
	MTU      int
	Underlay netip.Prefix
	Gateway  netip.Addr
	Propolis Propolis
	Versions *propolis.Versions
	OPTE     OPTE
}

// OPTE is where OPTE's ports reach other sleds.
type OPTE struct {
	Links   []string   // two; none: another program sets them
	Address netip.Addr // of the sled on the underlay; invalid: there are no ports
	// Boundary are the addresses of the switches that carry what leaves a VPC; none: another program sets them.
	Boundary []string
}

// Propolis is how Propolis is run in a zone.
type Propolis struct {
	Packaging packaging.Settings // how it comes into the zone
	Port      uint16
	// Where it is mounted from the host:
	Binary      string
	Bootrom     string
	LibraryPath string // may be empty
	FMRI        string // its service in the zone
}

// Milestone is what must be online before anything is done in a fresh zone:
// earlier, one races with the zone's own boot (omicron, commit 46ddbe0fd3).
const Milestone = "svc:/milestone/single-user:default"
