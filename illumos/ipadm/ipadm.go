// Package ipadm drives ipadm(8), route(8) and netstat(8): interfaces, addresses
// and routes, of the global zone or, through zlogin(1), of a zone with a stack
// of its own. Everything is made temporary, so that a reboot leaves none.
package ipadm

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// The types of address objects that steps make.
const (
	Static   = "static"
	DHCP     = "dhcp"
	Addrconf = "addrconf"
)

// The states of an address (ipadm(8), show-addr).
const (
	OK        = "ok"
	Tentative = "tentative" // duplicate address detection runs
	Duplicate = "duplicate" // somebody else on the network has it
	Down      = "down"      // also a dhcp address before its lease
	Disabled  = "disabled"
)

// Address is an address of an address object. An addrconf object can have
// several.
type Address struct {
	Object string // net0/v4; net0/? if it has no name
	Type   string // static, dhcp, addrconf, from-gz
	State  string
	// Address has no zone. It is not valid before a lease, and for what is no
	// address with a length: a point-to-point link, a host name.
	Address netip.Prefix
}

// Route is a line of a routing table.
type Route struct {
	Destination string // default, an address, or a network; of IPv4 without a length
	Gateway     string
	Flags       string
	Link        string // empty: any
}

// ObjectError is a name that an address object cannot have.
type ObjectError struct {
	Object string
	Reason string
}

// Error names the object and the rule.
func (e *ObjectError) Error() string { return fmt.Sprintf("address object %q: %s", e.Object, e.Reason) }

func (*ObjectError) Kind() fault.Kind { return fault.Failed }

// ValidateObject says whether an address object may have this name:
// INTERFACE/NAME, where NAME is a letter and then letters and digits, 31 bytes
// at most (i_ipadm_is_user_aobjname_valid in
// usr/src/lib/libipadm/common/ipadm_addr.c). The error is an *ObjectError.
func ValidateObject(object string) error {
	refuse := func(reason string) error { return &ObjectError{object, reason} }
	link, name, found := strings.Cut(object, "/")
	switch {
	case !found || name == "" || link == "":
		return refuse("an interface, a slash and a name are wanted")
	case len(name) > 31:
		return refuse("at most 31 bytes are allowed behind the slash")
	case !alphanumeric(name) || name[0] <= '9':
		return refuse("a letter and then letters and digits are allowed behind the slash")
	}
	return validateLink(link)
}

// validateLink refuses what cannot be an interface: an argument must not be
// taken for an option, nor an object for another.
func validateLink(link string) error {
	switch {
	case link == "" || len(link) > 31:
		return &ObjectError{link, "an interface has 1 to 31 bytes"}
	case !alphanumeric(strings.NewReplacer("_", "", ".", "").Replace(link)) || link[0] <= '9' || link[len(link)-1] > '9':
		return &ObjectError{link, "an interface has a letter first, a digit last, and letters, digits, '_' and '.' between"}
	}
	return nil
}

func alphanumeric(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

// linkOf is the interface of an address object.
func linkOf(object string) string {
	link, _, _ := strings.Cut(object, "/")
	return link
}
