package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/sledctl/sledctl/sled/instance/record"
)

// PortOf is a NIC of a VM as a port of OPTE, with the firewall rules that are for it. The error says what of it
// no port has here: opteadm, by which ports are made, knows addresses of one family only.
func (l Local) PortOf(n NIC) (record.Port, error) {
	var config struct {
		Type  string
		Value struct {
			IP      netip.Addr
			Subnet  netip.Prefix
			Transit []netip.Prefix `json:"transit_ips"`
		}
	}
	if err := json.Unmarshal(n.IPConfig, &config); err != nil {
		return record.Port{}, fmt.Errorf("ip_config: %w", err)
	}
	switch {
	case config.Type != "v4" && config.Type != "v6":
		return record.Port{}, fmt.Errorf("ip_config: %s: a NIC has addresses of one family here", config.Type)
	case len(config.Value.Transit) > 0:
		return record.Port{}, errors.New("ip_config: a NIC has no transit_ips here")
	}
	p := record.Port{VNI: int(n.VNI), IP: config.Value.IP.String(), Subnet: config.Value.Subnet.Masked().String()}
	if n.Primary { // the others have none (omicron illumos-utils/src/opte/port_manager.rs)
		var err error
		if p.External, err = l.external(config.Type); err != nil {
			return p, fmt.Errorf("external_ips: %w", err)
		}
	}
	for _, data := range l.FirewallRules {
		rules, err := rulesFor(n, data)
		if err != nil {
			return p, fmt.Errorf("firewall_rules: %w", err)
		}
		p.Rules = append(p.Rules, rules...)
	}
	return p, nil
}

// external are the addresses of a VM outside its VPC, of its primary NIC's family. Those of another one have no
// NIC to be on.
func (l Local) external(family string) (e record.External, err error) {
	type addresses struct {
		NAT *struct {
			IP    netip.Addr `json:"ip"`
			First uint16     `json:"first_port"`
			Last  uint16     `json:"last_port"`
		} `json:"source_nat"`
		Ephemeral *string  `json:"ephemeral_ip"`
		Floating  []string `json:"floating_ips"`
	}
	var all map[string]*addresses
	if len(l.ExternalIPs) == 0 {
		return e, nil
	}
	if err := json.Unmarshal(l.ExternalIPs, &all); err != nil {
		return e, err
	}
	for of, a := range all {
		switch {
		case a == nil || a.NAT == nil && a.Ephemeral == nil && len(a.Floating) == 0:
			continue
		case of != family:
			return e, fmt.Errorf("%s: the primary NIC has %s addresses only", of, family)
		}
		if a.NAT != nil {
			e.SNAT = fmt.Sprintf("%s/%d-%d", a.NAT.IP, a.NAT.First, a.NAT.Last)
		}
		if a.Ephemeral != nil {
			e.Ephemeral = *a.Ephemeral
		}
		e.Floating = a.Floating
	}
	return e, nil
}

// CheckPorts says what else a VM in a VPC is given that no port has here.
func (l Local) CheckPorts() error {
	switch {
	case len(l.Subnets) > 0:
		return errors.New("attached_subnets: VMs have no attached subnets on this sled")
	case len(l.Multicast) > 0:
		return errors.New("multicast_groups: VMs are in no multicast groups on this sled")
	case l.MTU != nil && *l.MTU != 1500:
		return fmt.Errorf("primary_nic_mtu: %d: a port has 1500 bytes on this sled", *l.MTU)
	}
	return nil
}

// firewallRule is a rule of a VPC's firewall whose names are resolved.
type firewallRule struct {
	Status    string `json:"status"`    // enabled, disabled
	Direction string `json:"direction"` // inbound, outbound
	Action    string `json:"action"`    // allow, deny
	Priority  uint16 `json:"priority"`
	Targets   []struct {
		MAC string `json:"mac"`
		VNI uint32 `json:"vni"`
	} `json:"targets"`
	Hosts []struct {
		Type  string          `json:"type"` // ip, vpc
		Value json.RawMessage `json:"value"`
	} `json:"filter_hosts"`
	Ports     []string `json:"filter_ports"`
	Protocols []struct {
		Type  string `json:"type"` // tcp, udp, icmp, icmp6
		Value *struct {
			Type uint8   `json:"icmp_type"`
			Code *string `json:"code"` // N or N-N
		} `json:"value"`
	} `json:"filter_protocols"`
}

// rulesFor are the rules of OPTE that a rule of a VPC is for a NIC: one for each host and protocol that it
// names (omicron illumos-utils/src/opte/firewall_rules.rs). Of another NIC's there are none.
func rulesFor(n NIC, data json.RawMessage) (all []string, err error) {
	var r firewallRule
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	direction, known := map[string]string{"inbound": "in", "outbound": "out"}[r.Direction]
	if !known || r.Action != "allow" && r.Action != "deny" {
		return nil, fmt.Errorf("direction %q, action %q", r.Direction, r.Action)
	}
	meant := false
	for _, t := range r.Targets {
		meant = meant || strings.EqualFold(t.MAC, n.MAC) && t.VNI == n.VNI
	}
	if !meant || r.Status != "enabled" {
		return nil, nil
	}
	text := fmt.Sprintf("dir=%s action=%s priority=%d", direction, r.Action, r.Priority)
	if len(r.Ports) > 0 {
		text += " port=" + strings.Join(r.Ports, ",")
	}
	hosts, err := r.hosts()
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		for _, protocol := range r.protocols() {
			all = append(all, text+" hosts="+host+" protocol="+protocol)
		}
	}
	return all, nil
}

func (r firewallRule) hosts() ([]string, error) {
	if len(r.Hosts) == 0 {
		return []string{"any"}, nil
	}
	var all []string
	for _, h := range r.Hosts {
		switch h.Type {
		case "vpc":
			all = append(all, "vni="+string(h.Value))
		case "ip":
			var p netip.Prefix
			if err := json.Unmarshal(h.Value, &p); err != nil {
				return nil, fmt.Errorf("filter_hosts: %w", err)
			}
			if p.IsSingleIP() {
				all = append(all, "ip="+p.Addr().String())
			} else {
				all = append(all, "subnet="+p.String())
			}
		default:
			return nil, fmt.Errorf("filter_hosts: unknown variant `%s`", h.Type)
		}
	}
	return all, nil
}

func (r firewallRule) protocols() []string {
	if len(r.Protocols) == 0 {
		return []string{"any"}
	}
	var all []string
	for _, p := range r.Protocols {
		text := p.Type
		if p.Value != nil {
			text += fmt.Sprintf(":%d", p.Value.Type)
			if p.Value.Code != nil {
				text += "," + *p.Value.Code
			}
		}
		all = append(all, text)
	}
	return all
}
