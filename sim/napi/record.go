package napi

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// printedNIC is a record as it is written, in the server's order. What is not set
// is left out, and flags that are false.
type printedNIC struct {
	BelongsToType string            `json:"belongs_to_type"`
	BelongsToUUID string            `json:"belongs_to_uuid"`
	MAC           string            `json:"mac"`
	OwnerUUID     string            `json:"owner_uuid"`
	Primary       bool              `json:"primary"`
	State         string            `json:"state"`
	Created       string            `json:"created_timestamp,omitempty"`
	Modified      string            `json:"modified_timestamp,omitempty"`
	IP            string            `json:"ip,omitempty"`
	Fabric        bool              `json:"fabric,omitempty"`
	Gateway       string            `json:"gateway,omitempty"`
	Provisioned   *bool             `json:"gateway_provisioned,omitempty"`
	NAT           bool              `json:"internet_nat,omitempty"`
	MTU           int               `json:"mtu,omitempty"`
	Netmask       string            `json:"netmask,omitempty"`
	Tag           string            `json:"nic_tag,omitempty"`
	Resolvers     []string          `json:"resolvers,omitempty"`
	VLAN          *int              `json:"vlan_id,omitempty"`
	Routes        map[string]string `json:"routes,omitempty"`
	Network       string            `json:"network_uuid,omitempty"`
	CN            string            `json:"cn_uuid,omitempty"`
	Model         string            `json:"model,omitempty"`
	Provided      []string          `json:"nic_tags_provided,omitempty"`
	DHCP          bool              `json:"allow_dhcp_spoofing,omitempty"`
	IPSpoofing    bool              `json:"allow_ip_spoofing,omitempty"`
	MACSpoofing   bool              `json:"allow_mac_spoofing,omitempty"`
	Restricted    bool              `json:"allow_restricted_traffic,omitempty"`
	Promiscuous   bool              `json:"allow_unfiltered_promisc,omitempty"`
	Underlay      bool              `json:"underlay,omitempty"`
}

// flags are the parameters that are printed only when they are true.
func flags() []string {
	return []string{"allow_dhcp_spoofing", "allow_ip_spoofing", "allow_mac_spoofing", "allow_restricted_traffic", "allow_unfiltered_promisc", "underlay"}
}

func (c *call) printed(n *world.NAPI, mac string, r *record) printedNIC {
	has := func(flag string) bool { return slices.Contains(r.Allowed, flag) }
	p := printedNIC{
		BelongsToType: r.BelongsToType, BelongsToUUID: r.BelongsToUUID, MAC: mac, OwnerUUID: r.OwnerUUID, Primary: r.Primary, State: r.State,
		CN: r.CNUUID, Model: r.Model, Provided: r.Provided, Tag: r.Tag,
		DHCP: has("allow_dhcp_spoofing"), IPSpoofing: has("allow_ip_spoofing"), MACSpoofing: has("allow_mac_spoofing"),
		Restricted: has("allow_restricted_traffic"), Promiscuous: has("allow_unfiltered_promisc"), Underlay: has("underlay"),
	}
	if c.era.times {
		p.Created, p.Modified = printTime(r.Created), printTime(r.Modified)
	}
	if net := findNetwork(n, r.Network); net != nil && r.IP != "" {
		p.IP, p.Network, p.Gateway, p.MTU, p.Resolvers, p.Routes, p.VLAN = r.IP, net.UUID, net.Gateway, net.MTU, net.Resolvers, net.Routes, &net.VLAN
		p.Netmask = netmask(net.Subnet)
		if p.Tag == "" {
			p.Tag = net.Tag
		}
		if net.VNet != 0 {
			no := false
			p.Fabric, p.NAT, p.Provisioned, p.Tag = true, true, &no, fmt.Sprintf("%s/%d", net.Tag, net.VNet)
		}
	}
	return p
}

// record is a NIC record with what can be done to it.
type record = world.NAPINIC

// printTime is what JavaScript's toISOString gives; times that were not kept are
// that of 1970 (NAPI-384).
func printTime(t time.Time) string {
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// stamp makes another version of a record.
func stamp(tx *world.Tx, r *record) {
	r.Etag, r.Modified = drawEtag(tx), tx.Now
}

// drawEtag draws the tag of a version.
func drawEtag(tx *world.Tx) string { return fmt.Sprintf("%08X", uint32(tx.Draw("napi etag"))) }

// New is a NAPI that knows of nothing.
func New(address, eraName string) *world.NAPI {
	return &world.NAPI{Address: address, Era: eraName, NICs: map[string]*world.NAPINIC{}, IPs: map[string]*world.NAPIIP{}}
}

func findNetwork(n *world.NAPI, id string) *world.NAPINetwork {
	for _, net := range n.Networks {
		if net.UUID == id || id == "admin" && net.Name == "admin" {
			return net
		}
	}
	return nil
}

func netmask(subnet string) string {
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil || !prefix.Addr().Is4() {
		return ""
	}
	mask := ^uint32(0) << (32 - prefix.Bits())
	return netip.AddrFrom4([4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}).String()
}

// parseMAC reads the forms that the server takes (lib/util/mac.js).
func parseMAC(s string) (string, bool) {
	var groups []string
	switch {
	case strings.Contains(s, ":"):
		groups = strings.Split(s, ":")
	case strings.Contains(s, "-"):
		groups = strings.Split(s, "-")
	case len(s) == 12:
		for i := 0; i < 12; i += 2 {
			groups = append(groups, s[i:i+2])
		}
	}
	if len(groups) != 6 {
		return "", false
	}
	for i, g := range groups {
		g = strings.ToLower(g)
		if len(g) < 1 || len(g) > 2 || strings.Trim(g, "0123456789abcdef") != "" {
			return "", false
		}
		groups[i] = ("0" + g)[len(g)-1:]
	}
	return strings.Join(groups, ":"), true
}

// number is the address as the store's key, which errors of the store print.
func number(mac string) uint64 {
	var n uint64
	for _, g := range strings.Split(mac, ":") {
		var b uint64
		_, _ = fmt.Sscanf(g, "%x", &b) // parseMAC has checked it
		n = n<<8 | b
	}
	return n
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
	}
	return true
}

// sortedMACs are the addresses of the records that fit, in ascending order.
func sortedMACs(n *world.NAPI, fits func(*record) bool) []string {
	var all []string
	for mac, r := range n.NICs {
		if fits(r) {
			all = append(all, mac)
		}
	}
	slices.Sort(all)
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
