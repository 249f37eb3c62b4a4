package opte

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rule is a rule of a port's firewall. Without one, nothing comes in and everything may go out
// (lib/oxide-vpc/src/engine/firewall.rs).
type Rule struct {
	In       bool // else out
	Deny     bool // else allow
	Priority int  // 0 to 65535; the lower number counts, and of two a deny
	Hosts    string
	Protocol string
	Ports    string
}

// ruleWords is what a rule consists of.
const ruleWords = "dir=in|out, action=allow|deny, priority=N, hosts=any|ip=IP|subnet=CIDR|vni=N, protocol=any|arp|tcp|udp|icmp[:TYPE[,CODE[-CODE]]]|icmp6…, port=any|N[-N][,N[-N]]…, parted by blanks"

// ParseRule reads a rule as opteadm set-fw-rules takes it (FirewallRule::from_str in
// lib/oxide-vpc/src/api.rs), with ranges of ports next to it, and gives it one form: every part is there, addresses as netip writes them,
// ports in their order. The error is an *InvalidError.
func ParseRule(text string) (Rule, error) {
	r := Rule{Priority: -1, Hosts: "any", Protocol: "any", Ports: "any"}
	bad := &InvalidError{"firewall rule", text, ruleWords}
	said := map[string]bool{}
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		key, value, _ := strings.Cut(word, "=")
		if said[key] || !r.take(key, value) {
			return Rule{}, bad
		}
		said[key] = true
	}
	if !said["dir"] || !said["action"] || !said["priority"] {
		return Rule{}, bad
	}
	return r, nil
}

func (r *Rule) take(key, value string) (ok bool) {
	switch key {
	case "dir":
		r.In = value == "in"
		return r.In || value == "out"
	case "action":
		r.Deny = value == "deny"
		return r.Deny || value == "allow"
	case "priority":
		r.Priority, ok = number(value, 65535)
		return ok
	case "hosts":
		r.Hosts, ok = hosts(value)
		return ok
	case "protocol":
		r.Protocol = value
		return regexp.MustCompile(`^(any|arp|tcp|udp|icmp6?(:\d{1,3}(,\d{1,3}(-\d{1,3})?)?)?)$`).MatchString(value)
	case "port":
		r.Ports, ok = ports(value)
		return ok
	}
	return false
}

// number reads one in its shortest form.
func number(text string, most int) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= most && strconv.Itoa(n) == text
}

func hosts(text string) (string, bool) {
	kind, value, _ := strings.Cut(text, "=")
	switch kind {
	case "any":
		return text, text == "any"
	case "ip":
		ip, err := netip.ParseAddr(value)
		return "ip=" + ip.String(), err == nil && ip.Zone() == "" && !ip.Is4In6()
	case "subnet":
		p, err := netip.ParsePrefix(value)
		return "subnet=" + p.Masked().String(), err == nil
	case "vni":
		_, ok := number(value, MaxVNI)
		return text, ok
	}
	return "", false
}

// ports reads numbers and ranges, and gives them in their order, what follows each other as a range.
func ports(text string) (string, bool) {
	if text == "any" {
		return text, true
	}
	var all []int
	for one := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(one, "-")
		if !ranged {
			last = first
		}
		from, ok := number(first, 65535)
		to, also := number(last, 65535)
		if !ok || !also || from == 0 || to < from {
			return "", false
		}
		for n := from; n <= to; n++ {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	var words []string
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		if words = append(words, strconv.Itoa(all[i])); j > i {
			words[len(words)-1] += "-" + strconv.Itoa(all[j])
		}
		i = j + 1
	}
	return strings.Join(words, ","), true
}

// oneByOne lists ports one by one, as opteadm wants them.
func oneByOne(text string) string {
	var words []string
	for one := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(one, "-")
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		if !ranged {
			words = append(words, one)
		}
		for n := from; ranged && n <= to; n++ {
			words = append(words, strconv.Itoa(n))
		}
	}
	return strings.Join(words, ",")
}

// String is what ParseRule reads.
func (r Rule) String() string { return r.text(r.Ports) }

// line is the rule as opteadm takes it: it knows no ranges of ports.
func (r Rule) line() string { return r.text(oneByOne(r.Ports)) }

func (r Rule) text(ports string) string {
	dir, action := "out", "allow"
	if r.In {
		dir = "in"
	}
	if r.Deny {
		action = "deny"
	}
	return fmt.Sprintf("dir=%s action=%s priority=%d hosts=%s protocol=%s port=%s", dir, action, r.Priority, r.Hosts, r.Protocol, ports)
}

// row is the rule as opteadm shows it: what it compares, and what it does
// (into_predicate of lib/oxide-vpc/src/engine/firewall.rs, Display of lib/opte/src/engine/predicate.rs).
func (r Rule) row() Row {
	row := Row{In: r.In, Priority: r.Priority, Action: "Stateful Allow"}
	if r.Deny {
		row.Action = "Deny"
	}
	row.Predicates = slices.Concat(protocolPredicates(r.Protocol), portPredicates(r.Ports), r.hostPredicates())
	return row
}

func protocolPredicates(text string) []string {
	name, filter, filtered := strings.Cut(text, ":")
	switch {
	case filtered:
		kind, codes, coded := strings.Cut(filter, ",")
		all := []string{"inner.icmp.type=" + kind}
		if coded {
			first, last, _ := strings.Cut(codes, "-")
			all = append(all, "inner.icmp.code"+span(first, last))
		}
		return all
	case name == "any":
		return nil
	case name == "arp":
		return []string{"inner.ether.ether_type=ARP"}
	}
	return []string{"inner.ip.proto=" + map[string]string{"tcp": "TCP", "udp": "UDP", "icmp": "ICMP", "icmp6": "ICMPv6"}[name]}
}

// span is one number, or all from one to another.
func span(first, last string) string {
	if last == "" || last == first {
		return "=" + first
	}
	return "∈(" + first + "..=" + last + ")"
}

func portPredicates(text string) []string {
	if text == "any" {
		return nil
	}
	var spans []string
	for one := range strings.SplitSeq(text, ",") {
		first, last, _ := strings.Cut(one, "-")
		spans = append(spans, span(first, last))
	}
	return []string{"inner.ulp.dst" + strings.Join(spans, ",")}
}

func (r Rule) hostPredicates() []string {
	kind, value, _ := strings.Cut(r.Hosts, "=")
	end := "dst"
	if r.In {
		end = "src"
	}
	version := ""
	if strings.Contains(value, ":") {
		version = "6"
	}
	switch kind {
	case "ip", "subnet":
		return []string{"inner.ip" + version + "." + end + "=" + value}
	case "vni":
		return []string{"meta: vni=" + value}
	}
	return nil
}
