package opte

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/sledctl/sledctl/host"
)

// SetUnderlay says over which two links ports reach other sleds. The driver does not tell which it
// has: where it has some, they are taken to be these, as the sled agent takes them
// (omicron, sled-agent/src/bootstrap/pre_server.rs).
type SetUnderlay struct{ First, Second string }

// Create makes a port, with addresses of one family: opteadm takes no others. A link of that name must
// not exist. Errors: host.ErrExists, ErrMACInUse, ErrNoUnderlay, ErrNoDriver, *VersionError.
//
// Guess port-has-any-name: a port may have any name that a link may have, and a guest's Propolis opens
// it by that name as it opens a VNIC.
// Check: `opteadm create-xde vnic_propolis_guest0 …`; `sledctl instance ensure NAME --nic opte,…`
type Create struct {
	Name     string
	MAC      string // lower case, two digits a group
	IP       netip.Addr
	Subnet   netip.Prefix // of the VPC, around IP
	Gateway  netip.Addr   // within it
	VNI      int          // of the VPC
	Physical netip.Addr   // IPv6, of the sled on the underlay
	// Outside the VPC, each of the family of IP:
	SNAT      string   // shared, as IP/FIRST-LAST, with these ports; empty: none
	Ephemeral string   // empty: none
	Floating  []string // preferred to the others
}

// Delete removes a port, if it is the one that was meant (*OtherError). A busy one is tried again until
// the context ends.
type Delete struct{ Name, MAC string }

// SetRules gives a port these rules, and takes all others off, at once. The port must be the one that was
// meant (*OtherError). Where the port stays if that is taken back, it gets those of Before.
type SetRules struct {
	Port, MAC string
	Rules     []Rule
	Stays     bool
	Before    []Rule
}

// AddRoute gives a port a route that it does not have: opteadm would add it a second time. Errors:
// host.ErrExists, *OtherError.
type AddRoute struct {
	Port, MAC string
	Route     Route
	Stays     bool // the port, if that is taken back
}

// RemoveRoute takes a route off a port. It must be the first one to its destination, for opteadm removes
// that one, whatever its target and class are (PartialEq of Rule<Finalized> in lib/opte/src/engine/rule.rs). Errors:
// host.ErrNotFound; host.ErrState where another one comes first; *OtherError.
type RemoveRoute struct {
	Port, MAC string
	Route     Route
}

// SetBoundary says by which switches, at IPv6 addresses of the underlay, what has a prefix outside leaves the rack. They
// are added to those that the driver has, until the sled reboots. Errors: ErrNoDriver, *VersionError, *InvalidError.
type SetBoundary struct {
	Prefix   string
	Switches []string
}

// Verb names the step.
func (SetBoundary) Verb() string { return "opte.set-boundary" }

// Undo is nil: other ports may need it.
func (SetBoundary) Undo() any { return nil }

// Explain is the set-v2b; nothing if Do would refuse the values.
func (s SetBoundary) Explain() []host.Line {
	if s.check() != nil {
		return nil
	}
	return []host.Line{host.CommandLine(setBoundaryCommand(s))}
}

// Do says it.
func (s SetBoundary) Do(ctx context.Context, h host.Host) error {
	err := s.check()
	if err == nil {
		_, err = run(ctx, h, setBoundaryCommand(s))
	}
	if err != nil {
		return fmt.Errorf("say how %s is reached outside the rack: %w", s.Prefix, err)
	}
	return nil
}

func (s SetBoundary) check() error {
	if p, err := netip.ParsePrefix(s.Prefix); err != nil || p != p.Masked() {
		return &InvalidError{"prefix", s.Prefix, "a network, e.g. 0.0.0.0/0"}
	}
	for _, text := range s.Switches {
		if at, err := netip.ParseAddr(text); err != nil || !at.Is6() || at.Is4In6() || at.Zone() != "" {
			return &InvalidError{"address of a switch", text, "an IPv6 address"}
		}
	}
	if len(s.Switches) == 0 {
		return &InvalidError{"address of a switch", "", "one at least"}
	}
	return nil
}

