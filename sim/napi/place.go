package napi

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// release frees a record's address, if it is still its VM's.
func release(tx *world.Tx, n *world.NAPI, r *record) {
	ip := n.IPs[r.Network+"/"+r.IP]
	if ip == nil || ip.BelongsToUUID != r.BelongsToUUID {
		return
	}
	ip.Etag = NewEtag(tx)
	ip.BelongsToType, ip.BelongsToUUID = "", ""
	if !ip.Reserved {
		ip.OwnerUUID = ""
	}
}

// place gives a record what its parameters say, if that fits together and with
// what there is.
func place(tx *world.Tx, n *world.NAPI, r *record, p params) []fieldFault {
	was := *r
	set := func(name string, field *string) {
		if s, given := p[name].(string); given {
			*field = s
		}
	}
	for name, field := range map[string]*string{
		"belongs_to_type": &r.BelongsToType, "belongs_to_uuid": &r.BelongsToUUID, "owner_uuid": &r.OwnerUUID, "cn_uuid": &r.CNUUID,
		"state": &r.State, "model": &r.Model,
	} {
		set(name, field)
	}
	for _, flag := range flags() {
		if on, given := p[flag].(bool); given {
			r.Allowed = slices.DeleteFunc(slices.Clone(r.Allowed), func(f string) bool { return f == flag })
			if on {
				r.Allowed = append(r.Allowed, flag)
			}
		}
	}
	if tags, given := p["nic_tags_provided"].([]string); given {
		r.Provided = tags
	}
	if slices.Contains(r.Allowed, "underlay") && r.BelongsToType != "server" {
		return []fieldFault{wrong("underlay", "Only server NICs can be underlay NICs")}
	}
	if errs := connect(tx, n, r, &was, p); len(errs) > 0 {
		return errs
	}
	if primary, given := p["primary"].(bool); given {
		r.Primary = primary
		for _, other := range n.NICs {
			if primary && other.Primary && other.BelongsToUUID == r.BelongsToUUID && other.Etag != was.Etag {
				other.Primary = false
				stamp(tx, other)
			}
		}
	}
	return nil
}

// connect puts a record on a network.
func connect(tx *world.Tx, n *world.NAPI, r, was *record, p params) []fieldFault {
	net := findNetwork(n, was.Network)
	if id := p.text("network_uuid"); id != "" {
		net = findNetwork(n, id)
	}
	if net == nil && p.text("ip") != "" {
		var errs []fieldFault
		if net, errs = networkOf(n, p); len(errs) > 0 {
			return errs
		}
	}
	if net == nil {
		if tag, _, _ := strings.Cut(p.text("nic_tag"), "/"); tag != "" {
			r.Tag = tag // without the virtual network
		}
		return nil
	}
	if errs := fits(net, r, p); len(errs) > 0 {
		return errs
	}
	ip := p.text("ip")
	switch {
	case ip == "" && was.Network == net.UUID:
		ip = was.IP
	case ip == "":
		if ip = free(n, net); ip == "" {
			return []fieldFault{{Field: net.UUID, Code: codeFull}}
		}
	default:
		if errs := usable(n, net, ip, was); len(errs) > 0 {
			return errs
		}
	}
	if was.IP != "" && (was.IP != ip || was.Network != net.UUID) {
		release(tx, n, was)
	}
	r.Network, r.IP = net.UUID, ip
	reserved, given := p["reserved"].(bool)
	if old := n.IPs[net.UUID+"/"+ip]; old != nil && !given {
		reserved = old.Reserved
	}
	n.IPs[net.UUID+"/"+ip] = &world.NAPIIP{
		Etag: NewEtag(tx), Reserved: reserved, BelongsToType: r.BelongsToType, BelongsToUUID: r.BelongsToUUID, OwnerUUID: r.OwnerUUID,
	}
	return nil
}

// networkOf finds the network of an address that comes without one.
func networkOf(n *world.NAPI, p params) (*world.NAPINetwork, []fieldFault) {
	const needed = "required if IP specified but not network_uuid"
	var errs []fieldFault
	for _, name := range []string{"nic_tag", "vlan_id"} {
		if _, given := p[name]; !given {
			errs = append(errs, missing(name, needed))
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	for _, net := range n.Networks {
		if net.Tag == p.text("nic_tag") && net.VLAN == p["vlan_id"] && contains(net, p.text("ip")) {
			return net, nil
		}
	}
	return nil, []fieldFault{wrong("ip", "No networks matching this nic_tag (%q) and vlan_id (%d) contained the IP address %s", p.text("nic_tag"), p["vlan_id"], p.text("ip"))}
}

func contains(net *world.NAPINetwork, ip string) bool {
	prefix, perr := netip.ParsePrefix(net.Subnet)
	a, aerr := netip.ParseAddr(ip)
	return perr == nil && aerr == nil && prefix.Contains(a)
}

// fits says in what a record does not go with its network.
func fits(net *world.NAPINetwork, r *record, p params) []fieldFault {
	var errs []fieldFault
	if vlan, given := p["vlan_id"].(int); given && vlan != net.VLAN {
		errs = append(errs, wrong("network_uuid", "The vlan_id of all specified IPv4 and IPv6 networks must match (have %d and %d)", vlan, net.VLAN))
	}
	if tag, given := p["nic_tag"].(string); given && tag != net.Tag && tag != fmt.Sprintf("%s/%d", net.Tag, net.VNet) {
		errs = append(errs, wrong("network_uuid", "The nic_tag of all specified IPv4 and IPv6 networks must match (have %q and %q)", tag, net.Tag))
	}
	if !mayUse(net, r.OwnerUUID) && p["check_owner"] != false {
		errs = append(errs, wrong("owner_uuid", "network owner_uuids do not match"))
	}
	if net.VNet != 0 && r.CNUUID == "" {
		errs = append(errs, missing("cn_uuid", "Missing parameter"))
	}
	return errs
}

// mayUse reports whether an owner may have NICs on a network.
func mayUse(net *world.NAPINetwork, owner string) bool {
	if net.Owner == "" && len(net.Owners) == 0 {
		return true
	}
	return owner == net.Owner || slices.Contains(net.Owners, owner)
}

// usable says why a record cannot have an address.
func usable(n *world.NAPI, net *world.NAPINetwork, ip string, was *record) []fieldFault {
	if !contains(net, ip) {
		return []fieldFault{wrong("ip", "IP address %s is outside the subnet for given network %s", ip, net.UUID)}
	}
	used := n.IPs[net.UUID+"/"+ip]
	if used == nil || used.BelongsToUUID == "" || was.Network == net.UUID && was.IP == ip {
		return nil
	}
	return []fieldFault{{Type: used.BelongsToType, ID: used.BelongsToUUID, Code: "UsedBy", Field: "ip",
		Message: fmt.Sprintf("IP in use by %s %q", used.BelongsToType, used.BelongsToUUID)}}
}

// free is the lowest address that was never used, else one that is free again.
func free(n *world.NAPI, net *world.NAPINetwork) string {
	first, _ := netip.ParseAddr(net.Start)
	last, err := netip.ParseAddr(net.End)
	again := ""
	for a := first; err == nil && a.IsValid() && a.Compare(last) <= 0; a = a.Next() {
		ip := n.IPs[net.UUID+"/"+a.String()]
		switch {
		case ip == nil:
			return a.String()
		case ip.BelongsToUUID == "" && !ip.Reserved && again == "":
			again = a.String()
		}
	}
	return again
}
