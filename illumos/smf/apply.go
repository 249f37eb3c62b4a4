package smf

import (
	"context"

	"github.com/sledctl/sledctl/host"
)

// ApplyProfile has a zone that runs apply the site profile that lies in it, whatever it has
// applied before: what its next boot would do, now. Services keep running as they are, but
// for those that the profile enables or disables.
//
// Guess apply-counts-at-once: `svccfg apply` takes the running snapshots of the instances that it
// changes, so that a method which starts afterwards sees the profile's values without `svcadm refresh`.
// Check: `sledctl instance ensure web1` with `instance.spares_booted = 1`; in the zone, `svcprop -p
// config svc:/site/sledctl/propolis-server:default`
type ApplyProfile struct{ Zone string }

// Verb names the step.
func (ApplyProfile) Verb() string { return "smf.apply-profile" }

// Undo is nil: what it has changed goes with the zone.
func (ApplyProfile) Undo() any { return nil }

// Explain is the svccfg, in the zone.
func (s ApplyProfile) Explain() []host.Line {
	return []host.Line{host.CommandLine(applyCommand(s.Zone))}
}

// Do applies it. Errors: host.ErrTransient while the zone's svc.configd does not answer.
func (s ApplyProfile) Do(ctx context.Context, h host.Host) error {
	return change(ctx, h, applyCommand(s.Zone))
}
