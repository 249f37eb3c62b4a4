// Package naming defines how sledctl names, marks and places objects on a host,
// and so who owns an object. It is pure: names in, names out. If the
// ledger is lost, only these rules separate sledctl's objects from foreign ones,
// so every name stands for one object and every object has one name.
package naming

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Prefixes open the names of the zones and VNICs that sledctl makes. A name is
// ours only with what we write behind the prefix, and says nothing alone: see
// Owner.
type Prefixes struct {
	Zone  string // of an instance's zone, before its Propolis id
	Base  string // of a base zone, before _POOL_GENERATION
	VNIC  string // of a control VNIC, before its number
	Guest string // of a guest's VNIC, before its number

	// Of another tool, if the configuration gives its things to sledctl; empty:
	// they are not.
	OtherZone string // of its instances' zones, before the Propolis id
	OtherVNIC string // of its VNICs, before their number
}

// DefaultPrefixes are those of the sled agent of 2021, which sledctl inherits
// (oxidecomputer/omicron, sled-agent/src/illumos/{zone,dladm}.rs).
func DefaultPrefixes() Prefixes {
	return Prefixes{
		Zone:  "propolis_instance_",
		Base:  "propolis_base",
		VNIC:  "vnic_propolis",
		Guest: "vnic_propolis_guest",
	}
}

// These open the names of what `sledctl probe record --active` makes, whatever the
// configuration says, so that none of its objects is one that an instance has.
const (
	probeZone = "sledctl_probe_"
	probeVNIC = "sledctl_probe"
)

// Probe are the prefixes with which a recording makes its zone and its VNIC. The names that
// it makes are read with any prefixes.
func (p Prefixes) Probe() Prefixes {
	p.Zone, p.VNIC = probeZone, probeVNIC
	return p
}

// IsProbe reports whether a zone is one that a recording made, by its name.
func IsProbe(zone string) bool {
	rest, found := strings.CutPrefix(zone, probeZone)
	_, ok := parseUUID(rest)
	return found && ok
}

const (
	zoneNameMax = 63 // ZONENAME_MAX of usr/src/uts/common/sys/zone.h without its NUL
	linkNameMax = 31 // MAXLINKNAMELEN of usr/src/uts/common/sys/param.h without its NUL
	uuidLength  = 36

	// MaxNumber is the highest number of a VNIC and the highest generation of
	// a base zone.
	MaxNumber = 999_999_999
	digitsMax = len("999999999")

	poolKeyMax = 8
)

// Validate refuses prefixes that make names which a zone or link cannot have,
// or names that stand for two things: a link's prefix must not end in a digit,
// and the two of links must differ.
func (p Prefixes) Validate() error {
	for _, c := range []struct {
		what, prefix string
		rest         int // the longest that follows
		also         string
		max          int
		may          bool // be empty
	}{
		{"zone prefix", p.Zone, uuidLength, "._-", zoneNameMax, false},
		{"base zone prefix", p.Base, len("__") + poolKeyMax + digitsMax, "._-", zoneNameMax, false},
		{"VNIC prefix", p.VNIC, digitsMax, "_", linkNameMax, false},
		{"guest VNIC prefix", p.Guest, digitsMax, "_", linkNameMax, false},
		{"zone prefix of another tool", p.OtherZone, uuidLength, "._-", zoneNameMax, true},
		{"VNIC prefix of another tool", p.OtherVNIC, digitsMax, "_", linkNameMax, true},
	} {
		link := c.max == linkNameMax
		switch {
		case c.prefix == "" && c.may:
			continue
		case c.prefix == "":
			return fmt.Errorf("%s is empty", c.what)
		case len(c.prefix)+c.rest > c.max:
			return fmt.Errorf("%s %q is longer than %d bytes", c.what, c.prefix, c.max-c.rest)
		case !letter(c.prefix[0]) && (link || !digit(c.prefix[0])):
			return fmt.Errorf("%s %q does not begin with a letter", c.what, c.prefix)
		case strings.HasPrefix(c.prefix, "SUNW"):
			return fmt.Errorf("%s %q: names that begin with SUNW are reserved", c.what, c.prefix)
		case link && digit(c.prefix[len(c.prefix)-1]):
			return fmt.Errorf("%s %q ends in a digit, which would run into the number", c.what, c.prefix)
		}
		for i := range len(c.prefix) {
			if b := c.prefix[i]; !letter(b) && !digit(b) && !strings.Contains(c.also, string(b)) {
				return fmt.Errorf("%s %q: %q is not allowed", c.what, c.prefix, b)
			}
		}
	}
	if p.Guest == p.VNIC || p.Guest == p.OtherVNIC || p.Guest == probeVNIC {
		return fmt.Errorf("guest VNIC prefix %q is that of control VNICs", p.Guest)
	}
	return nil
}