// Verb names the step.
func (SetUnderlay) Verb() string { return "opte.set-underlay" }

// Verb names the step.
func (Create) Verb() string { return "opte.create" }

// Verb names the step.
func (Delete) Verb() string { return "opte.delete" }

// Verb names the step.
func (SetRules) Verb() string { return "opte.set-rules" }

// Verb names the step.
func (AddRoute) Verb() string { return "opte.add-route" }

// Verb names the step.
func (RemoveRoute) Verb() string { return "opte.remove-route" }

// Undo is nil: another program may have set them, and uses them.
func (SetUnderlay) Undo() any { return nil }

// Undo is Delete.
func (s Create) Undo() any { return Delete{Name: s.Name, MAC: s.MAC} }

// Undo is nil.
func (Delete) Undo() any { return nil }

// Undo sets those of before; nil where they go with the port.
func (s SetRules) Undo() any {
	if !s.Stays {
		return nil
	}
	return SetRules{Port: s.Port, MAC: s.MAC, Rules: s.Before, Stays: true, Before: s.Rules}
}

// Undo is RemoveRoute; nil where the route goes with the port.
func (s AddRoute) Undo() any {
	if !s.Stays {
		return nil
	}
	return RemoveRoute{s.Port, s.MAC, s.Route}
}

// Undo is AddRoute.
func (s RemoveRoute) Undo() any { return AddRoute{s.Port, s.MAC, s.Route, true} }

// Explain is the set-xde-underlay.
func (s SetUnderlay) Explain() []host.Line {
	return []host.Line{host.CommandLine(setUnderlayCommand(s))}
}

// Explain is the create-xde; nothing if Do would refuse the values.
func (s Create) Explain() []host.Line {
	if s.check() != nil {
		return nil
	}
	return []host.Line{host.CommandLine(createCommand(s))}
}

// Explain is the delete-xde.
func (s Delete) Explain() []host.Line { return []host.Line{host.CommandLine(deleteCommand(s.Name))} }

// Explain is the set-fw-rules.
func (s SetRules) Explain() []host.Line { return []host.Line{host.CommandLine(setRulesCommand(s))} }

// Explain is the add-router-entry.
func (s AddRoute) Explain() []host.Line { return []host.Line{host.CommandLine(addRouteCommand(s))} }

// Explain is the del-router-entry.
func (s RemoveRoute) Explain() []host.Line {
	return []host.Line{host.CommandLine(removeRouteCommand(s))}
}

// Do sets them.
func (s SetUnderlay) Do(ctx context.Context, h host.Host) error {
	if _, err := run(ctx, h, setUnderlayCommand(s)); err != nil && !errors.Is(err, host.ErrExists) {
		return fmt.Errorf("set the links below OPTE's ports: %w", err)
	}
	return nil
}

// check refuses what opteadm would misunderstand or refuse.
func (s Create) check() error {
	switch {
	case !s.IP.IsValid() || !s.Subnet.Contains(s.IP):
		return &InvalidError{"address", s.IP.String(), "one within " + s.Subnet.String()}
	case !s.Subnet.Contains(s.Gateway) || s.Gateway == s.IP:
		return &InvalidError{"gateway", s.Gateway.String(), "another address within " + s.Subnet.String()}
	case s.VNI < 0 || s.VNI > MaxVNI:
		return &InvalidError{"VNI", fmt.Sprint(s.VNI), fmt.Sprintf("a number up to %d", MaxVNI)}
	case !s.Physical.Is6() || s.Physical.Is4In6():
		return &InvalidError{"address of the sled", s.Physical.String(), "an IPv6 address"}
	}
	return nil
}

// Do makes it. What fails for no known reason is looked at again, and removed if it is there.
func (s Create) Do(ctx context.Context, h host.Host) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("create port: %w", err)
	}
	err := Check(ctx, h)
	if err == nil {
		_, err = run(ctx, h, createCommand(s))
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("create port %s: %w", s.Name, err)
	if failed, ended := errors.AsType[*host.CommandError](err); !ended || failed.Means != nil || errors.Is(err, host.ErrStillRunning) {
		return err
	}
	return host.CleanUp(ctx, cleanupTime, err, func(ctx context.Context) error { return Delete{s.Name, s.MAC}.Do(ctx, h) })
}

