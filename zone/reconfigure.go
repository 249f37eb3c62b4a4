package zone

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/host"
)

// Reconfigure changes the resources of a zone that is configured as Old and is installed
// into those of New: it counts from the next boot (zonecfg of an installed zone
// refuses a change of zonepath and brand, and no other: set_func of
// usr/src/cmd/zonecfg/zonecfg.c). What is not a resource must be the same in both.
// A zone that is not as Old is left alone (host.ErrState).
//
// Guess zonecfg-changes-installed-zone: zonecfg of an installed zone, also of one that runs, removes
// and adds attrs, fs, net and device in one batch, and they count from its next boot
// (`zone.reconfigure`, for spares).
// Check: `sledctl instance ensure web1 --explain` with `instance.spares = 1`, run its zonecfg line,
// then `zonecfg -z ZONE export`
type Reconfigure struct {
	Name     string
	Old, New Config
	Running  bool // the zone runs, instead: what is changed counts from its next boot all the same
}

// Verb names the step.
func (Reconfigure) Verb() string { return "zone.reconfigure" }

// Undo is the way back.
func (s Reconfigure) Undo() any {
	return Reconfigure{Name: s.Name, Old: s.New, New: s.Old, Running: s.Running}
}

// wanted is the state in which the zone must be.
func (s Reconfigure) wanted() State {
	if s.Running {
		return Running
	}
	return Installed
}

// Needs is what lists zones.
func (s Reconfigure) Needs() []string { return []string{"zoneadm"} }

// Explain is the zonecfg; nothing if Do would refuse the values.
func (s Reconfigure) Explain() []host.Line {
	c, err := reconfigureCommand(s.Name, s.Old, s.New)
	if err != nil {
		return nil
	}
	return []host.Line{host.CommandLine(c)}
}

// Do changes the configuration and reads it back. A zonecfg that fails may have written
// a part of it, which is taken back.
func (s Reconfigure) Do(ctx context.Context, h host.Host) error {
	c, err := reconfigureCommand(s.Name, s.Old, s.New)
	if err != nil {
		return err
	}
	switch z, found, err := Find(ctx, h, s.Name); {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("zone %s: %w", s.Name, host.ErrNotFound)
	case z.State != s.wanted():
		return &StateError{Zone: s.Name, State: z.State, Wanted: []State{s.wanted()}}
	}
	if err := s.is(h.Files(), s.Old); err != nil {
		if wrong, ok := errors.AsType[*MismatchError](err); ok {
			d := wrong.Differences[0]
			return fmt.Errorf("zone %s: %s is %s, expected %s: %w", s.Name, d.Property, cmp.Or(d.Found, "absent"), cmp.Or(d.Wanted, "absent"), host.ErrState)
		}
		return err
	}
	if err := s.change(ctx, h, c, s.New); err != nil {
		return cleanUp(ctx, err, func(ctx context.Context) error { return s.takeBack(ctx, h) })
	}
	return nil
}

// change runs the zonecfg and reads back what it should have made. What it returns has
// changed the zone perhaps.
func (s Reconfigure) change(ctx context.Context, h host.Host, c host.Command, wanted Config) error {
	r, err := h.Run(ctx, c)
	if err != nil {
		return err
	}
	if err := zonecfgFailure(c, r, s.Name); err != nil {
		return err
	}
	return s.is(h.Files(), wanted)
}

// takeBack makes the zone as Old again, from whatever it is.
func (s Reconfigure) takeBack(ctx context.Context, h host.Host) error {
	found, err := ReadConfig(h.Files(), s.Name)
	if err != nil || len(Compare(s.Old, found)) == 0 {
		return err
	}
	c, err := reconfigureCommand(s.Name, found, s.Old)
	if err != nil {
		return err
	}
	return s.change(ctx, h, c, s.Old)
}

// is fails unless the zone is configured like that.
func (s Reconfigure) is(f host.Files, wanted Config) error {
	found, err := ReadConfig(f, s.Name)
	if err != nil {
		return err
	}
	if d := Compare(wanted, found); len(d) > 0 {
		return &MismatchError{Zone: s.Name, Differences: d}
	}
	return nil
}
