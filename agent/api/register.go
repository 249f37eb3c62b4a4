package api

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"

	"github.com/google/uuid"
)

// Register is the body of PUT /vmms/{propolis_id} in the latest version, and the
// form that those of all versions are brought to.
type Register struct {
	Spec      json.RawMessage `json:"vmm_spec"` // an instance spec of Propolis
	Local     Local           `json:"local_config"`
	Runtime   Runtime         `json:"vmm_runtime"`
	Instance  uuid.UUID       `json:"instance_id"`
	Migration *uuid.UUID      `json:"migration_id,omitempty"`
	Address   string          `json:"propolis_addr"` // ADDRESS:PORT, where its Propolis must listen
	Metadata  Metadata        `json:"metadata"`
}

// Metadata says whose an instance is.
type Metadata struct {
	Silo    uuid.UUID `json:"silo_id"`
	Project uuid.UUID `json:"project_id"`
}

// Local is what a VM needs of its sled.
type Local struct {
	Hostname      string            `json:"hostname"`
	NICs          []NIC             `json:"nics"`
	ExternalIPs   json.RawMessage   `json:"external_ips"`
	Subnets       []json.RawMessage `json:"attached_subnets"`
	Multicast     []json.RawMessage `json:"multicast_groups"`
	FirewallRules []json.RawMessage `json:"firewall_rules"`
	DHCP          json.RawMessage   `json:"dhcp_config"`
	Zvols         []Zvol            `json:"delegated_zvols"`
	MTU           *uint32           `json:"primary_nic_mtu,omitempty"`
}

// NIC is a NIC of a VM in a VPC. Its id is the key of its backend in the spec.
type NIC struct {
	ID       uuid.UUID       `json:"id"`
	Kind     json.RawMessage `json:"kind"`
	MAC      string          `json:"mac"`
	VNI      uint32          `json:"vni"`
	Name     string          `json:"name"`
	Primary  bool            `json:"primary"`
	Slot     uint8           `json:"slot"`
	IPConfig json.RawMessage `json:"ip_config"`
}

// Zvol is a volume of a sled that a VM has as a disk.
type Zvol struct {
	Type    string    `json:"type"` // local_storage_unencrypted, local_storage_encrypted
	Pool    uuid.UUID `json:"zpool_id"`
	Dataset uuid.UUID `json:"dataset_id"`
}

// fields are those of a JSON object.
type fields = map[string]json.RawMessage

// upgrades bring what a VM needs of its sled from one version to the next, as far
// as they differ (omicron sled-agent/types/versions).
func upgrades() []struct {
	to    uint64 // the first version that has it so
	local func(fields) error
} {
	empty := func(key string) func(fields) error {
		return func(local fields) error { local[key] = json.RawMessage("[]"); return nil }
	}
	return []struct {
		to    uint64
		local func(fields) error
	}{
		{7, empty("multicast_groups")},
		{9, empty("delegated_zvols")},
		{10, upgradeNICs},
		{11, upgradeExternalIPs},
		{17, checkZvols},
		{18, empty("attached_subnets")},
		{32, untagExternalIPs},
	}
}

// upgradeNICs: a NIC had one address, and has one of each kind.
func upgradeNICs(local fields) error {
	var nics []fields
	if err := unmarshal(local, "nics", &nics); err != nil {
		return err
	}
	for _, nic := range nics {
		var ip netip.Addr
		if err := unmarshal(nic, "ip", &ip); err != nil {
			return fmt.Errorf("nics: %w", err)
		}
		if _, there := nic["subnet"]; !there {
			return missing("nics: subnet")
		}
		value := fields{"ip": nic["ip"], "subnet": nic["subnet"], "transit_ips": json.RawMessage("[]")}
		if transit, there := nic["transit_ips"]; there {
			value["transit_ips"] = transit
		}
		nic["ip_config"] = encode(map[string]any{"type": family(ip), "value": value})
	}
	local["nics"] = encode(nics)
	return nil
}

// upgradeExternalIPs: they stood side by side, and stand together by their kinds.
func upgradeExternalIPs(local fields) error {
	var nat struct{ IP netip.Addr }
	if err := unmarshal(local, "source_nat", &nat); err != nil {
		return err
	}
	var floating []netip.Addr
	if err := unmarshal(local, "floating_ips", &floating); err != nil {
		return err
	}
	value := fields{"source_nat": local["source_nat"], "floating_ips": local["floating_ips"]}
	if ephemeral, there := local["ephemeral_ip"]; there {
		value["ephemeral_ip"] = ephemeral
	}
	local["external_ips"] = encode(map[string]any{"type": family(nat.IP), "value": value})
	return nil
}

// checkZvols: there was one kind of them.
func checkZvols(local fields) error {
	var zvols []Zvol
	if err := unmarshal(local, "delegated_zvols", &zvols); err != nil {
		return err
	}
	for _, z := range zvols {
		if z.Type != "local_storage_unencrypted" {
			return fmt.Errorf("delegated_zvols: unknown variant `%s`", z.Type)
		}
	}
	return nil
}

