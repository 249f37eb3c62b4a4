package napi

import (
	"cmp"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/sim/world"
)

// printedNetwork is a network as it is written.
type printedNetwork struct {
	Family      string            `json:"family"`
	MTU         int               `json:"mtu"`
	Tag         string            `json:"nic_tag"`
	Name        string            `json:"name"`
	End         string            `json:"provision_end_ip"`
	Start       string            `json:"provision_start_ip"`
	Subnet      string            `json:"subnet"`
	UUID        string            `json:"uuid"`
	VLAN        int               `json:"vlan_id"`
	Fabric      bool              `json:"fabric,omitempty"`
	VNet        int               `json:"vnet_id,omitempty"`
	NAT         bool              `json:"internet_nat,omitempty"`
	Provisioned *bool             `json:"gateway_provisioned,omitempty"`
	Resolvers   []string          `json:"resolvers"`
	Gateway     string            `json:"gateway,omitempty"`
	Routes      map[string]string `json:"routes,omitempty"`
	Owner       string            `json:"owner_uuid,omitempty"`
	Owners      []string          `json:"owner_uuids,omitempty"`
	Netmask     string            `json:"netmask"`
}

func printNetwork(net *world.NAPINetwork) printedNetwork {
	p := printedNetwork{
		Family: "ipv4", MTU: net.MTU, Tag: net.Tag, Name: net.Name, Start: net.Start, End: net.End, Subnet: net.Subnet, UUID: net.UUID, VLAN: net.VLAN,
		Resolvers: net.Resolvers, Gateway: net.Gateway, Routes: net.Routes, Owner: net.Owner, Owners: net.Owners, Netmask: netmask(net.Subnet),
	}
	if net.VNet != 0 {
		no := false
		p.Fabric, p.NAT, p.VNet, p.Provisioned = true, true, net.VNet, &no
	}
	return p
}

func (c *call) network(n *world.NAPI) (*world.NAPINetwork, error) {
	if net := findNetwork(n, c.params["network"]); net != nil {
		return net, nil
	}
	return nil, notFound("network not found")
}

func (c *call) tagged(etag string, body any) answer {
	a := answer{status: http.StatusOK, body: body}
	if c.era.etag {
		a.etag = etag
	}
	return a
}

func (c *call) getNetwork() (a answer, err error) {
	err = c.view(c.r.Context(), func(_ *world.Tx, n *world.NAPI) error {
		net, err := c.network(n)
		if err == nil {
			a = c.tagged(net.Etag, printNetwork(net))
		}
		return err
	})
	return a, err
}

// listed answers with a list of what the server keeps.
func listed[T, P any](of func(*world.NAPI) []*T, print func(*T) P) func(*call) (answer, error) {
	return func(c *call) (answer, error) {
		list := []P{}
		err := c.view(c.r.Context(), func(_ *world.Tx, n *world.NAPI) error {
			for _, one := range of(n) {
				list = append(list, print(one))
			}
			return nil
		})
		return answer{status: http.StatusOK, body: list}, err
	}
}

func networks(n *world.NAPI) []*world.NAPINetwork { return n.Networks }
func tags(n *world.NAPI) []*world.NAPITag         { return n.Tags }

// createNetwork makes a network, or one of a fabric. Its own checks are those
// without which it would be no network.
//
// Guess napi-words-for-a-missing-vlan: a NAPI refuses a vlan that does not exist as it does a nic
// tag.
// Check: `curl -i NAPI/fabrics/OWNER/vlans/7/networks -d …`
func (c *call) createNetwork() (a answer, err error) {
	var given printedNetwork
	if err := c.given(&given); err != nil {
		return a, err
	}
	if _, err := netip.ParsePrefix(given.Subnet); err != nil || given.Name == "" {
		return a, invalid(wrong("subnet", "Subnet must be in CIDR form"))
	}
	if err := checkOwners(given.Owners); err != nil {
		return a, err
	}
	err = c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		net := &world.NAPINetwork{
			UUID: tx.UUID(), Etag: NewEtag(tx), Name: given.Name, Subnet: given.Subnet, Start: given.Start, End: given.End, Gateway: given.Gateway,
			Resolvers: given.Resolvers, Routes: given.Routes, Tag: given.Tag, VLAN: given.VLAN, MTU: 1500, Owners: given.Owners,
		}
		if owner := c.params["owner"]; owner != "" {
			net.Owner, net.Tag, net.MTU = owner, "sdc_overlay", 1400
			for _, v := range n.VLANs {
				if v.Owner == owner && strconv.Itoa(v.VLAN) == c.params["vlan"] {
					net.VLAN, net.VNet = v.VLAN, v.VNet
				}
			}
		}
		if !hasTag(n, net.Tag) || net.Owner != "" && net.VNet == 0 {
			return invalid(wrong("nic_tag", "nic tag or vlan does not exist"))
		}
		n.Networks = append(n.Networks, net)
		a = c.tagged(net.Etag, printNetwork(net))
		return nil
	})
	return a, err
}

