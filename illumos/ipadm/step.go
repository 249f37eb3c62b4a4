package ipadm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/sledctl/sledctl/host"
)

// In all steps Zone is where the command runs; empty is where we are.

// DeleteInterface unplumbs a link, with its addresses and routes. Errors:
// host.ErrNotFound.
type DeleteInterface struct{ Zone, Link string }

// CreateAddress makes an address object, and its interface if that is missing.
// It does not wait until the address is usable: AwaitAddress does. A static
// IPv6 address needs a link-local one on the interface first (Addrconf).
// Errors: host.ErrExists for the object, whatever its address is;
// ErrAddressInUse, *ObjectError.
type CreateAddress struct {
	Zone, Object string
	Type         string // Static, DHCP, Addrconf
	Address      string // of a static one, with its length: 10.0.0.5/24
}

// AwaitAddress waits until an address object has an address in state ok.
// Errors: ErrDuplicate, at once; host.ErrNotFound; the context's.
type AwaitAddress struct {
	Zone, Object string
	// Routed waits for one that is not link-local: an addrconf object has a
	// link-local one at once, and others when a router has told its prefix.
	Routed bool
}

// DeleteAddress removes an address object. Errors: host.ErrNotFound.
type DeleteAddress struct {
	Zone, Object string
	// Unplumb removes the interface too, if this was its last address: a link
	// that is plumbed cannot be deleted.
	Unplumb bool
}

// Verb names the step.
func (DeleteInterface) Verb() string { return "ipadm.delete-interface" }

// Verb names the step.
func (CreateAddress) Verb() string { return "ipadm.create-address" }

// Verb names the step.
func (AwaitAddress) Verb() string { return "ipadm.await-address" }

// Limit is how long DHCP may take.
func (AwaitAddress) Limit() (most time.Duration, waits bool) { return 2 * time.Minute, true }

// Verb names the step.
func (DeleteAddress) Verb() string { return "ipadm.delete-address" }

// Undo is nil.
func (DeleteInterface) Undo() any { return nil }

// Undo is DeleteAddress, of the interface too.
func (s CreateAddress) Undo() any {
	return DeleteAddress{Zone: s.Zone, Object: s.Object, Unplumb: true}
}

// Undo is nil.
func (AwaitAddress) Undo() any { return nil }

// Undo is nil.
func (DeleteAddress) Undo() any { return nil }

// Explain is the delete-if.
func (s DeleteInterface) Explain() []host.Line {
	return []host.Line{host.CommandLine(deleteInterfaceCommand(s.Zone, s.Link))}
}

// Explain is the create-addr; nothing if Do would refuse the values.
func (s CreateAddress) Explain() []host.Line {
	if s.check() != nil {
		return nil
	}
	return []host.Line{host.CommandLine(createAddressCommand(s))}
}

// Needs is what looks at addresses.
func (s AwaitAddress) Needs() []string { return []string{listAddressesCommand(s.Zone).Argv()[0]} }

// Explain says what is waited for.
func (s AwaitAddress) Explain() []host.Line {
	where := ""
	if s.Zone != "" {
		where = " of zone " + s.Zone
	}
	if s.Routed {
		return []host.Line{host.WaitLine("address " + s.Object + where + " is ok and not only link-local")}
	}
	return []host.Line{host.WaitLine("address " + s.Object + where + " is ok")}
}

// Explain is the delete-addr; with Unplumb, the delete-if that follows if no
// address is left.
func (s DeleteAddress) Explain() []host.Line {
	lines := []host.Line{host.CommandLine(deleteAddressCommand(s.Zone, s.Object))}
	if s.Unplumb {
		lines = append(lines, host.CommandLine(deleteInterfaceCommand(s.Zone, linkOf(s.Object))))
	}
	return lines
}

// Do removes it.
func (s DeleteInterface) Do(ctx context.Context, h host.Host) error {
	err := validateLink(s.Link)
	if err == nil {
		_, err = run(ctx, h, deleteInterfaceCommand(s.Zone, s.Link))
	}
	return about(err, "delete interface", s.Link, s.Zone)
}

