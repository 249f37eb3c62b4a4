package ipadm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/sledctl/sledctl/host"
)

// AddRoute enters a route into the table of a zone, until its interface goes.
// Errors: host.ErrExists; host.ErrTransient while no address of the zone is on
// the gateway's network.
type AddRoute struct {
	Zone        string
	Destination string // default, or a network with its length
	Gateway     string // an address
	Link        string // the interface to the gateway; empty: any
}

// DeleteRoute takes a route out of the table. Errors: host.ErrNotFound.
type DeleteRoute struct {
	Zone, Destination, Gateway, Link string
}

// Verb names the step.
func (AddRoute) Verb() string { return "ipadm.add-route" }

// Verb names the step.
func (DeleteRoute) Verb() string { return "ipadm.delete-route" }

// Undo is DeleteRoute.
func (s AddRoute) Undo() any { return DeleteRoute(s) }

// Undo is nil.
func (DeleteRoute) Undo() any { return nil }

// Explain is the route add; nothing if Do would refuse the values.
func (s AddRoute) Explain() []host.Line {
	if checkRoute(s.Destination, s.Gateway, s.Link) != nil {
		return nil
	}
	return []host.Line{host.CommandLine(routeCommand("add", s.Zone, s.Destination, s.Gateway, s.Link))}
}

// Explain is the route delete; nothing if Do would refuse the values.
func (s DeleteRoute) Explain() []host.Line {
	if checkRoute(s.Destination, s.Gateway, s.Link) != nil {
		return nil
	}
	return []host.Line{host.CommandLine(routeCommand("delete", s.Zone, s.Destination, s.Gateway, s.Link))}
}

// Do enters it.
func (s AddRoute) Do(ctx context.Context, h host.Host) error {
	err := checkRoute(s.Destination, s.Gateway, s.Link)
	if err == nil {
		_, err = run(ctx, h, routeCommand("add", s.Zone, s.Destination, s.Gateway, s.Link))
	}
	return about(err, "add route", s.Destination+" by "+s.Gateway, s.Zone)
}

// Do takes it out.
func (s DeleteRoute) Do(ctx context.Context, h host.Host) error {
	err := checkRoute(s.Destination, s.Gateway, s.Link)
	if err == nil {
		_, err = run(ctx, h, routeCommand("delete", s.Zone, s.Destination, s.Gateway, s.Link))
	}
	return about(err, "delete route", s.Destination+" by "+s.Gateway, s.Zone)
}

// checkRoute refuses names, which route(8) would look up, a network without a
// length, which it would guess, and two families.
func checkRoute(destination, gateway, link string) error {
	g, err := netip.ParseAddr(gateway)
	if err != nil || g.Zone() != "" {
		return fmt.Errorf("gateway %q is no address", gateway)
	}
	if destination != "default" {
		p, err := netip.ParsePrefix(destination)
		if err != nil || p.Addr().Is4() != g.Is4() {
			return fmt.Errorf("destination %q is no network of the gateway's family", destination)
		}
	}
	if link == "" {
		return nil
	}
	return validateLink(link)
}
