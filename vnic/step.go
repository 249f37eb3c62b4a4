package vnic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Create makes a temporary VNIC. A link of that name must not exist, not even
// one that a zone has: where dladm allows a second one, the zone could not
// give its link back (illumos 10001). Errors: host.ErrExists, ErrMACInUse,
// *NameError, *MACError.
type Create struct {
	Name, Over string
	MAC        string // as ParseMAC gives it
	VLAN       int    // 1..4094; 0: untagged
	MTU        int    // bytes; 0: that of the lower link
	Mbps       int    // million bits that go through in a second, each way; 0: as many as can
}

// Delete removes a VNIC, if it is the one that was meant: MAC and lower link
// must be these (*OtherError). A busy one is tried again until the context
// ends; a link can stay busy for seconds after its zone was halted
// (omicron#2656).
type Delete struct{ Name, MAC, Over string }

// SetMTU sets the MTU of a VNIC that is there, if it is the one that was meant
// (*OtherError): of one whose Create was cut short before it did.
type SetMTU struct {
	Name, MAC, Over string
	MTU             int // bytes
}

// CreateEtherstub makes a temporary etherstub. Errors: host.ErrExists,
// *NameError.
type CreateEtherstub struct{ Name string }

// DeleteEtherstub removes an etherstub. One with VNICs over it is host.ErrBusy.
type DeleteEtherstub struct{ Name string }

// Verb names the step.
func (Create) Verb() string { return "vnic.create" }

// Verb names the step.
func (Delete) Verb() string { return "vnic.delete" }

// Verb names the step.
func (SetMTU) Verb() string { return "vnic.set-mtu" }

// Verb names the step.
func (CreateEtherstub) Verb() string { return "vnic.create-etherstub" }

// Verb names the step.
func (DeleteEtherstub) Verb() string { return "vnic.delete-etherstub" }

// Undo is Delete.
func (s Create) Undo() any { return Delete{Name: s.Name, MAC: s.MAC, Over: s.Over} }

// Undo is nil.
func (Delete) Undo() any { return nil }

// Undo is nil: the MTU goes with the VNIC.
func (SetMTU) Undo() any { return nil }

// Undo is DeleteEtherstub.
func (s CreateEtherstub) Undo() any { return DeleteEtherstub(s) }

// Undo is nil.
func (DeleteEtherstub) Undo() any { return nil }

// Explain is the create-vnic, and a set-linkprop for the MTU and for Mbps if they are asked for;
// nothing if Do would refuse the values.
func (s Create) Explain() []host.Line {
	if s.check() != nil {
		return nil
	}
	lines := []host.Line{host.CommandLine(createCommand(s))}
	if s.MTU != 0 {
		lines = append(lines, host.CommandLine(setMTUCommand(s.Name, s.MTU)))
	}
	return append(lines, s.limits().Explain()...)
}

// limits sets those that a VNIC keeps while zones come and go.
func (s Create) limits() SetLimits { return SetLimits{Name: s.Name, Limits: Limits{Mbps: s.Mbps}} }

// Explain is the delete-vnic.
func (s Delete) Explain() []host.Line { return []host.Line{host.CommandLine(deleteCommand(s.Name))} }

// Explain is the set-linkprop.
func (s SetMTU) Explain() []host.Line {
	return []host.Line{host.CommandLine(setMTUCommand(s.Name, s.MTU))}
}

// Explain is the create-etherstub.
func (s CreateEtherstub) Explain() []host.Line {
	return []host.Line{host.CommandLine(createEtherstubCommand(s.Name))}
}

// Explain is the delete-etherstub.
func (s DeleteEtherstub) Explain() []host.Line {
	return []host.Line{host.CommandLine(deleteEtherstubCommand(s.Name))}
}

// check refuses what dladm would misunderstand or refuse.
func (s Create) check() error {
	mac, err := ParseMAC(s.MAC)
	if err == nil && mac != s.MAC {
		err = &MACError{s.MAC, "is not in the form " + mac}
	}
	if err := errors.Join(ValidateName(s.Name), ValidateName(s.Over), err); err != nil {
		return err
	}
	if s.VLAN < 0 || s.VLAN > 4094 {
		return fmt.Errorf("VLAN %d: 1 to 4094 are allowed, 0 is untagged", s.VLAN)
	}
	if s.MTU < 0 {
		return fmt.Errorf("MTU %d is negative", s.MTU)
	}
	if s.Mbps < 0 {
		return fmt.Errorf("%d Mbit/s is negative", s.Mbps)
	}
	return nil
}

// Do makes it, and sets the MTU and Mbps afterwards; if that fails the VNIC is removed.
func (s Create) Do(ctx context.Context, h host.Host) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("create VNIC: %w", err)
	}
	if err := absent(ctx, h, s.Name); err != nil {
		return fmt.Errorf("create VNIC %s: %w", s.Name, err)
	}
	if _, err := run(ctx, h, createCommand(s), s.Over); err != nil {
		err = fmt.Errorf("create VNIC %s: %w", s.Name, err)
		if !unexplained(err) {
			return err
		}
		return s.cleanUp(ctx, h, err)
	}
	if s.MTU != 0 {
		if err := setMTU(ctx, h, s.Name, s.MTU); err != nil {
			return s.cleanUp(ctx, h, err)
		}
	}
	return s.cleanUp(ctx, h, s.limits().set(ctx, h))
}

