package ipadm

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/illumos/ofmt"
)

// ErrSyntax is output that the command does not print.
var ErrSyntax = errors.New("not the output of ipadm, route or netstat")

// ParseAddresses reads show-addr -p -o addrobj,type,state,addr. Errors are
// ErrSyntax.
func ParseAddresses(out []byte) ([]Address, error) {
	rows, err := ofmt.Rows(out, 4)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrSyntax)
	}
	var all []Address
	for _, row := range rows {
		a := Address{Object: row[0], Type: row[1], State: row[2]}
		link, name, found := strings.Cut(row[0], "/")
		if !found || link == "" || name == "" || strings.ContainsAny(row[0], " \t") {
			return nil, fmt.Errorf("%q is no address object: %w", row[0], ErrSyntax)
		}
		if !slices.Contains([]string{Static, DHCP, Addrconf, "from-gz"}, a.Type) || a.State == "" || strings.ContainsAny(a.State, " \t") {
			return nil, fmt.Errorf("address object %s of type %q in state %q: %w", a.Object, a.Type, a.State, ErrSyntax)
		}
		if a.Address, err = parseAddress(row[3]); err != nil && a.State != Disabled {
			return nil, fmt.Errorf("address object %s: %w", a.Object, err)
		}
		all = append(all, a)
	}
	return all, nil
}

// parseAddress reads 10.0.0.1/24 and fe80::1%net0/10. A missing length is that
// of a single address. Nothing, "?" and "A->B" are no prefix and no error; a
// disabled address shows a host name.
func parseAddress(text string) (netip.Prefix, error) {
	if text == "" || text == "?" || strings.Contains(text, "->") {
		return netip.Prefix{}, nil
	}
	address, length, has := strings.Cut(text, "/")
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no address: %w", text, ErrSyntax)
	}
	a = a.WithZone("")
	if !has {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(a.String() + "/" + length)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no address: %w", text, ErrSyntax)
	}
	return p, nil
}

// ParseRoutes reads netstat -rn: two tables, of which either can be missing.
// The interface is blank for a route that is bound to none. Errors are
// ErrSyntax.
//
// Guess blanks-of-netstat: blanks at the ends of lines and their order in `netstat -rn`: the parser
// minds neither.
// Check: `netstat -rn | od -c`
func ParseRoutes(out []byte) ([]Route, error) {
	var all []Route
	inside := false
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			inside = false
		case strings.HasPrefix(line, "Routing Table: IPv"), words[0] == "Destination", words[0] == "Destination/Mask":
		case strings.Trim(words[0], "-") == "":
			inside = true
		case !inside || len(words) < 5 || len(words) > 6:
			return nil, fmt.Errorf("line %q: %w", strings.TrimSpace(line), ErrSyntax)
		default:
			r, err := parseRoute(words)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// parseRoute reads destination, gateway, flags, references, use, interface.
func parseRoute(words []string) (Route, error) {
	r := Route{Destination: words[0], Gateway: words[1], Flags: words[2]}
	if len(words) == 6 {
		r.Link = words[5]
	}
	_, err := netip.ParseAddr(r.Destination)
	_, perr := netip.ParsePrefix(r.Destination)
	_, gerr := netip.ParseAddr(r.Gateway)
	digits := strings.Trim(words[3]+words[4], "0123456789") == ""
	if r.Destination != "default" && err != nil && perr != nil || gerr != nil || !digits || !strings.HasPrefix(r.Flags, "U") {
		return Route{}, fmt.Errorf("route %q: %w", strings.Join(words, " "), ErrSyntax)
	}
	return r, nil
}

// ParseRouteLink finds the interface in what route -n get prints. Errors are
// ErrSyntax.
func ParseRouteLink(out []byte) (string, error) {
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if key == "interface" && value != "" && !strings.ContainsAny(value, " \t") {
			return value, nil
		}
	}
	return "", fmt.Errorf("no interface in %q: %w", out, ErrSyntax)
}
