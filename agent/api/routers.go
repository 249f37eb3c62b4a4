package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/illumos/opte"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
)

// VPCFirewall is the body of PUT /vpc/{vpc_id}/firewall/rules: all rules of a VPC.
type VPCFirewall struct {
	VNI   uint32            `json:"vni"`
	Rules []json.RawMessage `json:"rules"`
}

// UnmarshalJSON refuses a body that lacks a field.
func (f *VPCFirewall) UnmarshalJSON(data []byte) error {
	type plain VPCFirewall
	return whole(data, (*plain)(f), "vni", "rules")
}

// For is a NIC with those of the rules that are for it, if it is in the VPC; else as it is.
func (f VPCFirewall) For(n record.NIC) (record.NIC, error) {
	if n.VNI != int(f.VNI) {
		return n, nil
	}
	n.Rules = nil
	for _, data := range f.Rules {
		rules, err := rulesFor(NIC{MAC: n.MAC, VNI: f.VNI}, data)
		if err != nil {
			return n, &opte.InvalidError{What: "rule", Value: string(data), Want: err.Error()}
		}
		n.Rules = append(n.Rules, rules...)
	}
	return n, nil
}

// Mapping says on which sled an address of a VPC is: the body of PUT and DELETE /v2p, and one of the answer
// to GET.
type Mapping struct {
	Physical netip.Addr `json:"physical_host_ip"`
	IP       netip.Addr `json:"virtual_ip"`
	MAC      string     `json:"virtual_mac"`
	VNI      uint32     `json:"vni"`
}

// UnmarshalJSON refuses a body that lacks a field.
func (m *Mapping) UnmarshalJSON(data []byte) error {
	type plain Mapping
	return whole(data, (*plain)(m), "physical_host_ip", "virtual_ip", "virtual_mac", "vni")
}

// MappingOf is one as OPTE has it, the MAC as omicron writes them.
func MappingOf(m opte.Mapping) Mapping {
	return Mapping{Physical: m.Physical, IP: m.IP, MAC: strings.ToUpper(m.MAC), VNI: uint32(m.VNI)}
}

// Mapping is it as OPTE takes it. The error is an *opte.InvalidError.
func (m Mapping) Mapping() (opte.Mapping, error) {
	mac, err := vnic.ParseMAC(m.MAC)
	if err != nil {
		return opte.Mapping{}, err
	}
	mapping := opte.Mapping{VNI: int(m.VNI), IP: m.IP, MAC: mac, Physical: m.Physical}
	return mapping, mapping.Check()
}

// Gateways are those through which the external addresses of NICs may leave: the body of PUT /eip-gateways.
type Gateways struct {
	Mappings map[uuid.UUID]map[netip.Addr][]uuid.UUID `json:"mappings"`
}

// UnmarshalJSON refuses a body that lacks a field.
func (g *Gateways) UnmarshalJSON(data []byte) error {
	type plain Gateways
	return whole(data, (*plain)(g), "mappings")
}

// RouterID names routes: of all NICs of a VPC, or of those in one of its subnets, which come before.
type RouterID struct {
	Kind RouterKind `json:"kind"`
	VNI  uint32     `json:"vni"`
}

// RouterKind names the NICs of a VPC that have some routes.
type RouterKind struct {
	Type   string `json:"type"` // system: of all; custom: of those in a subnet
	Subnet string `json:"subnet,omitempty"`
}

// UnmarshalJSON refuses what is neither.
func (id *RouterID) UnmarshalJSON(data []byte) error {
	type plain RouterID
	if err := whole(data, (*plain)(id), "kind", "vni"); err != nil {
		return err
	}
	if id.Kind.Type == "system" && id.Kind.Subnet == "" {
		return nil
	}
	subnet, err := netip.ParsePrefix(id.Kind.Subnet)
	if id.Kind.Type != "custom" || err != nil {
		return fmt.Errorf("kind %q: want system, or custom with a subnet", id.Kind.Type)
	}
	id.Kind.Subnet = subnet.Masked().String()
	return nil
}

