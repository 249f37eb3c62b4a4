package vnic

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/host"
)

// Lend moves a VNIC of the global zone into a zone that runs with an IP stack of its own, if
// the VNIC is the one that was meant (*OtherError): what zoneadmd does with the links of a
// zone's configuration as the zone boots (add_datalink in usr/src/cmd/zoneadmd/vplat.c). When
// the zone halts it is given back, as those are. One that a command looks at is busy, and
// is tried again until the context ends.
//
// Guess link-lent-to-running-zone: a zone that was booted without links takes one by `dladm
// set-linkprop -t -p zone=ZONE LINK`, and bhyve and ipadm in the zone use it as one of its
// configuration.
// Check: `sledctl instance ensure web1` with `instance.spares_booted = 1`
type Lend struct{ Name, MAC, Over, Zone string }

// TakeBack undoes Lend: the VNIC must not be in use in its zone, which is tried for until the
// context ends.
type TakeBack struct{ Name, MAC, Over, Zone string }

// Verb names the step.
func (Lend) Verb() string { return "vnic.lend" }

// Verb names the step.
func (TakeBack) Verb() string { return "vnic.take-back" }

// Undo is TakeBack.
func (s Lend) Undo() any { return TakeBack(s) }

// Undo is Lend.
func (s TakeBack) Undo() any { return Lend(s) }

// Explain is the set-linkprop.
func (s Lend) Explain() []host.Line {
	return []host.Line{host.CommandLine(setPropertyCommand(s.Name, zoneProperty, s.Zone))}
}

// Explain is the reset-linkprop.
func (s TakeBack) Explain() []host.Line {
	return []host.Line{host.CommandLine(resetPropertyCommand(s.Name, zoneProperty))}
}

// zoneProperty is whose a link is. It is never persistent (PD_TEMPONLY in
// usr/src/lib/libdladm/common/linkprop.c).
const zoneProperty = "zone"

// Do lends it. Where dladm failed with words that are not known, it is taken back.
func (s Lend) Do(ctx context.Context, h host.Host) error {
	err := move(ctx, h, s, setPropertyCommand(s.Name, zoneProperty, s.Zone))
	if err == nil {
		return nil
	}
	err = fmt.Errorf("lend VNIC %s to zone %s: %w", s.Name, s.Zone, err)
	if !unexplained(err) {
		return err
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return TakeBack(s).Do(ctx, h) })
}

// Do takes it back.
func (s TakeBack) Do(ctx context.Context, h host.Host) error {
	if err := move(ctx, h, Lend(s), resetPropertyCommand(s.Name, zoneProperty)); err != nil {
		return fmt.Errorf("take VNIC %s back from zone %s: %w", s.Name, s.Zone, err)
	}
	return nil
}

// move runs a command that moves a VNIC, once it is seen to be the one.
func move(ctx context.Context, h host.Host, s Lend, c host.Command) error {
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	return host.Patiently(ctx, func(int) error {
		if err := meant(ctx, h, s.Name, s.MAC, s.Over); err != nil {
			return err
		}
		_, err := run(ctx, h, c, s.Name)
		return err
	})
}
