package vnic

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// ErrMACInUse is the kind of a creation that failed because another VNIC over
// the same link, on the same VLAN, has the address.
var ErrMACInUse = errors.New("MAC address is in use")

// errNoColumn is the kind of a listing with a column that this distribution's dladm
// does not have.
var errNoColumn = errors.New("dladm has no such column")

// rule gives a kind to a text, which must be all that dladm said. The texts
// are those of usr/src/cmd/dladm/dladm.c with the statuses of dladm_status2str in
// usr/src/lib/libdladm/common/libdladm.c.
type rule struct {
	text string // regular expression for the whole line behind "dladm: "
	kind error
}

// rulesFor are the rules of a command about one link. Texts that name another
// link have no kind.
//
// Guess vnic-refusal-texts: `delete-vnic` of a physical link says "object not found"; factory or
// VRRP addresses on hardware without slots "operation not supported".
// Check: those commands
func rulesFor(link string) []rule {
	link = regexp.QuoteMeta(link)
	return []rule{
		{`link ` + link + ` is not valid: object not found`, host.ErrNotFound},
		{`invalid vnic name '` + link + `': object not found`, host.ErrNotFound},
		{`invalid link name '` + link + `'`, host.ErrNotFound}, // names are checked before they meet dladm, so it does not mean the spelling
		{`vnic creation over [^ ]+ failed: object already exists`, host.ErrExists},
		{`etherstub creation failed: object already exists`, host.ErrExists},
		{`vnic creation over [^ ]+ failed: MAC address is already in use`, ErrMACInUse},
		{`vnic deletion failed: link busy`, host.ErrBusy},
		{`warning: cannot set link property '[a-z-]+' on '` + link + `': link busy`, host.ErrBusy},
		{`'` + link + `' is not (a vnic|an etherstub)`, host.ErrRefused},
		{`VLAN over '[^']+' may not use default_tag ID \(see dladm\([^)]*\)\)`, host.ErrRefused},
		{"unknown output field: `zone'", errNoColumn},
		{`.+: permission denied`, host.ErrPrivileges},
		{`.+: try again later`, host.ErrTransient},
	}
}

// failure is the error of a command that ended badly.
func failure(c host.Command, r host.Result, link string) error {
	e := &host.CommandError{Command: c, Result: r}
	text, ok := strings.CutPrefix(strings.TrimSuffix(string(r.Stderr), "\n"), "dladm: ")
	if !ok || strings.Contains(text, "\n") {
		return e
	}
	for _, rule := range rulesFor(link) {
		if regexp.MustCompile(`^(?:` + rule.text + `)$`).MatchString(text) {
			e.Means = rule.kind
			break
		}
	}
	return e
}

// OtherError is a VNIC that is not the one that was meant: the name is the
// same, the address or the lower link are not. Its kind is host.ErrRefused.
type OtherError struct {
	Name             string
	MAC, Over        string // what it has
	WantMAC, OverWas string // what was meant
}

// Error shows both.
func (e *OtherError) Error() string {
	return fmt.Sprintf("VNIC %s has %s over %s, not %s over %s: it is another one", e.Name, e.MAC, e.Over, e.WantMAC, e.OverWas)
}

func (*OtherError) Kind() fault.Kind { return fault.Failed }

// Unwrap is the kind.
func (e *OtherError) Unwrap() error { return host.ErrRefused }
