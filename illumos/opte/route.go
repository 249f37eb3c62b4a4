package opte

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
)

// Route says where a port sends what its guest sends to a destination. What has no route is
// dropped (lib/oxide-vpc/src/engine/router.rs).
type Route struct {
	Dest   netip.Prefix
	Target string // drop, ig, ig=UUID, ip4=IP, ip6=IP, sub4=CIDR or sub6=CIDR
	Custom bool   // of the subnet's router, before those of the VPC's
}

const routeWords = "DEST TARGET [system|custom], TARGET one of drop, ig, ig=UUID, ip4=IP, ip6=IP, sub4=CIDR, sub6=CIDR, of the family of DEST"

// ParseRoute reads DEST TARGET [CLASS], as opteadm add-router-entry takes them; without a class it
// is system. The error is an *InvalidError.
func ParseRoute(text string) (Route, error) {
	bad := &InvalidError{"route", text, routeWords}
	words := strings.Fields(text)
	if len(words) == 2 {
		words = append(words, "system")
	}
	if len(words) != 3 || words[2] != "system" && words[2] != "custom" {
		return Route{}, bad
	}
	dest, err := netip.ParsePrefix(words[0])
	if err != nil || dest.Addr().IsMulticast() {
		return Route{}, bad
	}
	r := Route{Dest: dest.Masked(), Custom: words[2] == "custom"}
	var ok bool
	if r.Target, ok = target(words[1], dest.Addr()); !ok {
		return Route{}, bad
	}
	return r, nil
}

// target gives it the form in which it is compared.
func target(text string, dest netip.Addr) (string, bool) {
	kind, value, _ := strings.Cut(text, "=")
	number := "6"
	if dest.Is4() {
		number = "4"
	}
	switch kind {
	case "drop":
		return text, text == "drop"
	case "ig":
		return text, text == "ig" || uuid.Validate(value) == nil && len(value) == 36 && value == strings.ToLower(value)
	case "ip" + number:
		ip, err := netip.ParseAddr(value)
		return kind + "=" + ip.String(), err == nil && ip.Is4() == dest.Is4() && ip.Zone() == ""
	case "sub" + number:
		p, err := netip.ParsePrefix(value)
		return kind + "=" + p.Masked().String(), err == nil && p.Addr().Is4() == dest.Is4()
	}
	return "", false
}

func (r Route) class() string {
	if r.Custom {
		return "custom"
	}
	return "system"
}

// String is what ParseRoute reads.
func (r Route) String() string { return r.Dest.String() + " " + r.Target + " " + r.class() }

// row is the route as opteadm shows it (make_rule and compute_rule_priority).
func (r Route) row() Row {
	row := Row{Priority: (r.Dest.Addr().BitLen()-r.Dest.Bits())<<1 + 10, Predicates: []string{"inner.ip.dst=" + r.Dest.String()}}
	if r.Dest.Addr().Is6() {
		row.Predicates[0] = "inner.ip6.dst=" + r.Dest.String()
	}
	if !r.Custom {
		row.Priority++
	}
	kind, value, _ := strings.Cut(r.Target, "=")
	switch {
	case kind == "drop":
		row.Action = "Deny"
	case kind == "ig" && value == "":
		row.Action = "Meta: Target = IG(None)"
	case kind == "ig":
		row.Action = "Meta: Target = IG(Some(" + value + "))"
	case kind == "ip4" || kind == "ip6":
		row.Action = "Meta: Target = IP: " + value
	default:
		row.Action = "Meta: Target = Subnet: " + value
	}
	return row
}

// routeOf is the route that a row shows; false: it is none, e.g. that for multicast, which each port has.
func routeOf(row Row) (Route, bool) {
	if row.In || len(row.Predicates) != 1 {
		return Route{}, false
	}
	text := strings.TrimPrefix(strings.TrimPrefix(row.Predicates[0], "inner.ip.dst="), "inner.ip6.dst=")
	dest, err := netip.ParsePrefix(text)
	if err != nil || text == row.Predicates[0] {
		return Route{}, false
	}
	family := map[bool]string{true: "4", false: "6"}[dest.Addr().Is4()]
	target, meta := strings.CutPrefix(row.Action, "Meta: Target = ")
	kind, value, _ := strings.Cut(target, ": ")
	switch id, named := strings.CutPrefix(target, "IG(Some("); {
	case row.Action == "Deny":
		target = "drop"
	case meta && target == "IG(None)":
		target = "ig"
	case meta && named:
		target = "ig=" + strings.TrimSuffix(id, "))")
	case meta && kind == "IP":
		target = "ip" + family + "=" + value
	case meta && kind == "Subnet":
		target = "sub" + family + "=" + value
	}
	class := "custom"
	if row.Priority%2 == 1 {
		class = "system"
	}
	r, err := ParseRoute(dest.String() + " " + target + " " + class)
	return r, err == nil && r.row().key() == row.key()
}

// comesFirst is host.ErrNotFound where no row is to a route's destination, and host.ErrState where the
// first one is another.
func (r Route) comesFirst(rows []Row) error {
	i := slices.IndexFunc(rows, func(row Row) bool { return slices.Equal(row.Predicates, r.row().Predicates) })
	switch {
	case i < 0:
		return fmt.Errorf("it has none to %s: %w", r.Dest, host.ErrNotFound)
	case rows[i].key() != r.row().key():
		return fmt.Errorf("its first one to %s is another: %w", r.Dest, host.ErrState)
	}
	return nil
}

// Reroute is what gives a port exactly these routes: what is to be removed, in order, and what is to be added
// then. Of those to one destination only the first can be removed, so that one that stays may go first, and
// come again. What is no route stays.
func (in Inside) Reroute(wanted []Route) (remove, add []Route) {
	has := map[netip.Prefix][]Route{}
	var dests []netip.Prefix
	for _, row := range in.Router {
		if r, ok := routeOf(row); ok {
			if has[r.Dest] == nil {
				dests = append(dests, r.Dest)
			}
			has[r.Dest] = append(has[r.Dest], r)
		}
	}
	stay := map[Route]bool{}
	for _, dest := range dests {
		gone := 0 // up to the last that is not wanted, or is there twice
		for i, r := range has[dest] {
			if !slices.Contains(wanted, r) || slices.Contains(has[dest][i+1:], r) {
				gone = i + 1
			}
		}
		remove = append(remove, has[dest][:gone]...)
		for _, r := range has[dest][gone:] {
			stay[r] = true
		}
	}
	for _, r := range wanted {
		if !stay[r] && !slices.Contains(add, r) {
			add = append(add, r)
		}
	}
	// Taken back newest first, each is then the first to its destination.
	slices.SortStableFunc(add, func(a, b Route) int { return cmp.Compare(b.row().Priority, a.row().Priority) })
	return remove, add
}
