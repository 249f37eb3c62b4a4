package ipadm

import (
	"context"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/host"
)

// Addresses lists the addresses of a zone; "" is where we are. Errors:
// ErrSyntax, a *host.CommandError, host.ErrTransient while the zone's ipmgmtd(8)
// does not run yet.
func Addresses(ctx context.Context, h host.Host, zone string) ([]Address, error) {
	return list(ctx, h, "addresses", listAddressesCommand(zone), ParseAddresses)
}

// Routes lists the routing tables of a zone, IPv4 first. Errors: ErrSyntax, a
// *host.CommandError.
func Routes(ctx context.Context, h host.Host, zone string) ([]Route, error) {
	return list(ctx, h, "routes", listRoutesCommand(zone), ParseRoutes)
}

func list[T any](ctx context.Context, h host.Host, what string, c host.Command, parse func([]byte) ([]T, error)) ([]T, error) {
	out, err := run(ctx, h, c)
	if err == nil {
		var all []T
		if all, err = parse(out); err == nil {
			return all, nil
		}
	}
	if c.Zone != "" {
		what += " of zone " + c.Zone
	}
	return nil, fmt.Errorf("list %s: %w", what, err)
}

// DefaultLink is the link of the global zone's default route: of IPv4, or of
// IPv6 if there is none. host.ErrNotFound: there is neither.
func DefaultLink(ctx context.Context, h host.Host) (string, error) {
	for _, family := range []string{"-inet", "-inet6"} {
		out, err := run(ctx, h, defaultRouteCommand(family))
		switch {
		case errors.Is(err, host.ErrNotFound):
			continue
		case err != nil:
			return "", fmt.Errorf("find the default route: %w", err)
		}
		link, err := ParseRouteLink(out)
		if err != nil {
			return "", fmt.Errorf("find the default route: %w", err)
		}
		return link, nil
	}
	return "", fmt.Errorf("default route: %w", host.ErrNotFound)
}

// run gives what a command printed, or its typed error.
func run(ctx context.Context, h host.Host, c host.Command) ([]byte, error) {
	r, err := h.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	if r.Exit != 0 || r.Unknown {
		return nil, failure(c, r)
	}
	return r.Stdout, nil
}

// show gives the addresses of one object.
func show(ctx context.Context, h host.Host, zone, object string) ([]Address, error) {
	out, err := run(ctx, h, showAddressCommand(zone, object))
	if err != nil {
		return nil, err
	}
	all, err := ParseAddresses(out)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("nothing is listed: %w", host.ErrNotFound) // what ipadm did before illumos 16677 where there are no addresses
	}
	return all, err
}
