package vnic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ofmt"
)

// listAttempts bounds how often List starts again because links came or went
// between its listings. On a sled on which many VMs are brought up at once they
// always do.
const listAttempts = 3

// List lists all links that the global zone sees, in the order of their making,
// those that zones have among them. It runs two commands side by side, and again
// if they do not fit together. A link that keeps coming or going is listed with
// what was seen of it: another process is making or removing a VNIC without
// Over and MAC. Unless zoned, this dladm does not show which zone has a link: no Zone is
// set.
// Errors: ErrSyntax, a *host.CommandError.
func List(ctx context.Context, h host.Host) (links []Link, zoned bool, err error) {
	for range listAttempts {
		var fits bool
		if links, zoned, fits, err = list(ctx, h); err != nil {
			return nil, false, fmt.Errorf("list links: %w", err)
		}
		if fits {
			break
		}
	}
	return links, zoned, nil
}

func list(ctx context.Context, h host.Host) (links []Link, zoned, fits bool, err error) {
	var vnics []Link
	var failed error
	var all sync.WaitGroup
	all.Go(func() { vnics, zoned, failed = listVNICs(ctx, h) })
	out, err := run(ctx, h, listLinksCommand(), "")
	if err == nil {
		links, err = ParseLinks(out)
	}
	if all.Wait(); err == nil {
		err = failed
	}
	if err != nil {
		return nil, false, false, err
	}
	links, fits = join(links, vnics)
	return links, zoned, fits, nil
}

func listVNICs(ctx context.Context, h host.Host) (vnics []Link, zoned bool, err error) {
	out, err := run(ctx, h, listVNICsCommand(true), "")
	if zoned = !errors.Is(err, errNoColumn); !zoned {
		out, err = run(ctx, h, listVNICsCommand(false), "")
	}
	if err != nil {
		return nil, zoned, err
	}
	vnics, err = ParseVNICs(out, zoned)
	return vnics, zoned, err
}

// ZoneOf is the zone that has a link; empty: the global zone has it. It is for what no
// listing shows, since dladm holds the link while it looks. Errors:
// host.ErrNotFound, ErrSyntax, a *host.CommandError.
func ZoneOf(ctx context.Context, h host.Host, name string) (string, error) {
	if err := ValidateName(name); err != nil {
		return "", err
	}
	out, err := run(ctx, h, showZoneCommand(name), name)
	if err != nil {
		return "", fmt.Errorf("look which zone has link %s: %w", name, err)
	}
	return parseZone(out)
}

// Addresses lists the addresses of the physical links, and of the aggregations
// among these links, of each its name and MAC: List has them for VNICs only. A
// physical link may have several. Errors: ErrSyntax, a *host.CommandError.
//
// Guess lines-of-links-and-aggregations: `dladm show-phys -m -p -o link,address` prints one line
// for each address of a physical link, and `show-aggr -x` of each aggregation first a line without
// a port, with its own address (print_aggr_extended of usr/src/cmd/dladm/dladm.c); links of other
// classes, whose addresses neither prints, are not claimed and not brought out of `provisioning`.
// Check: on a sled with an aggregation: `dladm show-phys -m; dladm show-aggr -x; sledctl nics list`
func Addresses(ctx context.Context, h host.Host, among []Link) ([]Link, error) {
	links, err := addresses(ctx, h, listAddressesCommand(), ParseAddresses)
	if err == nil && slices.ContainsFunc(among, func(l Link) bool { return l.Class == "aggr" }) {
		var more []Link
		more, err = addresses(ctx, h, listAggregationsCommand(), ParseAggregations)
		links = append(links, more...)
	}
	if err != nil {
		return nil, fmt.Errorf("list addresses of links: %w", err)
	}
	return links, nil
}

func addresses(ctx context.Context, h host.Host, c host.Command, parse func([]byte) ([]Link, error)) ([]Link, error) {
	out, err := run(ctx, h, c, "")
	if err != nil {
		return nil, err
	}
	return parse(out)
}

// run gives what a command printed, or its typed error; link is the one that it
// is about.
func run(ctx context.Context, h host.Host, c host.Command, link string) ([]byte, error) {
	r, err := h.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	if r.Exit != 0 {
		return nil, failure(c, r, link)
	}
	return r.Stdout, nil
}

// identity is the lower link and the address of a VNIC. Of a link that is no
// VNIC dladm prints nothing, or fails.
func identity(ctx context.Context, h host.Host, name string) (over, mac string, err error) {
	out, err := run(ctx, h, showVNICCommand(name), name)
	if err != nil {
		return "", "", err
	}
	if len(out) == 0 {
		return "", "", fmt.Errorf("%s is no VNIC: %w", name, host.ErrRefused)
	}
	line, _ := strings.CutSuffix(string(out), "\n")
	fields, err := ofmt.Row(line, 2)
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", err, ErrSyntax)
	}
	mac, err = padMAC(fields[1])
	return fields[0], mac, err
}