// cleanupTime is how long removing what is half made may take.
const cleanupTime = 10 * time.Second

// meant is an *OtherError if the port of that name is not the one, and host.ErrNotFound if there is none.
func meant(ctx context.Context, h host.Host, name, mac string) error {
	ports, err := List(ctx, h)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(ports, func(p Listed) bool { return p.Name == name })
	switch {
	case i < 0:
		return fmt.Errorf("no such port: %w", host.ErrNotFound)
	case ports[i].MAC != mac:
		return fmt.Errorf("%w: %w", &OtherError{Name: name, MAC: ports[i].MAC, WantMAC: mac}, host.ErrRefused)
	}
	return nil
}

// Do removes it.
func (s Delete) Do(ctx context.Context, h host.Host) error {
	err := host.Patiently(ctx, func(attempt int) error {
		err := s.once(ctx, h)
		if attempt > 0 && errors.Is(err, host.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete port %s: %w", s.Name, err)
	}
	return nil
}

func (s Delete) once(ctx context.Context, h host.Host) error {
	if err := meant(ctx, h, s.Name, s.MAC); err != nil {
		return err
	}
	_, err := run(ctx, h, deleteCommand(s.Name))
	if failed, ended := errors.AsType[*host.CommandError](err); ended && failed.Means == nil && errors.Is(meant(ctx, h, s.Name, s.MAC), host.ErrNotFound) {
		return nil // it is gone all the same
	}
	return err
}

// Do sets them.
func (s SetRules) Do(ctx context.Context, h host.Host) error {
	err := meant(ctx, h, s.Port, s.MAC)
	if err == nil {
		_, err = run(ctx, h, setRulesCommand(s))
		err = unless(ctx, h, s.Port, err, func(in Inside) bool { return len(s.Rules) > 0 && in.HasRules(s.Rules) })
	}
	if err != nil {
		return fmt.Errorf("set the firewall of port %s: %w", s.Port, err)
	}
	return nil
}

// Do adds it.
func (s AddRoute) Do(ctx context.Context, h host.Host) error {
	err := meant(ctx, h, s.Port, s.MAC)
	var rows []Row
	if err == nil {
		rows, err = layer(ctx, h, s.Port, "router")
	}
	if err == nil && (Inside{Router: rows}).HasRoute(s.Route) {
		err = fmt.Errorf("it has %s: %w", s.Route, host.ErrExists)
	}
	if err == nil {
		_, err = run(ctx, h, addRouteCommand(s))
		err = unless(ctx, h, s.Port, err, func(in Inside) bool { return in.HasRoute(s.Route) })
	}
	if err != nil {
		return fmt.Errorf("add a route to port %s: %w", s.Port, err)
	}
	return nil
}

// Do takes it off.
func (s RemoveRoute) Do(ctx context.Context, h host.Host) error {
	err := meant(ctx, h, s.Port, s.MAC)
	var rows []Row
	if err == nil {
		rows, err = layer(ctx, h, s.Port, "router")
	}
	if err == nil {
		err = s.Route.comesFirst(rows)
	}
	if err == nil {
		_, err = run(ctx, h, removeRouteCommand(s))
		err = unless(ctx, h, s.Port, err, func(in Inside) bool { return len(in.Router) < len(rows) })
	}
	if err != nil {
		return fmt.Errorf("take a route off port %s: %w", s.Port, err)
	}
	return nil
}

// unless is nil if a command failed for no known reason, and the port is as wanted all the same.
func unless(ctx context.Context, h host.Host, port string, failed error, as func(Inside) bool) error {
	if e, ended := errors.AsType[*host.CommandError](failed); !ended || e.Means != nil || errors.Is(failed, host.ErrStillRunning) {
		return failed
	}
	if in, err := Look(ctx, h, port); err == nil && as(in) {
		return nil
	}
	return failed
}
