// Package vnic drives dladm(8): physical links, etherstubs and VNICs. Links are
// made temporary, so that a reboot leaves none; MAC addresses are always ours,
// so that a guest keeps the one it knows.
package vnic

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// Link is a datalink as the global zone sees it.
type Link struct {
	Name  string
	Class string // phys, vnic, etherstub, aggr, …
	Over  string // the link under a VNIC
	MAC   string // of a VNIC: lower case, two digits a group
	VLAN  int    // of a VNIC: 0 is untagged
	MTU   int    // bytes
	State string // up, down, unknown, ?
	Zone  string // of a VNIC: the zone that has it; empty: the global zone has it
}

// NameMax is the longest name of a link in bytes (MAXLINKNAMELEN - 1).
const NameMax = 31

// NameError is a name that a link cannot have.
type NameError struct {
	Name   string
	Reason string
}

// Error names the name and the rule.
func (e *NameError) Error() string { return fmt.Sprintf("link name %q: %s", e.Name, e.Reason) }

func (*NameError) Kind() fault.Kind { return fault.Usage }

// ValidateName says whether a link may have this name: 1 to 31 bytes of
// letters, digits, '_' and '.'; no digit first; a number without leading zeros
// last (dladm_valid_linkname in usr/src/lib/libdladm/common/libdladm.c). dladm
// cuts a longer name before it looks a link up, so that another link would be
// meant. The error is a *NameError.
func ValidateName(s string) error {
	refuse := func(format string, args ...any) error { return &NameError{s, fmt.Sprintf(format, args...)} }
	switch {
	case s == "":
		return refuse("empty")
	case len(s) > NameMax:
		return refuse("%d bytes, at most %d are allowed", len(s), NameMax)
	case isDigit(s[0]):
		return refuse("must not begin with a digit")
	}
	for _, r := range s {
		if r >= 0x80 || !isLetter(byte(r)) && !isDigit(byte(r)) && r != '_' && r != '.' {
			return refuse("%q is not allowed, only letters, digits, '_' and '.'", r)
		}
	}
	number := s[len(strings.TrimRight(s, "0123456789")):]
	switch {
	case number == "":
		return refuse("must end with a number")
	case len(number) > 1 && number[0] == '0':
		return refuse("the number at the end must not begin with 0")
	}
	return nil
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// MACError is an address that a VNIC cannot have.
type MACError struct {
	MAC    string
	Reason string
}

// Error names the address and the rule.
func (e *MACError) Error() string { return fmt.Sprintf("MAC address %q: %s", e.MAC, e.Reason) }

func (*MACError) Kind() fault.Kind { return fault.Usage }

// ParseMAC reads six groups of one or two hexadecimal digits, as dladm prints
// and takes them, and gives them in lower case with two digits each. A VNIC
// needs the address of one station: not a group's, not all zeros. The error is
// a *MACError.
func ParseMAC(s string) (string, error) {
	refuse := func(reason string) (string, error) { return "", &MACError{s, reason} }
	if strings.Count(s, ":") != 5 {
		return refuse("six groups with colons between them are wanted")
	}
	var sum byte
	mac, rest := make([]byte, 0, len("02:08:20:00:00:01")), s
	for i := range 6 {
		var g string
		g, rest, _ = strings.Cut(rest, ":")
		n, ok := octet(g)
		if !ok {
			return refuse(fmt.Sprintf("group %q is not one or two hexadecimal digits", g))
		}
		if i == 0 && n&1 != 0 {
			return refuse("is the address of a group, not of one station")
		}
		sum |= n
		if i > 0 {
			mac = append(mac, ':')
		}
		mac = append(mac, digits[n>>4], digits[n&15])
	}
	if sum == 0 {
		return refuse("is all zeros")
	}
	return string(mac), nil
}

const digits = "0123456789abcdef"

// octet reads one or two hexadecimal digits.
func octet(s string) (n byte, ok bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			n = n<<4 | (c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			n = n<<4 | (c | 0x20 - 'a' + 10)
		default:
			return 0, false
		}
	}
	return n, len(s) == 1 || len(s) == 2
}