// checkOwners refuses what is no list of owners.
func checkOwners(owners []string) error {
	if bad := slices.DeleteFunc(slices.Clone(owners), isUUID); len(bad) > 0 {
		return invalid(fieldFault{Field: "owner_uuids", Code: "InvalidParameter", Message: "invalid UUID", Invalid: bad})
	}
	return nil
}

// updateNetwork changes what is given of a network.
//
// Guess napi-network-update: which members of a network a NAPI lets be changed, and that it drops
// others.
// Check: `curl -i -X PUT NAPI/networks/UUID -d …`
func (c *call) updateNetwork() (a answer, err error) {
	err = c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		net, err := c.network(n)
		if err != nil {
			return err
		}
		p := printNetwork(net)
		p.Owners, p.Routes = slices.Clone(p.Owners), maps.Clone(p.Routes)
		if err := cmp.Or(c.given(&p), checkOwners(p.Owners)); err != nil {
			return err
		}
		net.Etag = NewEtag(tx)
		net.Name, net.Gateway, net.Resolvers, net.Start, net.End = p.Name, p.Gateway, p.Resolvers, p.Start, p.End
		net.Routes, net.Owners = p.Routes, p.Owners
		a = c.tagged(net.Etag, printNetwork(net))
		return nil
	})
	return a, err
}

func (c *call) createVLAN() (a answer, err error) {
	var given struct {
		Name string `json:"name"`
		VLAN int    `json:"vlan_id"`
	}
	if err := c.given(&given); err != nil {
		return a, err
	}
	err = c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		const vnets = 1 << 24 // VXLAN's
		v := &world.NAPIVLAN{Name: given.Name, Owner: c.params["owner"], VLAN: given.VLAN, VNet: int(tx.Draw("napi vnet")%(vnets-1)) + 1, Etag: NewEtag(tx)}
		n.VLANs = append(n.VLANs, v)
		a = c.tagged(v.Etag, map[string]any{"name": v.Name, "owner_uuid": v.Owner, "vlan_id": v.VLAN, "vnet_id": v.VNet})
		return nil
	})
	return a, err
}

// printedIP is an address as it is written.
type printedIP struct {
	IP            string `json:"ip"`
	Network       string `json:"network_uuid"`
	Reserved      bool   `json:"reserved"`
	Free          bool   `json:"free"`
	BelongsToType string `json:"belongs_to_type,omitempty"`
	BelongsToUUID string `json:"belongs_to_uuid,omitempty"`
	OwnerUUID     string `json:"owner_uuid,omitempty"`
}

func printIP(n *world.NAPI, net *world.NAPINetwork, ip string) (printedIP, string) {
	used := n.IPs[net.UUID+"/"+ip]
	if used == nil {
		used = &world.NAPIIP{Etag: "00000000"}
	}
	return printedIP{
		IP: ip, Network: net.UUID, Reserved: used.Reserved, Free: used.BelongsToUUID == "" && !used.Reserved,
		BelongsToType: used.BelongsToType, BelongsToUUID: used.BelongsToUUID, OwnerUUID: used.OwnerUUID,
	}, used.Etag
}

// Guess napi-words-for-unknown-networks: the texts of a NAPI for a network that does not exist, and
// for an address outside of its network, are not among what was recorded; nothing depends on them.
// Check: `curl -i NAPI/networks/admin/ips/1.2.3.4`
func (c *call) getIP() (a answer, err error) {
	err = c.view(c.r.Context(), func(_ *world.Tx, n *world.NAPI) error {
		net, err := c.network(n)
		if err != nil || !contains(net, c.params["ip"]) {
			return cmp.Or(err, error(notFound("IP not found")))
		}
		p, etag := printIP(n, net, c.params["ip"])
		a = c.tagged(etag, p)
		return nil
	})
	return a, err
}

func (c *call) searchIPs() (a answer, err error) {
	ip := c.r.URL.Query().Get("ip")
	var errs []fieldFault
	if _, err := netip.ParseAddr(ip); ip == "" {
		errs = append(errs, missing("ip", "Missing parameter"))
	} else if err != nil {
		errs = append(errs, wrong("ip", "invalid IP address"))
	}
	if others := slices.DeleteFunc(keysInOrder(c.r.URL.RawQuery), func(key string) bool { return key == "ip" }); len(others) > 0 {
		errs = append(errs, strange(others))
	}
	if len(errs) > 0 {
		return a, invalid(errs...)
	}
	err = c.view(c.r.Context(), func(_ *world.Tx, n *world.NAPI) error {
		var found []printedIP
		for _, net := range n.Networks {
			if contains(net, ip) {
				p, _ := printIP(n, net, ip)
				found = append(found, p)
			}
		}
		if found == nil {
			return notFound("No networks found matching search criteria")
		}
		a = answer{status: http.StatusOK, body: found}
		return nil
	})
	return a, err
}
