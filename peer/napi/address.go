package napi

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// AddressError is a MAC address or UUID that NAPI would not take.
type AddressError struct {
	What  string // "MAC address", "UUID"
	Value string
	Want  string
}

// Error names the value and what would be right.
func (e *AddressError) Error() string { return fmt.Sprintf("%s %q: want %s", e.What, e.Value, e.Want) }

func (*AddressError) Kind() fault.Kind { return fault.Failed }

// ParseMAC reads a MAC address in the forms that NAPI takes (lib/util/mac.js),
// which are those that zonecfg(8) and dladm(8) print, too: six groups of one or
// two hexadecimal digits with colons or with dashes between them, or twelve
// digits. It gives it as NAPI prints it: 90:b8:d0:00:00:02. The error is an
// *AddressError.
func ParseMAC(s string) (string, error) {
	groups := strings.Split(s, ":")
	switch {
	case strings.Contains(s, "-"):
		groups = strings.Split(s, "-")
	case len(s) == 12 && len(groups) == 1:
		groups = groups[:0]
		for i := 0; i < 12; i += 2 {
			groups = append(groups, s[i:i+2])
		}
	}
	ok := len(groups) == 6
	for i, g := range groups {
		ok = ok && (len(g) == 1 || len(g) == 2) && strings.Trim(g, hexDigits) == ""
		if len(g) == 1 {
			groups[i] = "0" + g
		}
	}
	if !ok {
		return "", &AddressError{What: "MAC address", Value: s, Want: "six groups of hexadecimal digits: 90:b8:d0:00:00:02"}
	}
	return strings.ToLower(strings.Join(groups, ":")), nil
}

const hexDigits = "0123456789abcdefABCDEF"

// bare is an address from ParseMAC as it stands in a path: servers from before
// 2015 take no other form.
func bare(mac string) string { return strings.ReplaceAll(mac, ":", "") }

// CheckUUID says whether NAPI takes a UUID: it must be in lower case. The error
// is an *AddressError.
func CheckUUID(s string) error {
	groups := strings.Split(s, "-")
	ok := len(s) == 36 && len(groups) == 5
	for i, want := range []int{8, 4, 4, 4, 12} {
		ok = ok && len(groups[i]) == want && strings.Trim(groups[i], "0123456789abcdef") == ""
	}
	if !ok {
		return &AddressError{What: "UUID", Value: s, Want: "lower case, e.g. 564d2cec-64ee-4aca-9e27-d71c02af3b6a"}
	}
	return nil
}
