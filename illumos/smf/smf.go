// Package smf drives the service management facility of zones: states, waits,
// enabling, site profiles, manifests, and repositories that know them before
// the first boot.
//
// Two things shape it. A zone's svc.configd answers only some time after the
// zone has started to run, and for a while longer it knows instances that have
// no state yet: both are "not yet", never "absent". And svcprop -w is edge
// triggered from its own start, so a change just before it is lost: a wait
// reads the state again after each start of it.
package smf

import "strings"

// The states of smf(7), as svcs(1) and svcprop(1) print them.
const (
	Uninitialized = "uninitialized"
	Offline       = "offline"
	Online        = "online"
	Degraded      = "degraded"
	Maintenance   = "maintenance" // an administrator has to clear it
	Disabled      = "disabled"
)

// Service is a service instance of a listing.
type Service struct {
	FMRI  string
	State string // as printed, without the asterisk; "-" before it has one
	// Moving is set while the instance is on its way to another state.
	Moving bool
}

// SplitFMRI parts svc:/SERVICE:INSTANCE. The instance is empty if the FMRI
// names none.
func SplitFMRI(fmri string) (service, instance string) {
	service, instance, _ = strings.Cut(strings.TrimPrefix(fmri, "svc:/"), ":")
	return service, instance
}

// LogPath is where a service's log lies inside its zone (svc.startd(8)).
func LogPath(fmri string) string {
	name := strings.ReplaceAll(strings.TrimPrefix(fmri, "svc:/"), "/", "-")
	return "/var/svc/log/" + name + ".log"
}
