// Package opte drives opteadm, by which OPTE's ports in the networks of VPCs are made
// (oxidecomputer/opte): the underlay, ports with their firewall and their routes, and where the
// addresses of a VPC are. A port is a link of class misc, which a zone gets as it gets a VNIC.
//
// opteadm is for operators: its options and its tables change from version to version. This
// package knows one, and refuses the others (*VersionError). All of it ends with a boot of the sled.
package opte

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// Version is the version of opteadm that this package knows: the major version of OPTE, and the
// version of its API, on which the command and the driver must agree
// (crates/opte-api/src/lib.rs). What follows in the number is that of commits.
const Version = "0.41"

// Class is the class of a port as a link (create_xde in lib/opte-ioctl/src/lib.rs).
const Class = "misc"

// GatewayMAC is the address with which a port answers as its guest's gateway (GW_MAC_ADDR in
// lib/oxide-vpc/src/api.rs).
const GatewayMAC = "a8:40:25:ff:77:77"

// MaxVNI is the highest number of a VPC's network: it has 24 bits.
const MaxVNI = 1<<24 - 1

// VersionError is an opteadm of a version that this package does not know.
type VersionError struct{ Version string }

// Error names both.
func (e *VersionError) Error() string {
	return fmt.Sprintf("opteadm is of version %q: sledctl knows %s", e.Version, Version)
}

func (*VersionError) Kind() fault.Kind { return fault.Refused }

// Hint says what would be right.
func (*VersionError) Hint() string {
	return "install the package opte of a version that begins with " + Version + ", reboot the sled, then run the same command again"
}

// ErrNoDriver is a sled without the driver xde. Its kind is fault.Refused.
var ErrNoDriver = fault.New(fault.Refused, "the driver xde of OPTE is not attached")

// ErrNoUnderlay is a port that cannot be made before the underlay is set. Its kind is
// fault.Refused.
var ErrNoUnderlay = fault.New(fault.Refused, "the links below OPTE's ports are not set")

// ErrMACInUse is the kind of a port that cannot be made because another one of its VPC has the
// address.
var ErrMACInUse = errors.New("MAC address is in use in this VPC")

// Listed is a port as opteadm lists it.
type Listed struct {
	Name string
	MAC  string       // lower case, two digits a group
	IPs  []netip.Addr // in the VPC: one of each family that it has
}

// OtherError is a port that is not the one that was meant: the name is the same, the address is
// not. Its kind is host.ErrRefused.
type OtherError struct{ Name, MAC, WantMAC string }

// Error shows both.
func (e *OtherError) Error() string {
	return fmt.Sprintf("port %s has %s, not %s: it is another one", e.Name, e.MAC, e.WantMAC)
}

func (*OtherError) Kind() fault.Kind { return fault.Failed }

// InvalidError is a value that a port, a rule or a route cannot have.
type InvalidError struct{ What, Value, Want string }

// Error says what is wanted.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s %q: want %s", e.What, e.Value, e.Want) }

func (*InvalidError) Kind() fault.Kind { return fault.Usage }

func known(version string) error {
	if version == Version || strings.HasPrefix(version, Version+".") {
		return nil
	}
	return &VersionError{version}
}
