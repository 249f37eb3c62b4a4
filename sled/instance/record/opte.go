package record

import (
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/illumos/opte"
)

// Port is what a NIC in a VPC has in the place of a link below it: its place in the VPC, and what
// OPTE lets through. Its guest gets IP and Gateway from OPTE by DHCP.
type Port struct {
	VNI     int    `json:"vni,omitempty" toml:"vni"`         // of the VPC
	IP      string `json:"ip,omitempty" toml:"ip"`           // in the VPC
	Subnet  string `json:"subnet,omitempty" toml:"subnet"`   // around IP
	Gateway string `json:"gateway,omitempty" toml:"gateway"` // in Subnet
	// Rules are those of its firewall, and Routes those besides that of its subnet, as
	// opte.ParseRule and opte.ParseRoute read them.
	Rules  []string `json:"rules,omitempty" toml:"rules"`
	Routes []string `json:"routes,omitempty" toml:"routes"`
	External
}

// External are the addresses of a NIC outside its VPC.
type External struct {
	SNAT      string   `json:"snat,omitempty" toml:"snat"`                 // that it shares with others, with its ports: IP/FIRST-LAST
	Ephemeral string   `json:"ephemeral_ip,omitempty" toml:"ephemeral_ip"` // an address of its own
	Floating  []string `json:"floating_ips,omitempty" toml:"floating_ips"` // others, which it prefers
}

// isZero reports whether nothing of it is there.
func (p Port) isZero() bool {
	return reflect.ValueOf(p).IsZero()
}

// takePort reads a word of --nic about a port. A plus stands for a blank, which a shell would have to
// be kept from.
func (n *NIC) takePort(word string) bool {
	if word == "opte" && !n.OPTE {
		n.OPTE = true
		return true
	}
	key, value, _ := strings.Cut(word, "=")
	return value != "" && n.take(key, strings.ReplaceAll(value, "+", " ")) // no value has a + of its own
}

// take reads one key of --nic.
func (p *Port) take(key, value string) bool {
	once := func(to *string) bool {
		free := *to == ""
		*to = value
		return free
	}
	switch key {
	case "vni":
		free := p.VNI == 0
		p.VNI = positive(value)
		return free && p.VNI != 0
	case "ip":
		return once(&p.IP)
	case "subnet":
		return once(&p.Subnet)
	case "gateway":
		return once(&p.Gateway)
	case "snat":
		return once(&p.SNAT)
	case "ephemeral-ip":
		return once(&p.Ephemeral)
	case "floating-ip":
		p.Floating = append(p.Floating, value)
		return true
	case "rule":
		p.Rules = append(p.Rules, value)
		return true
	case "route":
		p.Routes = append(p.Routes, value)
		return true
	}
	return false
}

// normal gives it the form in which it is compared. The gateway is the subnet's first address unless it is
// given.
func (p Port) normal() (Port, error) {
	bad := func(field, value, want string) (Port, error) {
		return Port{}, &InputError{Field: "nic " + field, Value: value, Want: want}
	}
	subnet, err := netip.ParsePrefix(p.Subnet)
	if err != nil {
		return bad("subnet", p.Subnet, "that of the VPC, e.g. 172.30.0.0/22")
	}
	subnet = subnet.Masked()
	if p.Gateway == "" {
		p.Gateway = subnet.Addr().Next().String()
	}
	ip, err := netip.ParseAddr(p.IP)
	gateway, failed := netip.ParseAddr(p.Gateway)
	switch {
	case p.VNI < 1 || p.VNI > opte.MaxVNI:
		return bad("vni", strconv.Itoa(p.VNI), "that of the VPC, a number from 1 to "+strconv.Itoa(opte.MaxVNI))
	case err != nil || !subnet.Contains(ip) || ip == subnet.Addr():
		return bad("ip", p.IP, "an address of a host within "+subnet.String())
	case failed != nil || !subnet.Contains(gateway) || gateway == ip:
		return bad("gateway", p.Gateway, "another address within "+subnet.String())
	}
	p.IP, p.Subnet, p.Gateway = ip.String(), subnet.String(), gateway.String()
	rules, err := each(p.Rules, func(text string) (string, error) { r, err := opte.ParseRule(text); return r.String(), err })
	if err != nil {
		return Port{}, err
	}
	routes, err := each(p.Routes, func(text string) (string, error) { r, err := opte.ParseRoute(text); return r.String(), err })
	if err != nil {
		return Port{}, err
	}
	slices.Sort(rules)
	slices.Sort(routes)
	p.Rules, p.Routes = slices.Compact(rules), slices.Compact(routes)
	if p.External, err = p.External.normal(ip); err != nil {
		return Port{}, err
	}
	return p, p.checkRoutes(subnet)
}

