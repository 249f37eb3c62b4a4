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
// Guess limits-set-on-loan: a link that a zone has takes `dladm set-linkprop -p protection=` from
// the global zone, as it does from zoneadmd.
// Check: `dladm set-linkprop -t -p protection=mac-nospoof LINK` of a zone that runs
type Limits struct {
	// OwnMAC drops what does not come from the MAC address of the link.
	OwnMAC bool
	// IPs, if there are any, are those that it may send from, as AllowedIPs gives them.
	IPs string
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

// Holds says whether a link with these limits is held to those that are wanted. One that
// is held to more is as well.
func (l Limits) Holds(want Limits) bool { return l.Lacks(want) == "" }

// Lacks says what a link with these limits lets through of what those that are wanted
// hold back; empty: nothing.
func (l Limits) Lacks(want Limits) string {
	if want.OwnMAC && !l.OwnMAC {
		return "without " + macNoSpoof
	}
	if want.IPs != "" && l.IPs != want.IPs {
		return "without " + ipNoSpoof + " for " + want.IPs
	}
	if want.Mbps != 0 && (l.Mbps == 0 || l.Mbps > want.Mbps) {
		return fmt.Sprintf("without %s=%dM", maxBW, want.Mbps)
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
// was meant (*OtherError).
type SetLimits struct {
	Name, MAC, Over string
	Limits          Limits
}

// Verb names the step.
func (SetLimits) Verb() string { return "vnic.set-limits" }

// Undo is nil: they go when the zone halts, and the VNIC was made with maxbw (Create).
func (SetLimits) Undo() any { return nil }

// Explain is a set-linkprop for each property.
func (s SetLimits) Explain() []host.Line {
	var lines []host.Line
	for _, p := range s.Limits.settings() {
		lines = append(lines, host.CommandLine(setPropertyCommand(s.Name, p.property, p.value)))
	}
	return lines
}

// Do sets them.
func (s SetLimits) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	if err := meant(ctx, h, s.Name, s.MAC, s.Over); err != nil {
		return fmt.Errorf("set the limits of VNIC %s: %w", s.Name, err)
	}
	return s.Limits.set(ctx, h, s.Name)
}

// set sets them on a link.
func (l Limits) set(ctx context.Context, h host.Host, name string) error {
	for _, p := range l.settings() {
		if _, err := run(ctx, h, setPropertyCommand(name, p.property, p.value), name); err != nil {
			return fmt.Errorf("set %s of VNIC %s: %w", p.property, name, err)
		}
	}
	return nil
}
