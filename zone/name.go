package zone

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// NameMax is the longest name of a zone in bytes: ZONENAME_MAX of
// usr/src/uts/common/sys/zone.h without its NUL.
const NameMax = 63

// NameError is a name that a zone cannot have, or must not be given.
type NameError struct {
	Name   string
	Reason string
}

// Error names the name and the rule.
func (e *NameError) Error() string { return fmt.Sprintf("zone name %q: %s", e.Name, e.Reason) }

func (*NameError) Kind() fault.Kind { return fault.Usage }

// ValidateName says whether a zone may have this name: 1 to 63 bytes, a letter
// or digit first, then letters, digits, '.', '_' and '-'; not "global", not
// SUNW… (zonecfg_validate_zonename of libzonecfg and sanity_check of
// usr/src/cmd/zoneadm/zoneadm.c). Names of digits only are legal there and
// refused here: zoneadm -z takes them for the id of any active zone. The error
// is a *NameError.
func ValidateName(s string) error {
	refuse := func(format string, args ...any) error {
		return &NameError{Name: s, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case s == "":
		return refuse("empty")
	case len(s) > NameMax:
		return refuse("%d bytes, at most %d are allowed", len(s), NameMax)
	case !alphanumeric(rune(s[0])):
		return refuse("must begin with a letter or a digit")
	case s == Global:
		return refuse("is the global zone's")
	case strings.HasPrefix(s, "SUNW"):
		return refuse("names that begin with SUNW are reserved")
	case strings.Trim(s, "0123456789") == "":
		return refuse("digits only: zoneadm would take it for a zone id")
	}
	if bad, found := outside(s, "._-"); found {
		return refuse("%q is not allowed, only letters, digits, '.', '_' and '-'", bad)
	}
	return nil
}

// outside finds the first character of s that is neither alphanumeric nor one
// of also.
func outside(s, also string) (rune, bool) {
	for _, r := range s {
		if !alphanumeric(r) && !strings.ContainsRune(also, r) {
			return r, true
		}
	}
	return 0, false
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
