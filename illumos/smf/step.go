package smf

import (
	"context"
	"errors"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Enable asks for an instance to run: until the next boot of the zone if
// Temporary, else for good. It does not wait: see Await. Zone "" is the global one.
type Enable struct {
	Zone, FMRI string
	Temporary  bool
}

// Disable asks for an instance to stop, as Enable does for the opposite.
type Disable struct {
	Zone, FMRI string
	Temporary  bool
}

// Verb names the step.
func (Enable) Verb() string { return "smf.enable" }

// Verb names the step.
func (Disable) Verb() string { return "smf.disable" }

// Undo is Disable.
func (s Enable) Undo() any { return Disable(s) }

// Undo is Enable.
func (s Disable) Undo() any { return Enable(s) }

// Explain is the svcadm.
func (s Enable) Explain() []host.Line {
	return []host.Line{host.CommandLine(enableCommand(s.Zone, s.FMRI, s.Temporary))}
}

// Explain is the svcadm.
func (s Disable) Explain() []host.Line {
	return []host.Line{host.CommandLine(disableCommand(s.Zone, s.FMRI, s.Temporary))}
}

// cleanupTime is how long taking back what failed may take.
const cleanupTime = 10 * time.Second

// Do enables the instance. Errors: host.ErrNotFound, host.ErrTransient while
// the zone's svc.configd does not answer, ErrNoZone. Where svcadm says that it
// failed and the instance is not disabled all the same, it is again.
func (s Enable) Do(ctx context.Context, h host.Host) error {
	cause := change(ctx, h, enableCommand(s.Zone, s.FMRI, s.Temporary))
	if cause == nil || errors.Is(cause, host.ErrStillRunning) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	state, err := State(ctx, h, s.Zone, s.FMRI)
	if err == nil && state != "disabled" {
		err = change(ctx, h, disableCommand(s.Zone, s.FMRI, s.Temporary))
	}
	if err != nil && !errors.Is(err, host.ErrNotFound) && !errors.Is(err, ErrNoZone) {
		return &host.LeftoverError{Cause: cause, Err: err}
	}
	return cause
}

// Do disables the instance, with the errors of Enable.
func (s Disable) Do(ctx context.Context, h host.Host) error {
	return change(ctx, h, disableCommand(s.Zone, s.FMRI, s.Temporary))
}

func change(ctx context.Context, h host.Host, c host.Command) error {
	r, err := h.Run(ctx, c)
	if err != nil {
		return err
	}
	if r.Exit != 0 {
		return failure(c, r)
	}
	return nil
}
