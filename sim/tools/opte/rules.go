package opte

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// firewallRule is FirewallRule of lib/oxide-vpc/src/api.rs, with its filters as the predicates that
// from_fw_rule makes of them (engine/firewall.rs).
type firewallRule struct {
	inbound    bool
	deny       bool
	priority   uint16
	predicates []string
}

// setRules is Command::SetFwRules: one rule a line; all are read before any is set.
func (a *adm) setRules() cli.Reply {
	a.exactly(0)
	name := a.one("-p")
	var rules []firewallRule
	for line := range strings.Lines(string(a.stdin)) {
		r, why := parseRule(strings.TrimSuffix(line, "\n"))
		if why != "" {
			return died("Invalid rule: %s", why)
		}
		rules = append(rules, r)
	}
	p := network.Port(a.tx, name)
	if p == nil {
		return refused("SetFwRules", portNotFound(name))
	}
	for _, table := range []string{"firewall in", "firewall out"} {
		p.Rules[table].Rules = nil
	}
	for _, r := range rules {
		action := "Stateful Allow"
		if r.deny {
			action = "Deny"
		}
		table := p.Rules["firewall out"]
		if r.inbound {
			table = p.Rules["firewall in"]
		}
		add(table, world.OPTERule{Priority: r.priority, Predicates: r.predicates, Action: action})
	}
	return cli.Reply{}
}

// add is RuleTable::add: before the rules of a higher priority's number, and of the same one
// before those that it takes precedence over (lib/opte/src/engine/layer.rs, find_pos).
func add(table *world.OPTERules, r world.OPTERule) {
	r.ID = table.Next
	table.Next++
	at := slices.IndexFunc(table.Rules, func(other world.OPTERule) bool {
		return r.Priority < other.Priority || r.Priority == other.Priority && (r.Action == "Deny" || other.Action != "Deny")
	})
	if at < 0 {
		at = len(table.Rules)
	}
	table.Rules = slices.Insert(table.Rules, at, r)
}

// parseRule is FirewallRule::from_str. Why is empty if it is one.
func parseRule(text string) (r firewallRule, why string) {
	said := map[string]string{}
	for token := range strings.SplitSeq(strings.ToLower(text), " ") {
		key, value, has := strings.Cut(token, "=")
		switch {
		case !has:
			return r, "bad token: " + token
		case !slices.Contains([]string{"dir", "action", "priority", "hosts", "protocol", "port"}, key):
			return r, "invalid key: " + token
		}
		if why := r.take(key, value); why != "" {
			return r, why
		}
		said[key] = value
	}
	for _, need := range [][2]string{{"action", "'action'"}, {"dir", "direction ('dir')"}, {"priority", "'priority'"}} {
		if _, has := said[need[0]]; !has {
			return r, "missing " + need[1] + " key"
		}
	}
	r.predicates = slices.Concat(protocolPredicates(cmp.Or(said["protocol"], "any")), portPredicates(cmp.Or(said["port"], "any")), hostPredicates(cmp.Or(said["hosts"], "any"), r.inbound))
	return r, ""
}

// take reads the value of a key. Filters are read when the direction is known: what is wrong with
// them is not simulated.
func (r *firewallRule) take(key, value string) (why string) {
	switch key {
	case "dir":
		if r.inbound = value == "in"; !r.inbound && value != "out" {
			return "invalid direction: " + value
		}
	case "action":
		if r.deny = value == "deny"; !r.deny && value != "allow" {
			return "invalid action: " + value + " ('allow' or 'deny')"
		}
	case "priority":
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			return "bad priority: '" + value + "' invalid digit found in string"
		}
		r.priority = uint16(n)
	}
	return ""
}

// protocolPredicates is ProtoFilter::into_predicates.
func protocolPredicates(text string) []string {
	name, filter, filtered := strings.Cut(text, ":")
	known := map[string]string{"tcp": "TCP", "udp": "UDP", "icmp": "ICMP", "icmp6": "ICMPv6"}
	switch {
	case filtered:
		cli.Simulated(name == "icmp" || name == "icmp6")
		kind, codes, coded := strings.Cut(filter, ",")
		all := []string{"inner.icmp.type=" + kind}
		if first, last, several := strings.Cut(codes, "-"); coded && several && first != last {
			all = append(all, "inner.icmp.code∈("+first+"..="+last+")")
		} else if coded {
			all = append(all, "inner.icmp.code="+first)
		}
		return all
	case text == "any":
		return nil
	case text == "arp":
		return []string{"inner.ether.ether_type=ARP"}
	}
	cli.Simulated(known[text] != "")
	return []string{"inner.ip.proto=" + known[text]}
}