func (s Create) cleanUp(ctx context.Context, h host.Host, cause error) error {
	return cleanUp(ctx, cause, func(ctx context.Context) error {
		return Delete{Name: s.Name, MAC: s.MAC, Over: s.Over}.Do(ctx, h)
	})
}

// cleanUp removes what is half made if there was an error and the command has ended.
// It must not depend on the step's context, whose end may be why the command failed.
func cleanUp(ctx context.Context, cause error, remove func(context.Context) error) error {
	if cause == nil || errors.Is(cause, host.ErrStillRunning) {
		return cause
	}
	return host.CleanUp(ctx, cleanupTime, cause, remove)
}

// cleanupTime is how long removing what is half made may take.
const cleanupTime = 10 * time.Second

// setMTU sets it and reads it back.
func setMTU(ctx context.Context, h host.Host, name string, want int) error {
	if _, err := run(ctx, h, setMTUCommand(name, want), name); err != nil {
		return fmt.Errorf("set the MTU of VNIC %s: %w", name, err)
	}
	out, err := run(ctx, h, showMTUCommand(name), name)
	if err != nil {
		return fmt.Errorf("read the MTU of VNIC %s: %w", name, err)
	}
	switch mtu, err := parseMTU(out); {
	case err != nil:
		return fmt.Errorf("read the MTU of VNIC %s: %w", name, err)
	case mtu != want:
		return fmt.Errorf("VNIC %s has an MTU of %d although %d was set", name, mtu, want)
	}
	return nil
}

// Do sets it.
func (s SetMTU) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return fmt.Errorf("set MTU: %w", err)
	}
	if err := meant(ctx, h, s.Name, s.MAC, s.Over); err != nil {
		return fmt.Errorf("set the MTU of VNIC %s: %w", s.Name, err)
	}
	return setMTU(ctx, h, s.Name, s.MTU)
}

// absent is host.ErrExists if there is a link of that name.
func absent(ctx context.Context, h host.Host, name string) error {
	_, err := run(ctx, h, showLinkCommand(name), name)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("there is a link of that name: %w", host.ErrExists)
}

// Do removes it. One that vanishes while it is busy is gone as wanted; one that
// did not exist at first is host.ErrNotFound.
func (s Delete) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return fmt.Errorf("delete VNIC: %w", err)
	}
	err := host.Patiently(ctx, func(attempt int) error {
		err := s.once(ctx, h)
		if attempt > 0 && errors.Is(err, host.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete VNIC %s: %w", s.Name, err)
	}
	return nil
}

// once looks whose it is and tries to delete it.
func (s Delete) once(ctx context.Context, h host.Host) error {
	if err := meant(ctx, h, s.Name, s.MAC, s.Over); err != nil {
		return err
	}
	_, err := run(ctx, h, deleteCommand(s.Name), s.Name)
	return unlessGone(ctx, h, s.Name, err)
}

// unlessGone is nil if a removal failed and the link is gone all the same.
func unlessGone(ctx context.Context, h host.Host, name string, failed error) error {
	if unexplained(failed) && absent(ctx, h, name) == nil {
		return nil
	}
	return failed
}

// unexplained is a command that failed with words that are not known: it may
// have done what it was to do all the same.
func unexplained(err error) bool {
	failed, ended := errors.AsType[*host.CommandError](err)
	return ended && failed.Means == nil
}

// meant is an *OtherError if the VNIC of that name is not the one.
func meant(ctx context.Context, h host.Host, name, mac, over string) error {
	isOver, is, err := identity(ctx, h, name)
	if err != nil {
		return err
	}
	if is != mac || isOver != over {
		return &OtherError{Name: name, MAC: is, Over: isOver, WantMAC: mac, OverWas: over}
	}
	return nil
}

// Do makes it.
func (s CreateEtherstub) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return fmt.Errorf("create etherstub: %w", err)
	}
	if err := absent(ctx, h, s.Name); err != nil {
		return fmt.Errorf("create etherstub %s: %w", s.Name, err)
	}
	if _, err := run(ctx, h, createEtherstubCommand(s.Name), s.Name); err != nil {
		err = fmt.Errorf("create etherstub %s: %w", s.Name, err)
		if !unexplained(err) {
			return err
		}
		return cleanUp(ctx, err, func(ctx context.Context) error { return DeleteEtherstub(s).Do(ctx, h) })
	}
	return nil
}

// Do removes it.
func (s DeleteEtherstub) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return fmt.Errorf("delete etherstub: %w", err)
	}
	_, err := run(ctx, h, deleteEtherstubCommand(s.Name), s.Name)
	if err := unlessGone(ctx, h, s.Name, err); err != nil {
		return fmt.Errorf("delete etherstub %s: %w", s.Name, err)
	}
	return nil
}
