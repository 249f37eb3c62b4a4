package napi

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
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
	r.Etag, r.Modified = NewEtag(tx), tx.Now
}

// NewEtag draws the tag of a version.
func NewEtag(tx *world.Tx) string { return fmt.Sprintf("%08X", uint32(tx.Draw("napi etag"))) }

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
	_, in, err := net.ParseCIDR(subnet)
	if err != nil || in.IP.To4() == nil {
		return ""
	}
	return net.IP(in.Mask).String()
}

// parseMAC reads the forms that the server takes (lib/util/mac.js).
func parseMAC(s string) (string, bool) {
	s = strings.ToLower(s)
	if regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(s) {
		s = strings.TrimSuffix(regexp.MustCompile(`..`).ReplaceAllString(s, "$0:"), ":")
	}
	if !regexp.MustCompile(`^[0-9a-f]{1,2}(:[0-9a-f]{1,2}){5}$|^[0-9a-f]{1,2}(-[0-9a-f]{1,2}){5}$`).MatchString(s) {
		return "", false
	}
	groups := strings.FieldsFunc(s, func(r rune) bool { return r == ':' || r == '-' })
	for i, g := range groups {
		groups[i] = ("0" + g)[len(g)-1:]
	}
	return strings.Join(groups, ":"), true
}

// number is the address as the store's key, which errors of the store print.
func number(mac string) uint64 {
	n, _ := strconv.ParseUint(strings.ReplaceAll(mac, ":", ""), 16, 64) // parseMAC has checked it
	return n
}

func isUUID(s string) bool {
	return regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(s)
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