// portPredicates is Ports::into_predicate: runs of numbers are one range.
func portPredicates(text string) []string {
	if text == "any" || text == "any," {
		return nil
	}
	var ports []int
	for one := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(one, 10, 16)
		cli.Simulated(err == nil && n > 0)
		ports = append(ports, int(n))
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	var ranges []string
	for i := 0; i < len(ports); {
		j := i
		for j+1 < len(ports) && ports[j+1] == ports[j]+1 {
			j++
		}
		if i == j {
			ranges = append(ranges, fmt.Sprintf("=%d", ports[i]))
		} else {
			ranges = append(ranges, fmt.Sprintf("∈(%d..=%d)", ports[i], ports[j]))
		}
		i = j + 1
	}
	return []string{"inner.ulp.dst" + strings.Join(ranges, ",")}
}

// hostPredicates is Address::into_predicate: who sends to the guest, or whom it sends to.
func hostPredicates(text string, inbound bool) []string {
	if text == "any" {
		return nil
	}
	end := map[bool]string{true: "src", false: "dst"}[inbound]
	kind, value, _ := strings.Cut(text, "=")
	var ip netip.Addr
	switch kind {
	case "vni":
		return []string{fmt.Sprintf("meta: vni=%d", vni(value))}
	case "ip":
		ip = address(value)
		value = ip.String()
	case "subnet":
		p := cidr(value)
		ip, value = p.Addr(), p.String()
	default:
		cli.Simulated(false)
	}
	if ip.Is4() {
		return []string{"inner.ip." + end + "=" + value}
	}
	return []string{"inner.ip6." + end + "=" + value}
}

// dumpLayer is print_layer (lib/opte/src/print.rs) of the firewall and the router. No packet has
// come: no rule was hit, and there are no flows.
func (a *adm) dumpLayer() cli.Reply {
	layer, name := a.exactly(1)[0], a.one("-p")
	p := network.Port(a.tx, name)
	if p == nil {
		return refused("DumpLayer", portNotFound(name))
	}
	defaults, known := map[string][2]string{"firewall": {"deny", "stateful allow"}, "router": {"allow", "deny"}}[layer]
	cli.Simulated(known)
	reply := printed(func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Layer %s\n%s\n", layer, strings.Repeat("=", 70))
		for i, way := range []string{"Inbound", "Outbound"} {
			fmt.Fprintf(w, "%s%s Flows\n%s\nPROTO\tSRC IP\tSPORT/TY\tDST IP\tDPORT\tHITS\tACTION\n", map[int]string{1: "\n"}[i], way, strings.Repeat("-", 70))
			w.Flush()
		}
		for i, way := range []string{"Inbound", "Outbound"} {
			fmt.Fprintf(w, "\n%s Rules\n%s\nID\tPRI\tHITS\tPREDICATES\tACTION\n", way, strings.Repeat("-", 70))
			for _, r := range p.Rules[layer+map[int]string{0: " in", 1: " out"}[i]].Rules {
				printRule(w, r)
			}
			fmt.Fprintf(w, "DEF\t--\t0\t--\t%q\n", defaults[i])
			w.Flush()
		}
		fmt.Fprintln(w)
	})
	reply.Stdout = "Port " + name + " - " + reply.Stdout
	return reply
}

// printRule has a row for each predicate, and an empty one behind several.
func printRule(w *tabwriter.Writer, r world.OPTERule) {
	first := "*"
	if len(r.Predicates) > 0 {
		first = r.Predicates[0]
	}
	fmt.Fprintf(w, "%d\t%d\t0\t%s\t%q\n", r.ID, r.Priority, first, r.Action)
	for _, predicate := range r.Predicates[min(1, len(r.Predicates)):] {
		fmt.Fprintf(w, "\t\t\t%s\t\n", predicate)
	}
	if len(r.Predicates) > 1 {
		fmt.Fprint(w, "\t\t\t\t\n")
	}
}
