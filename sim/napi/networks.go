package napi

import (
	"cmp"
	"net/http"
	"net/netip"
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
	Netmask     string            `json:"netmask"`
}

func printNetwork(net *world.NAPINetwork) printedNetwork {
	p := printedNetwork{
		Family: "ipv4", MTU: net.MTU, Tag: net.Tag, Name: net.Name, Start: net.Start, End: net.End, Subnet: net.Subnet, UUID: net.UUID, VLAN: net.VLAN,
		Resolvers: net.Resolvers, Gateway: net.Gateway, Routes: net.Routes, Owner: net.Owner, Netmask: netmask(net.Subnet),
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
	err = c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		net := &world.NAPINetwork{
			UUID: tx.UUID(), Etag: drawEtag(tx), Name: given.Name, Subnet: given.Subnet, Start: given.Start, End: given.End, Gateway: given.Gateway,
			Resolvers: given.Resolvers, Routes: given.Routes, Tag: given.Tag, VLAN: given.VLAN, MTU: 1500,
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
		v := &world.NAPIVLAN{Name: given.Name, Owner: c.params["owner"], VLAN: given.VLAN, VNet: int(tx.Draw("napi vnet")%(vnets-1)) + 1, Etag: drawEtag(tx)}
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
	if ip == "" {
		return a, invalid(missing("ip", "Missing parameter"))
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

// printedTag is a tag as it is written.
type printedTag struct {
	MTU  int    `json:"mtu"`
	Name string `json:"name"`
	UUID string `json:"uuid"`
}

func printTag(t *world.NAPITag) printedTag { return printedTag{t.MTU, t.Name, t.UUID} }

// Guess napi-words-for-a-doubled-tag: how a NAPI refuses a nic tag that is missing or exists
// already.
// Check: `curl -i NAPI/nic_tags -d name=admin`
func (c *call) createTag() (a answer, err error) {
	var given printedTag
	if err := c.given(&given); err != nil {
		return a, err
	}
	err = c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		if given.Name == "" || hasTag(n, given.Name) {
			return invalid(fieldFault{Field: "name", Code: "Duplicate", Message: "Missing, or already exists"})
		}
		t := &world.NAPITag{UUID: tx.UUID(), Name: given.Name, MTU: 1500}
		n.Tags = append(n.Tags, t)
		a = answer{status: http.StatusOK, body: printTag(t)}
		return nil
	})
	return a, err
}
