package vnic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/illumos/ofmt"
)

// ErrSyntax is output that dladm does not print.
var ErrSyntax = errors.New("not dladm's output")

// parseRows reads lines of that many fields. The first one is a link's name.
func parseRows(out []byte, fields int) ([][]string, error) {
	rows, err := ofmt.Rows(out, fields)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrSyntax)
	}
	return rows, nil
}

// name accepts what dladm can have listed: also names that it would refuse for
// a new link, as drivers give them.
func name(s string) error {
	bad := s == "" || len(s) > NameMax
	for i := 0; i < len(s); i++ { // strings.ContainsAny takes four times as long for thousands of them
		switch s[i] {
		case ' ', '\t', '\\', ':':
			bad = true
		}
	}
	if bad {
		return fmt.Errorf("%q is no link: %w", s, ErrSyntax)
	}
	return nil
}

// ParseLinks reads show-link -p -o link,class,mtu,state. Errors are ErrSyntax.
func ParseLinks(out []byte) ([]Link, error) {
	rows, err := parseRows(out, 4)
	if err != nil {
		return nil, err
	}
	links := make([]Link, 0, len(rows))
	for _, row := range rows {
		mtu, err := number(row[2])
		if err = errors.Join(name(row[0]), err); err != nil {
			return nil, err
		}
		if row[1] == "" || row[3] == "" {
			return nil, fmt.Errorf("link %s without class or state: %w", row[0], ErrSyntax)
		}
		links = append(links, Link{Name: row[0], Class: row[1], MTU: mtu, State: row[3]})
	}
	return links, nil
}

// ParseVNICs reads show-vnic -p -o link,over,macaddress,vid, with zones also zone:
// of each link only what is asked there. Errors are ErrSyntax.
func ParseVNICs(out []byte, zones bool) ([]Link, error) {
	fields := 4
	if zones {
		fields = 5
	}
	rows, err := parseRows(out, fields)
	if err != nil {
		return nil, err
	}
	links := make([]Link, 0, len(rows))
	for _, row := range rows {
		mac, err := padMAC(row[2])
		vlan, verr := number(row[3])
		if err := errors.Join(name(row[0]), name(row[1]), err, verr); err != nil {
			return nil, err
		}
		l := Link{Name: row[0], Over: row[1], MAC: mac, VLAN: vlan}
		if zones {
			if l.Zone, err = zoneName(row[4]); err != nil {
				return nil, fmt.Errorf("link %s: %w", row[0], err)
			}
		}
		links = append(links, l)
	}
	return links, nil
}

// zoneName accepts the name of a zone, or nothing.
func zoneName(s string) (string, error) {
	if strings.ContainsAny(s, " \t\n\\:?") {
		return "", fmt.Errorf("%q is no zone: %w", s, ErrSyntax)
	}
	return s, nil
}

// ParseAddresses reads show-phys -m -p -o link,address: one line for each address
// of a link, of each only what is asked there. Errors are ErrSyntax.
func ParseAddresses(out []byte) ([]Link, error) {
	rows, err := parseRows(out, 2)
	if err != nil {
		return nil, err
	}
	var links []Link
	for _, row := range rows {
		mac, err := padMAC(row[1])
		if err = errors.Join(name(row[0]), err); err != nil {
			return nil, err
		}
		links = append(links, Link{Name: row[0], MAC: mac})
	}
	return links, nil
}

// ParseAggregations reads show-aggr -x -p -o link,port,address: one line for each
// aggregation, without a port, and one for each of its ports, which are left out;
// of each only what is asked there. Errors are ErrSyntax.
func ParseAggregations(out []byte) ([]Link, error) {
	rows, err := parseRows(out, 3)
	if err != nil {
		return nil, err
	}
	var links []Link
	for _, row := range rows {
		if row[1] != "" {
			continue
		}
		mac, err := padMAC(row[2])
		if err = errors.Join(name(row[0]), err); err != nil {
			return nil, err
		}
		links = append(links, Link{Name: row[0], MAC: mac})
	}
	return links, nil
}

// padMAC is ParseMAC without its judgement: what is there is there.
func padMAC(s string) (string, error) {
	mac, err := ParseMAC(s)
	if err != nil && strings.Count(s, ":") != 5 {
		return "", fmt.Errorf("%w: %w", err, ErrSyntax)
	}
	if err == nil {
		return mac, nil
	}
	groups := strings.Split(s, ":")
	for i, g := range groups {
		n, err := strconv.ParseUint(g, 16, 8)
		if err != nil || len(g) > 2 {
			return "", fmt.Errorf("MAC address %q: %w", s, ErrSyntax)
		}
		groups[i] = fmt.Sprintf("%02x", n)
	}
	return strings.Join(groups, ":"), nil
}

func number(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || len(s) > 1 && s[0] == '0' {
		return 0, fmt.Errorf("%q is no number: %w", s, ErrSyntax)
	}
	return int(n), nil
}

// parseMTU reads the one value of show-linkprop -c -o value.
func parseMTU(out []byte) (int, error) { return number(strings.TrimSuffix(string(out), "\n")) }

