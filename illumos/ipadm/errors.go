package ipadm

import (
	"errors"
	"regexp"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// The kinds of failure that are addresses' own.
var (
	// ErrDuplicate is an address that somebody else on the network has. It stays
	// so until the address is made again.
	ErrDuplicate = errors.New("duplicate address")
	// ErrAddressInUse is an address that this very zone has already.
	ErrAddressInUse = errors.New("address is in use")
)

// rule gives a kind to a text, which must be all that ipadm said on standard
// error. The texts are those of
// usr/src/cmd/cmd-inet/usr.sbin/ipadm/ipadm.c with those of ipadm_errors in
// usr/src/lib/libipadm/common/libipadm.c.
type rule struct {
	text string // regular expression for the whole text behind "ipadm: "
	kind error
}

func rules() []rule {
	return []rule{
		{`Could not get address: Object not found`, host.ErrNotFound},
		{`Address object not found`, host.ErrNotFound}, // before illumos 16677
		{`could not delete address: Object not found`, host.ErrNotFound},
		{`Could not delete [^ ]+: Interface does not exist`, host.ErrNotFound},
		{`Could not get interface\(s\): Interface does not exist`, host.ErrNotFound},
		{`set-ifprop: [a-z]+: Interface does not exist`, host.ErrNotFound},
		{`Could not create [^ ]+ : Interface already exists`, host.ErrExists},
		{`Could not create address: Address object already exists`, host.ErrExists},
		{`Could not create address: Addrconf already in progress`, host.ErrExists},
		{`Could not create address: Address already in use`, ErrAddressInUse},
		{`Could not create (address|[^ ]+ ): Interface already in use`, host.ErrBusy},
		{`Could not open handle to library - Could not communicate with ipmgmtd`, host.ErrTransient},
		{`.+: Could not communicate with ipmgmtd`, host.ErrTransient},
		{`.+: Persistent operation on temporary object`, host.ErrRefused},
		{`.+: Operation not permitted on from-gz interface`, host.ErrRefused},
		{`.+: (Permission denied|Insufficient user authorizations)`, host.ErrPrivileges},
	}
}

// failure is the error of a command that failed. ipadm writes the newline after
// its message to standard output.
func failure(c host.Command, r host.Result) error {
	e := &host.CommandError{Command: c, Result: r}
	switch {
	case r.Unknown:
	case c.Program == "route":
		e.Means = routeKind(r)
	case c.Program == "ipadm":
		text, ok := strings.CutPrefix(strings.TrimSpace(string(r.Stderr)), "ipadm: ")
		for _, rule := range rules() {
			if ok && regexp.MustCompile(`^(?:`+rule.text+`)$`).MatchString(text) {
				e.Means = rule.kind
				break
			}
		}
	}
	return e
}

// routeKind reads the exit code of route(8), which is the errno that the kernel
// answered, with the words that it prints on standard output. Both must agree:
// 3 is also what a program that cannot be run may leave
// (usr/src/cmd/cmd-inet/usr.sbin/route.c, newroute).
//
// Guess route-refusal-texts: a destination or gateway that is no address is "bad value"; "no such
// interface" goes to standard error (route.c).
// Check: `route add default x`; redirect the streams apart
func routeKind(r host.Result) error {
	line := strings.TrimSpace(string(r.Stdout))
	for _, k := range []struct {
		exit  int
		words string
		kind  error
	}{
		{3, ": not in table", host.ErrNotFound},
		{17, ": entry exists", host.ErrExists},
		{128, ": Network is unreachable", host.ErrTransient}, // the gateway's network is not up yet
	} {
		if r.Exit == k.exit && strings.HasSuffix(line, k.words) && !strings.Contains(line, "\n") {
			return k.kind
		}
	}
	return nil
}