// normal gives them the form in which they are compared. They are of the family of the NIC's address.
func (e External) normal(of netip.Addr) (External, error) {
	address := func(field, text string) (string, error) {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Is4() != of.Is4() || ip.Zone() != "" || ip.Is4In6() {
			return "", &InputError{Field: "nic " + field, Value: text, Want: "an address of the family of " + of.String()}
		}
		return ip.String(), nil
	}
	var err error
	if e.SNAT != "" {
		ip, ports, _ := strings.Cut(e.SNAT, "/")
		first, last, _ := strings.Cut(ports, "-")
		from, failed := strconv.ParseUint(first, 10, 16)
		to, also := strconv.ParseUint(last, 10, 16)
		if failed != nil || also != nil || to < from {
			return External{}, &InputError{Field: "nic snat", Value: e.SNAT, Want: "an address and ports, e.g. 203.0.113.1/0-16383"}
		}
		if ip, err = address("snat", ip); err != nil {
			return External{}, err
		}
		e.SNAT = ip + "/" + strconv.FormatUint(from, 10) + "-" + strconv.FormatUint(to, 10)
	}
	if e.Ephemeral != "" {
		if e.Ephemeral, err = address("ephemeral-ip", e.Ephemeral); err != nil {
			return External{}, err
		}
	}
	floating, err := each(e.Floating, func(text string) (string, error) { return address("floating-ip", text) })
	slices.Sort(floating)
	e.Floating = slices.Compact(floating)
	return e, err
}

// checkRoutes wants destinations of the port's own family: it has no other addresses.
func (p Port) checkRoutes(subnet netip.Prefix) error {
	for _, text := range p.Routes {
		if r, _ := opte.ParseRoute(text); r.Dest.Addr().Is4() != subnet.Addr().Is4() {
			return &InputError{Field: "nic route", Value: text, Want: "a destination of the family of " + subnet.String()}
		}
	}
	return nil
}

func each(texts []string, do func(string) (string, error)) (all []string, err error) {
	for _, text := range texts {
		one, err := do(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// FirewallOf are the rules of a NIC's firewall.
func (p Port) FirewallOf() (all []opte.Rule) {
	for _, text := range p.Rules {
		if r, err := opte.ParseRule(text); err == nil { // it was read before it was recorded
			all = append(all, r)
		}
	}
	return all
}

// RoutesOf are the routes of a NIC: to its subnet, and those that were asked for.
func (p Port) RoutesOf() (all []opte.Route) {
	all = append(all, p.Within())
	for _, text := range p.Routes {
		if r, err := opte.ParseRoute(text); err == nil && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// Within is the route to a NIC's own subnet, which it has without being given it.
func (p Port) Within() opte.Route {
	r, _ := opte.ParseRoute(p.Subnet + " " + p.within()) // it was read before it was recorded
	return r
}

// Addresses are those of a NIC: its own, its subnet and its gateway.
func (p Port) Addresses() (ip netip.Addr, subnet netip.Prefix, gateway netip.Addr) {
	ip, _ = netip.ParseAddr(p.IP) // they were read before they were recorded
	subnet, _ = netip.ParsePrefix(p.Subnet)
	gateway, _ = netip.ParseAddr(p.Gateway)
	return ip, subnet, gateway
}

// within is the target of packets to the own subnet.
func (p Port) within() string {
	if strings.Contains(p.Subnet, ":") {
		return "sub6=" + p.Subnet
	}
	return "sub4=" + p.Subnet
}

// text is it as --nic takes it, but for the MAC.
func (p Port) text() string {
	text := "opte,vni=" + strconv.Itoa(p.VNI) + ",ip=" + p.IP + ",subnet=" + p.Subnet + ",gateway=" + p.Gateway
	for _, word := range []struct{ key, value string }{{"snat", p.SNAT}, {"ephemeral-ip", p.Ephemeral}} {
		if word.value != "" {
			text += "," + word.key + "=" + word.value
		}
	}
	for _, ip := range p.Floating {
		text += ",floating-ip=" + ip
	}
	for _, r := range p.Rules {
		text += ",rule=" + r
	}
	for _, r := range p.Routes {
		text += ",route=" + r
	}
	return text
}
