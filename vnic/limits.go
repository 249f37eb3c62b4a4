package vnic

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Limits are what a link holds the guest behind it to. They are properties of the
// link. zoneadmd takes all but maxbw off when its zone halts, also when a boot fails
// (remove_datalink_protect in usr/src/cmd/zoneadmd/vplat.c): they are set after each
// boot of the zone.
//
// Guess limits-set-on-loan: a link that a zone has takes `dladm set-linkprop -p protection=` and
// reset-linkprop from the global zone, as it does from zoneadmd.
// Check: `dladm set-linkprop -t -p protection=mac-nospoof LINK` and `dladm reset-linkprop -t -p maxbw
// LINK` of a zone that runs
type Limits struct {
	// OwnMAC drops what does not come from the MAC address of the link.
	OwnMAC bool
	// IPs, if there are any, are those that it may send from, as AllowedIPs gives them.
	IPs string
	// Idle are addresses that the link knows and does not hold to.
	Idle string
	// Mbps is how many million bits go through in a second, each way; 0: as many as can.
	Mbps int
}

// The link property protection and its values (dladm(8)).
const (
	protection = "protection"
	macNoSpoof = "mac-nospoof"
	ipNoSpoof  = "ip-nospoof"
	allowedIPs = "allowed-ips"
	maxBW      = "maxbw"
)

// setting is a link property and its value.
type setting struct{ property, value string }

func (l Limits) settings() []setting {
	var all []setting
	var kinds []string
	if l.OwnMAC {
		kinds = append(kinds, macNoSpoof)
	}
	if l.IPs != "" {
		kinds, all = append(kinds, ipNoSpoof), append(all, setting{allowedIPs, l.IPs})
	}
	if l.Idle != "" {
		all = append(all, setting{allowedIPs, l.Idle})
	}
	if len(kinds) > 0 {
		all = append(all, setting{protection, strings.Join(kinds, ",")})
	}
	if l.Mbps != 0 {
		all = append(all, setting{maxBW, strconv.Itoa(l.Mbps) + "M"})
	}
	return all
}

// AllowedIPs are addresses in the form of Limits: in their order, as dladm takes them.
func AllowedIPs(ips []string) string {
	ips = slices.Clone(ips)
	slices.Sort(ips)
	return strings.Join(ips, ",")
}

// Differs says in what a link with these limits is not held to those that are wanted:
// what is missing, else what is more; empty: in nothing.
func (l Limits) Differs(want Limits) string {
	switch {
	case want.OwnMAC && !l.OwnMAC:
		return "without " + macNoSpoof
	case want.IPs != "" && l.IPs != want.IPs:
		return "without " + ipNoSpoof + " for " + want.IPs
	case want.Mbps != 0 && (l.Mbps == 0 || l.Mbps > want.Mbps):
		return fmt.Sprintf("without %s=%dM", maxBW, want.Mbps)
	case l.IPs != want.IPs:
		return "with " + ipNoSpoof + " for " + l.IPs
	case l.Idle != want.Idle:
		return "with " + allowedIPs + " " + l.Idle + ", and without " + ipNoSpoof
	case l.Mbps != want.Mbps:
		return fmt.Sprintf("with %s=%dM", maxBW, l.Mbps)
	}
	return ""
}

// LimitsOf reads the limits of a link. It is for links that a running zone has: dladm
// holds a link while it looks. Errors: host.ErrNotFound, ErrSyntax, a
// *host.CommandError.
func LimitsOf(ctx context.Context, h host.Host, name string) (Limits, error) {
	if err := ValidateName(name); err != nil {
		return Limits{}, err
	}
	out, err := run(ctx, h, showLimitsCommand(name), name)
	if err != nil {
		return Limits{}, fmt.Errorf("read what link %s is held to: %w", name, err)
	}
	return parseLimits(out)
}

// SetLimits holds the guest behind a VNIC to its limits, if the VNIC is the one that
// was meant (*OtherError). Of what it was held to before, as far as that is known, what
// is not among them is taken off.
type SetLimits struct {
	Name, MAC, Over string
	Limits          Limits
	Before          Limits
	Changed         bool // other limits are asked for: to undo it is to go back to Before
}

// Verb names the step.
func (SetLimits) Verb() string { return "vnic.set-limits" }

// Undo is the way back to what was before, where that is asked for. Else it is nil: they go when the zone
// halts, and the VNIC was made with maxbw (Create).
func (s SetLimits) Undo() any {
	if !s.Changed {
		return nil
	}
	s.Limits, s.Before = s.Before, s.Limits
	return s
}

// Explain is a command for each property.
func (s SetLimits) Explain() []host.Line {
	var lines []host.Line
	for _, c := range s.commands() {
		lines = append(lines, host.CommandLine(c))
	}
	return lines
}

// Do sets them. Of those that are changed, all are as they were if one could not be set.
func (s SetLimits) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	if err := meant(ctx, h, s.Name, s.MAC, s.Over); err != nil {
		return fmt.Errorf("set the limits of VNIC %s: %w", s.Name, err)
	}
	err := s.set(ctx, h)
	if back, ok := s.Undo().(SetLimits); ok {
		return cleanUp(ctx, err, func(ctx context.Context) error { return back.set(ctx, h) })
	}
	return err
}

func (s SetLimits) set(ctx context.Context, h host.Host) error {
	for _, c := range s.commands() {
		if _, err := run(ctx, h, c, s.Name); err != nil {
			return fmt.Errorf("set the limits of VNIC %s: %w", s.Name, err)
		}
	}
	return nil
}

// commands set what is wanted before they take off what is not.
func (s SetLimits) commands() []host.Command {
	var all []host.Command
	for _, p := range s.Limits.settings() {
		all = append(all, setPropertyCommand(s.Name, p.property, p.value))
	}
	if !s.Limits.OwnMAC && s.Limits.IPs == "" && (s.Before.OwnMAC || s.Before.IPs != "") {
		all = append(all, resetPropertyCommand(s.Name, protection))
	}
	if s.Before.IPs+s.Before.Idle != "" && s.Limits.IPs+s.Limits.Idle == "" {
		all = append(all, resetPropertyCommand(s.Name, allowedIPs))
	}
	if s.Before.Mbps != 0 && s.Limits.Mbps == 0 {
		all = append(all, resetPropertyCommand(s.Name, maxBW))
	}
	return all
}