// RoutersOf are those whose routes a NIC in a VPC has.
func RoutersOf(n record.NIC) []RouterID {
	return []RouterID{{VNI: uint32(n.VNI), Kind: RouterKind{Type: "system"}}, {VNI: uint32(n.VNI), Kind: RouterKind{Type: "custom", Subnet: n.Subnet}}}
}

// RouterVersion is the version of routes, which counts for one router.
type RouterVersion struct {
	Router  uuid.UUID `json:"router_id"`
	Version uint64    `json:"version"`
}

// ReplacedBy reports whether routes of another version are newer (RouterVersion::is_replaced_by of omicron
// common/src/api/internal/shared).
func (v RouterVersion) ReplacedBy(other RouterVersion) bool {
	return v.Router != other.Router || v.Version < other.Version
}

// RouterState is one of the answer to GET /vpc-routes.
type RouterState struct {
	ID      RouterID       `json:"id"`
	Version *RouterVersion `json:"version,omitempty"` // null: it is to be sent
}

// RouteSet is one of the body of PUT /vpc-routes: all routes that a router has.
type RouteSet struct {
	ID      RouterID       `json:"id"`
	Routes  []Route        `json:"routes"`
	Version *RouterVersion `json:"version,omitempty"`
}

// UnmarshalJSON refuses a body that lacks a field.
func (s *RouteSet) UnmarshalJSON(data []byte) error {
	type plain RouteSet
	return whole(data, (*plain)(s), "id", "routes")
}

// Route is a route of a VPC.
type Route struct {
	Dest   netip.Prefix `json:"dest"`
	Target RouteTarget  `json:"target"`
}

// RouteTarget is where it leads.
type RouteTarget struct {
	Type  string          `json:"type"` // drop, internet_gateway, ip, vpc_subnet
	Value json.RawMessage `json:"value,omitempty"`
}

// UnmarshalJSON refuses a route that lacks a field.
func (r *Route) UnmarshalJSON(data []byte) error {
	type plain Route
	return whole(data, (*plain)(r), "dest", "target")
}

// For is a NIC with the routes of its router, if it is one; else as it is. Those to what its address cannot reach
// are left out.
func (s RouteSet) For(n record.NIC) (record.NIC, error) {
	if !slices.Contains(RoutersOf(n), s.ID) {
		return n, nil
	}
	ip, _, _ := n.Addresses()
	custom := s.ID.Kind.Type == "custom"
	var routes []string
	for _, r := range n.RoutesOf() {
		if r.Custom != custom {
			routes = append(routes, r.String())
		}
	}
	for _, r := range s.Routes {
		if r.Dest.Addr().Is4() != ip.Is4() {
			continue
		}
		text, err := r.text(custom)
		if err != nil {
			return n, &opte.InvalidError{What: "route to", Value: r.Dest.String(), Want: err.Error()}
		}
		routes = append(routes, text)
	}
	n.Routes = slices.DeleteFunc(routes, func(text string) bool { return text == n.Within().String() })
	return n, nil
}

// text is the route as opteadm takes it. A port does not know through which gateway each of its addresses
// outside leaves: opteadm cannot tell it (inet_gw_map of Command::SetExternalIps in bin/opteadm), and then
// sends nothing to a gateway with a name (setup_ipv4_nat of lib/oxide-vpc/src/engine/nat.rs). So a route to one is a
// route to any.
func (r Route) text(custom bool) (string, error) {
	family, class := "6", "system"
	if r.Dest.Addr().Is4() {
		family = "4"
	}
	if custom {
		class = "custom"
	}
	var value string
	var err error
	switch r.Target.Type {
	case "drop", "internet_gateway":
	case "ip", "vpc_subnet":
		err = json.Unmarshal(r.Target.Value, &value)
	default:
		err = errors.New("unknown variant `" + r.Target.Type + "`")
	}
	if err != nil {
		return "", fmt.Errorf("target: %w", err)
	}
	target := map[string]string{"drop": "drop", "internet_gateway": "ig", "ip": "ip" + family + "=" + value, "vpc_subnet": "sub" + family + "=" + value}[r.Target.Type]
	route, err := opte.ParseRoute(r.Dest.String() + " " + target + " " + class)
	return route.String(), err
}
