package opte

import (
	"net/netip"
	"strings"

	"github.com/google/uuid"
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