// untagExternalIPs: there could be none at all, and there is an object that may
// be empty.
//
// Guess external-ips-of-versions-11-to-31: external addresses in a registration of versions 11 to
// 31 are `{"type": "v4"|"v6"|"dual_stack", "value": …}`, or null; nothing is made of them.
// Check: a body that a control plane of that age sends to `PUT /vmms/ID`
func untagExternalIPs(local fields) error {
	var tagged *struct {
		Type  string
		Value json.RawMessage
	}
	if raw, there := local["external_ips"]; there {
		if err := json.Unmarshal(raw, &tagged); err != nil {
			return fmt.Errorf("external_ips: %w", err)
		}
	}
	switch {
	case tagged == nil:
		local["external_ips"] = json.RawMessage("{}")
	case tagged.Type == "v4", tagged.Type == "v6":
		local["external_ips"] = encode(fields{tagged.Type: tagged.Value})
	case tagged.Type == "dual_stack":
		local["external_ips"] = tagged.Value
	}
	return nil
}

func family(ip netip.Addr) string {
	if ip.Is4() {
		return "v4"
	}
	return "v6"
}

// encode writes what was read from JSON.
func encode(v any) json.RawMessage {
	data, _ := json.Marshal(v)
	return data
}

func missing(field string) error { return fmt.Errorf("missing field `%s`", field) }

func has(object fields, keys ...string) error {
	for _, key := range keys {
		if _, there := object[key]; !there {
			return missing(key)
		}
	}
	return nil
}

func unmarshal(from fields, key string, to any) error {
	raw, there := from[key]
	if !there {
		return missing(key)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// ParseRegister reads the body of a registration in a version. The error is a
// 400 that names the field.
func ParseRegister(v Version, data []byte) (Register, *Error) {
	r, err := parseRegister(v, data)
	if err != nil {
		return Register{}, BadRequest("unable to parse JSON body: " + err.Error())
	}
	return r, nil
}

func parseRegister(v Version, data []byte) (Register, error) {
	var body, local fields
	if err := json.Unmarshal(data, &body); err != nil {
		return Register{}, err
	}
	if err := unmarshal(body, "local_config", &local); err != nil {
		return Register{}, err
	}
	if local == nil {
		return Register{}, missing("local_config")
	}
	for _, step := range upgrades() {
		if v.Less(Version{Major: step.to}) {
			if err := step.local(local); err != nil {
				return Register{}, fmt.Errorf("local_config: %w", err)
			}
		}
	}
	body["local_config"] = encode(local)
	return readRegister(body, local)
}

// readRegister reads a body of the latest version.
func readRegister(body, local fields) (Register, error) {
	if err := has(body, "vmm_spec", "vmm_runtime", "instance_id", "propolis_addr", "metadata"); err != nil {
		return Register{}, err
	}
	err := has(local, "hostname", "nics", "external_ips", "attached_subnets", "multicast_groups", "firewall_rules", "dhcp_config", "delegated_zvols")
	if err != nil {
		return Register{}, fmt.Errorf("local_config: %w", err)
	}
	var nics []fields
	if err := unmarshal(local, "nics", &nics); err != nil {
		return Register{}, fmt.Errorf("local_config: %w", err)
	}
	for _, nic := range nics {
		if err := has(nic, "id", "kind", "mac", "vni", "name", "primary", "slot", "ip_config"); err != nil {
			return Register{}, fmt.Errorf("local_config: nics: %w", err)
		}
	}
	var r Register
	if err := json.Unmarshal(encode(body), &r); err != nil {
		return Register{}, err
	}
	if _, err := netip.ParseAddrPort(r.Address); err != nil {
		return Register{}, fmt.Errorf("propolis_addr: invalid socket address syntax")
	}
	return r, nil
}

// ValidHostname says whether a text is a host's name (RFC 1035, RFC 952).
func ValidHostname(s string) bool {
	return len(s) <= 253 && regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$`).MatchString(s)
}

// NamedSpec is the spec with a name for each backend of a NIC: a control plane leaves it to the sled, which gives it
// one when it makes the port (omicron nexus/src/app/instance_platform, sled-agent/src/instance.rs). Until then it is the
// backend's key.
func (r Register) NamedSpec() []byte {
	var spec, components fields
	if json.Unmarshal(r.Spec, &spec) != nil || json.Unmarshal(spec["components"], &components) != nil {
		return r.Spec
	}
	for key, data := range components {
		var part struct {
			Type      string         `json:"type"`
			Component map[string]any `json:"component"`
		}
		if json.Unmarshal(data, &part) == nil && part.Type == "virtio_network_backend" && part.Component["vnic_name"] == "" {
			part.Component["vnic_name"] = key
			components[key] = encode(part)
		}
	}
	spec["components"] = encode(components)
	return encode(spec)
}