// ZoneName is the zone of the Propolis server with this id.
func (p Prefixes) ZoneName(propolis uuid.UUID) string { return p.Zone + propolis.String() }

// ParseZoneName is the inverse of ZoneName; it also reads the names of the other
// tool and of a probe. Other spellings of a UUID than String's are no zone names.
func (p Prefixes) ParseZoneName(name string) (propolis uuid.UUID, ok bool) {
	for _, prefix := range []string{p.Zone, p.OtherZone, probeZone} {
		if rest, found := strings.CutPrefix(name, prefix); found && prefix != "" {
			if id, ok := parseUUID(rest); ok {
				return id, true
			}
		}
	}
	return uuid.Nil, false
}

// Base is a base zone, from which the zones of a pool are cloned.
type Base struct {
	Pool       string // the pool's key: see PoolKey
	Generation int    // 1 to MaxNumber; each rebuilding is a new one
}

// PoolKey is what stands for a pool in the name of a base zone: the first eight
// characters of its UUID, or of its name if that holds none. Characters that a
// zone name cannot have are written '-'.
func PoolKey(pool string) string {
	key := pool
	if k, id := ParsePool(pool); k != OtherPool {
		key = id.String()
	}
	key = key[:min(len(key), poolKeyMax)]
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (letter(byte(r)) || digit(byte(r)) || strings.ContainsRune("._-", r)) {
			return r
		}
		return '-'
	}, strings.ToValidUTF8(key, "-"))
}

// BaseName is the base zone of a generation on a pool, given by its name.
func (p Prefixes) BaseName(pool string, generation int) string {
	return p.Base + "_" + PoolKey(pool) + "_" + strconv.Itoa(generation)
}

// ParseBaseName is the inverse of BaseName, up to the pool's key.
func (p Prefixes) ParseBaseName(name string) (Base, bool) {
	rest, found := strings.CutPrefix(name, p.Base+"_")
	cut := strings.LastIndexByte(rest, '_')
	if !found || cut < 1 {
		return Base{}, false
	}
	generation, ok := parseNumber(rest[cut+1:])
	b := Base{Pool: rest[:cut], Generation: generation}
	return b, ok && generation > 0 && PoolKey(b.Pool) == b.Pool
}

// Role is the purpose of a zone or VNIC that sledctl made.
type Role string

// The roles.
const (
	RoleNone     Role = ""         // the name does not show it
	RoleInstance Role = "instance" // an instance's zone, or the dataset that holds it
	RoleBase     Role = "base"     // a base zone, or the dataset that holds it
	RoleControl  Role = "control"  // the VNIC over which Propolis is reached
	RoleGuest    Role = "guest"    // a VNIC of the guest
)

// ControlVNIC is the n-th control VNIC, 0 to MaxNumber.
func (p Prefixes) ControlVNIC(n int) string { return p.VNIC + strconv.Itoa(n) }

// GuestVNIC is the n-th guest VNIC, 0 to MaxNumber.
func (p Prefixes) GuestVNIC(n int) string { return p.Guest + strconv.Itoa(n) }

// ParseVNIC is the inverse of ControlVNIC and GuestVNIC; it also reads the names
// of the other tool's and of a probe's control VNICs. One prefix may begin with the
// other: what follows it must be a number, written as we write it.
func (p Prefixes) ParseVNIC(name string) (role Role, n int, ok bool) {
	for _, c := range []struct {
		prefix string
		role   Role
	}{{p.Guest, RoleGuest}, {p.VNIC, RoleControl}, {p.OtherVNIC, RoleControl}, {probeVNIC, RoleControl}} {
		if rest, found := strings.CutPrefix(name, c.prefix); found && c.prefix != "" {
			if n, ok := parseNumber(rest); ok {
				return c.role, n, true
			}
		}
	}
	return RoleNone, 0, false
}

// parseNumber reads 0 to MaxNumber, and only its shortest spelling.
func parseNumber(s string) (int, bool) {
	if s == "" || len(s) > digitsMax || s[0] == '0' && len(s) > 1 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// parseUUID reads only the form that String writes.
func parseUUID(s string) (uuid.UUID, bool) {
	id, err := uuid.Parse(s)
	return id, err == nil && len(s) == uuidLength && s == strings.ToLower(s)
}

func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }
func digit(b byte) bool  { return b >= '0' && b <= '9' }
