package opte

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// route is a router entry (engine/router.rs, make_rule).
type route struct {
	port string
	rule world.OPTERule
}

func (a *adm) route() route {
	words := a.exactly(3)
	r := route{port: a.one("-p")}
	dest := cidr(words[0])
	shown, family := target(words[1])
	class := strings.ToLower(words[2])
	cli.Simulated(class == "system" || class == "custom")
	predicate := "inner.ip.dst="
	if dest.Addr().Is6() {
		predicate = "inner.ip6.dst="
	}
	r.rule = world.OPTERule{Predicates: []string{predicate + dest.String()}, Action: shown, Priority: uint16((dest.Addr().BitLen()-dest.Bits())<<1 + 10)}
	if class == "system" {
		r.rule.Priority++
	}
	cli.Simulated(!dest.Addr().IsMulticast() && (family == 0 || family == dest.Addr().BitLen())) // InvalidRouterEntry
	return r
}

// target is RouterTarget::from_str, with the action that it becomes, and the bits of the addresses that
// it is for; 0: of all.
func target(text string) (action string, bits int) {
	text = strings.ToLower(text)
	kind, value, has := strings.Cut(text, "=")
	switch {
	case text == "drop":
		return "Deny", 0
	case text == "ig":
		return "Meta: Target = IG(None)", 0
	case kind == "ig" && has:
		cli.Simulated(len(value) == 36)
		return "Meta: Target = IG(Some(" + value + "))", 0
	case kind == "ip4" || kind == "ip6":
		ip := address(value)
		cli.Simulated(ip.Is4() == (kind == "ip4"))
		return "Meta: Target = IP: " + ip.String(), ip.BitLen()
	}
	cli.Simulated(kind == "sub4" || kind == "sub6")
	p := cidr(value)
	cli.Simulated(p.Addr().Is4() == (kind == "sub4"))
	return "Meta: Target = Subnet: " + p.String(), p.Addr().BitLen()
}

// addRoute is Command::AddRouterEntry: a second one like it is another rule.
func (a *adm) addRoute() cli.Reply {
	r := a.route()
	p := network.Port(a.tx, r.port)
	if p == nil {
		return refused("AddRouterEntry", portNotFound(r.port))
	}
	add(p.Rules["router out"], r.rule)
	return cli.Reply{}
}

// deleteRoute is Command::DelRouterEntry. The first rule for the destination goes, whatever its
// target and class are: rules are alike by their predicates (PartialEq of Rule<Finalized> in
// lib/opte/src/engine/rule.rs), and del_entry's comment says otherwise.
func (a *adm) deleteRoute() cli.Reply {
	r := a.route()
	p := network.Port(a.tx, r.port)
	if p == nil {
		return refused("DelRouterEntry", portNotFound(r.port))
	}
	table := p.Rules["router out"]
	i := slices.IndexFunc(table.Rules, func(other world.OPTERule) bool { return slices.Equal(other.Predicates, r.rule.Predicates) })
	if i < 0 {
		return died("could not delete entry -- no matching rule found")
	}
	table.Rules = slices.Delete(table.Rules, i, i+1)
	return cli.Reply{}
}