// parseZone reads the one value of show-linkprop -c -p zone -o value.
func parseZone(out []byte) (string, error) { return zoneName(strings.TrimSuffix(string(out), "\n")) }

// join puts the two listings together. In the gate two links can have one name, of
// which a zone has one (illumos 10001): the listings have the same order, so that
// the second of a name is the second in both.
//
// A link that came or went between the listings stands with what was seen of
// it; fits is then false. The holder of a link's lock sees all of the link: no other
// process makes or removes it.
//
// Guess links-of-one-name-in-order: two links of one name (illumos issue 10001) come in the same
// order in show-link and show-vnic, first the one that a zone has.
// Check: give VNICs of one name to two zones; the two listings
func join(links, vnics []Link) (out []Link, fits bool) {
	if out, inOrder := zip(links, vnics); inOrder {
		return out, true
	}
	return pair(links, vnics)
}

// pair is join for listings that differ.
func pair(links, vnics []Link) (out []Link, fits bool) {
	type key struct {
		name string
		nth  int
	}
	seen, byVNIC := make(map[string]int, len(vnics)), make(map[key]*Link, len(vnics))
	for i := range vnics {
		l := &vnics[i]
		byVNIC[key{l.Name, seen[l.Name]}] = l
		seen[l.Name]++
	}
	seen = make(map[string]int, len(links))
	matched := 0
	out, fits = make([]Link, len(links)), true
	for i, l := range links {
		v, isVNIC := byVNIC[key{l.Name, seen[l.Name]}]
		seen[l.Name]++
		if isVNIC {
			l.Over, l.MAC, l.VLAN, l.Zone = v.Over, v.MAC, v.VLAN, v.Zone
			matched++
		} else if l.Class == "vnic" {
			fits = false
		}
		out[i] = l
	}
	for _, v := range vnics {
		if seen[v.Name] == 0 {
			v.Class = "vnic" // it came after the first listing
			out = append(out, v)
		}
	}
	return out, fits && matched == len(vnics)
}

// zip is join where nothing came or went, no name is also another kind of link's, and the
// order is the same: a sled has thousands of links, and hardly another case.
func zip(links, vnics []Link) (out []Link, inOrder bool) {
	const others = 64 // are looked for among the VNICs, each in turn
	if len(links) > len(vnics)+others {
		return nil, false
	}
	out, next := make([]Link, len(links)), 0
	for i, l := range links {
		switch {
		case l.Class != "vnic":
			if slices.ContainsFunc(vnics, func(v Link) bool { return v.Name == l.Name }) {
				return nil, false
			}
		case next == len(vnics) || vnics[next].Name != l.Name:
			return nil, false
		default:
			v := &vnics[next]
			l.Over, l.MAC, l.VLAN, l.Zone = v.Over, v.MAC, v.VLAN, v.Zone
			next++
		}
		out[i] = l
	}
	return out, next == len(vnics)
}

// parseLimits reads show-linkprop -c -o property,value. Errors are ErrSyntax.
func parseLimits(out []byte) (l Limits, err error) {
	rows, err := parseRows(out, 2)
	if err != nil {
		return l, err
	}
	values := map[string]string{}
	for _, row := range rows {
		if !slices.Contains([]string{protection, allowedIPs, maxBW}, row[0]) {
			return l, fmt.Errorf("link property %q was not asked for: %w", row[0], ErrSyntax)
		}
		values[row[0]] = row[1]
	}
	l.OwnMAC = slices.Contains(strings.Split(values[protection], ","), macNoSpoof)
	l.IPs = allowed(values[allowedIPs])
	if !slices.Contains(strings.Split(values[protection], ","), ipNoSpoof) {
		l.IPs, l.Idle = "", l.IPs
	}
	if l.Mbps, err = megabits(values[maxBW]); err != nil {
		return Limits{}, err
	}
	return l, nil
}

// megabits reads the value of maxbw, which dladm prints in Mbit/s behind blanks, with three
// decimals where it is no whole number (dladm_bw2str in
// usr/src/lib/libdladm/common/libdladm.c). A part of one counts as a whole.
func megabits(s string) (int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, nil
	}
	whole, part, _ := strings.Cut(s, ".")
	n, err := number(whole)
	if err == nil && strings.Trim(part, "0") != "" {
		n++
	}
	return n, err
}

// allowed reads the value of allowed-ips.
//
// Guess host-addresses-without-length: `dladm show-linkprop -p allowed-ips` prints an address of one
// host without the length of its prefix, or with it (`10.0.0.5/32`).
// Check: `dladm show-linkprop -c -p allowed-ips -o value LINK` of a link that has some
func allowed(ips string) string {
	if ips == "" {
		return ""
	}
	all := strings.Split(ips, ",")
	for i := range all {
		all[i] = strings.TrimSuffix(all[i], "/32")
		if strings.Contains(all[i], ":") {
			all[i] = strings.TrimSuffix(all[i], "/128")
		}
	}
	return AllowedIPs(all)
}