// check refuses what ipadm would misunderstand or refuse. Without a length
// ipadm would take that of the address' class.
func (s CreateAddress) check() error {
	if err := ValidateObject(s.Object); err != nil {
		return err
	}
	switch s.Type {
	case DHCP, Addrconf:
		if s.Address != "" {
			return fmt.Errorf("address object %s: a %s address is not chosen", s.Object, s.Type)
		}
		return nil
	case Static:
		p, err := netip.ParsePrefix(s.Address)
		if err != nil || p.Addr().IsUnspecified() || p.Addr().Is4In6() {
			return fmt.Errorf("address object %s: %q is no address with a length", s.Object, s.Address)
		}
		return nil
	}
	return fmt.Errorf("address object %s: no type %q: %s, %s or %s", s.Object, s.Type, Static, DHCP, Addrconf)
}

// Do makes it. What ipadm cannot make it takes back itself; where it says that it
// failed and the object is there all the same, it is removed.
func (s CreateAddress) Do(ctx context.Context, h host.Host) error {
	err := s.check()
	if err == nil {
		_, err = run(ctx, h, createAddressCommand(s))
		err = s.cleanUp(ctx, h, err)
	}
	return about(err, "create address", s.Object, s.Zone)
}

// cleanupTime is how long removing what is half made may take.
const cleanupTime = 10 * time.Second

// cleanUp removes what a failed command made, within its own time limit. What
// existed before is not removed.
func (s CreateAddress) cleanUp(ctx context.Context, h host.Host, cause error) error {
	if cause == nil || errors.Is(cause, host.ErrExists) || errors.Is(cause, host.ErrStillRunning) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	_, err := show(ctx, h, s.Zone, s.Object)
	if err == nil {
		err = DeleteAddress{Zone: s.Zone, Object: s.Object, Unplumb: true}.Do(ctx, h)
	}
	if err != nil && !errors.Is(err, host.ErrNotFound) {
		return &host.LeftoverError{Cause: cause, Err: err}
	}
	return cause
}

// awaitPause is the time between two looks. There is nothing to wait on: ipadm
// has no waiting form, and sledctl does not read the routing socket.
const awaitPause = 10 * time.Millisecond

// Do waits. An ipmgmtd(8) that does not run yet is waited for, too.
func (s AwaitAddress) Do(ctx context.Context, h host.Host) error {
	began := time.Now()
	seen := errors.New("nothing was seen of it")
	for ctx.Err() == nil {
		usable, state, err := s.look(ctx, h)
		switch {
		case usable:
			return nil
		case err == nil:
			seen = fmt.Errorf("state %q", state)
		case errors.Is(err, host.ErrTransient):
			seen = err
		case ctx.Err() == nil:
			return about(err, "wait for address", s.Object, s.Zone)
		}
		timer := time.NewTimer(awaitPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	waited := time.Since(began).Round(time.Millisecond)
	return about(fmt.Errorf("after %v: %w: %w", waited, ctx.Err(), seen), "wait for address", s.Object, s.Zone)
}

// look asks once.
func (s AwaitAddress) look(ctx context.Context, h host.Host) (usable bool, state string, err error) {
	all, err := show(ctx, h, s.Zone, s.Object)
	for _, a := range all {
		state = a.State
		switch {
		case a.State == Duplicate:
			return false, state, fmt.Errorf("%s: %w", a.Address, ErrDuplicate)
		case a.State == OK && a.Address.IsValid() && s.Routed && a.Address.Addr().IsLinkLocalUnicast():
			state = OK + ", link-local only: no router has told a prefix"
		case a.State == OK && a.Address.IsValid():
			usable = true
		}
	}
	return usable && err == nil, state, err
}

// Do removes it.
func (s DeleteAddress) Do(ctx context.Context, h host.Host) error {
	err := ValidateObject(s.Object)
	if err == nil {
		_, err = run(ctx, h, deleteAddressCommand(s.Zone, s.Object))
	}
	if err == nil && s.Unplumb {
		err = unplumb(ctx, h, s.Zone, linkOf(s.Object))
	}
	return about(err, "delete address", s.Object, s.Zone)
}

// unplumb removes an interface that has no address.
//
// Guess interface-without-addresses: `show-addr IF/` without addresses prints nothing or "Object
// not found": both are understood.
// Check: that line
func unplumb(ctx context.Context, h host.Host, zone, link string) error {
	_, err := show(ctx, h, zone, link+"/")
	if !errors.Is(err, host.ErrNotFound) {
		return err
	}
	_, err = run(ctx, h, deleteInterfaceCommand(zone, link))
	return err
}

// about says what was being done, and where.
func about(err error, verb, what, zone string) error {
	switch {
	case err == nil:
		return nil
	case zone != "":
		return fmt.Errorf("%s %s in zone %s: %w", verb, what, zone, err)
	}
	return fmt.Errorf("%s %s: %w", verb, what, err)
}
