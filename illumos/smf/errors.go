package smf

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// ErrNoZone is a zone that nobody has configured. It is a host.ErrNotFound.
var ErrNoZone = fmt.Errorf("zone %w", host.ErrNotFound)

// errNoState is an instance that the restarter has not got to yet: svc.configd
// answers, but there is nothing to wait on.
var errNoState = fmt.Errorf("no state yet: %w", host.ErrTransient)

// MaintenanceError is a service that will not reach a state by itself.
type MaintenanceError struct {
	Zone, FMRI string
	Wanted     string // the state that was waited for
}

// Error names the service and its log, which holds the reason.
func (e *MaintenanceError) Error() string {
	where := "in zone " + e.Zone
	if e.Zone == "" {
		where = "in the global zone"
	}
	return fmt.Sprintf("service %s %s is in maintenance, not %s (its log is %s there)", e.FMRI, where, e.Wanted, LogPath(e.FMRI))
}

func (*MaintenanceError) Kind() fault.Kind { return fault.Failed }

// Unwrap is host.ErrState.
func (e *MaintenanceError) Unwrap() error { return host.ErrState }

// failure types what a command said. The texts are those of svcs.c, svcprop.c,
// svcadm.c (usr/src/cmd/svc) and of scf_get_msg and scf_strerror
// (usr/src/lib/libscf/common/error.c).
func failure(c host.Command, r host.Result) error {
	return &host.CommandError{Command: c, Result: r, Means: kind(string(r.Stderr))}
}

func kind(words string) error {
	for _, known := range []struct {
		text string
		kind error
	}{
		{"repository server unavailable", host.ErrTransient},   // svc.configd does not answer yet
		{"connection to repository broken", host.ErrTransient}, // it went away
		{"Connection to repository server broken", host.ErrTransient},
		{"Couldn't find property", errNoState}, // the restarter has not got to the instance yet
		{"Not found.", errNoState},             // the same, from svcprop -w
		{"invalid zone '", ErrNoZone},
		{"doesn't match any ", host.ErrNotFound},
		{"only be used from the global zone", host.ErrPrivileges},
		{"Permission denied", host.ErrPrivileges},
	} {
		if strings.Contains(words, known.text) {
			return known.kind
		}
	}
	return nil
}
