// Package bmc asks the BMCs of sleds for their power: by Redfish, in the three requests that this
// takes, or by IPMI 2.0 over a LAN. Open gives the one of a Config. What it reports proves nothing
// by itself: package fence says what does.
//
// A BMC may answer slowly, or never: each request ends with its context.
package bmc

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Protocol is how a BMC is spoken to.
type Protocol string

// The protocols.
const (
	Redfish Protocol = "redfish"
	IPMI    Protocol = "ipmi"
)

// State is that of a sled's power.
type State string

// The states. A BMC may have others, between the two: they are not Off.
const (
	On  State = "On"
	Off State = "Off"
)

// Report is what a BMC says about its sled.
type Report struct {
	State State
	UUIDs []string // of the sled; of one that a BMC may mean in several ways, each
}

// BMC is a sled's service processor.
type BMC interface {
	// Power reads the state of the sled's power.
	Power(context.Context) (Report, error)
	// PowerOff cuts the power at once. That the BMC takes the request says nothing about the sled.
	//
	// Guess bmc-off-within-settle: a BMC that has reported its sled off without a break for 10 s
	// (`--settle` of the controller) has cut its power.
	// Check: ask a BMC for ForceOff, and compare when it first reports Off with when the console falls silent
	PowerOff(context.Context) error
}

// Config is how a BMC is reached.
type Config struct {
	Protocol           Protocol
	Address            string // HOST or HOST:PORT
	System             string // of Redfish: the path of the ComputerSystem; empty: the only one
	UUID               string // of the sled; empty: whichever answers
	Username, Password string
	CA                 []byte // of Redfish: authorities in PEM; empty: the system's
	Fingerprint        string // of Redfish: SHA-256 of the certificate, in hex; then no authority is asked
}

// InputError is a Config that cannot be meant. Field is the name of the field, as in a SledBMC or
// its Secret.
type InputError struct{ Field, Problem string }

// Error names the field.
func (e *InputError) Error() string { return e.Field + ": " + e.Problem }

// MistakenError is a BMC that is the one of another sled.
type MistakenError struct {
	Want string
	Has  []string
}

// Error says which sled it is.
func (e *MistakenError) Error() string {
	return fmt.Sprintf("the BMC is that of a sled with UUID %s, want %s", strings.Join(e.Has, " or "), e.Want)
}

// Open is the BMC of a Config. It asks nothing yet.
func Open(c Config) (BMC, error) {
	host, port, err := split(c.Address)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Username == "":
		return nil, &InputError{"username", "the Secret has none"}
	case c.Password == "":
		return nil, &InputError{"password", "the Secret has none"}
	}
	if c.UUID != "" {
		id, err := uuid.Parse(c.UUID)
		if err != nil {
			return nil, &InputError{"uuid", err.Error()}
		}
		c.UUID = id.String()
	}
	switch c.Protocol {
	case Redfish:
		return openRedfish(c, host, port)
	case IPMI:
		return openIPMI(c, host, port)
	}
	return nil, &InputError{"protocol", fmt.Sprintf("%q is not redfish or ipmi", c.Protocol)}
}

// split is the host of an address, and its port; empty: that of the protocol.
func split(address string) (host, port string, err error) {
	if host, port, err = net.SplitHostPort(address); err != nil {
		host, port = strings.Trim(address, "[]"), ""
	}
	n, err := strconv.ParseUint(cmp.Or(port, "1"), 10, 16)
	if err != nil || n == 0 || host == "" || strings.ContainsAny(host, "/@ ") || net.ParseIP(host) == nil && strings.Contains(host, ":") {
		return "", "", &InputError{"address", fmt.Sprintf("%q is not HOST or HOST:PORT", address)}
	}
	return host, port, nil
}

// is refuses what another sled's BMC reports.
func (c Config) is(r Report) error {
	if c.UUID != "" && !slices.ContainsFunc(r.UUIDs, func(id string) bool { return strings.EqualFold(id, c.UUID) }) {
		return &MistakenError{Want: c.UUID, Has: r.UUIDs}
	}
	return nil
}
