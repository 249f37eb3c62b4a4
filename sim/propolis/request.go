package propolis

import (
	"encoding/json"
	"net/netip"
)

// ensureRequest is the body of PUT /instance.
type ensureRequest struct {
	Properties json.RawMessage `json:"properties"` // as given back
	Init       struct {
		Value struct {
			Spec *instanceSpec `json:"spec"` // nil: the VM comes from another server

			Migration string         `json:"migration_id"`
			Source    netip.AddrPort `json:"src_addr"`
			// Replacements are the components that it exchanges, by their keys.
			Replacements map[string]replacement `json:"replace_components"`
		} `json:"value"`
	} `json:"init"`
}

// instanceSpec is a spec in the form in which it is given back.
type instanceSpec struct {
	Board      board                `json:"board"`
	Components map[string]component `json:"components"`
	SMBIOS     json.RawMessage      `json:"smbios"`
}

// board is the main board. The CPUID set is always there when it is given
// back: the server asks the host for what was not said.
type board struct {
	CPUs    uint64          `json:"cpus"`
	Memory  uint64          `json:"memory_mb"`
	Chipset json.RawMessage `json:"chipset"`
	HV      *hypervisor     `json:"guest_hv_interface,omitempty"` // absent: bhyve
	CPUID   *cpuid          `json:"cpuid"`
}

type hypervisor struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

type cpuid struct {
	Vendor  string       `json:"vendor"`
	Entries []cpuidEntry `json:"entries"`
}

type cpuidEntry struct {
	Leaf    uint64  `json:"leaf"`
	Subleaf *uint64 `json:"subleaf"`
	EAX     uint64  `json:"eax"`
	EBX     uint64  `json:"ebx"`
	ECX     uint64  `json:"ecx"`
	EDX     uint64  `json:"edx"`
}

// component is a device or backend of an instance spec.
type component struct {
	Type string          `json:"type"`
	Body json.RawMessage `json:"component"`
}

// contents are what is looked at in the bodies of all components.
type contents struct {
	Backend  string      `json:"backend_id"`
	Path     pciPath     `json:"pci_path"`
	Port     string      `json:"num"`
	Bus      uint64      `json:"downstream_bus"`
	CID      uint64      `json:"guest_cid"`
	Order    []bootEntry `json:"order"`
	VNIC     string      `json:"vnic_name"`
	File     string      `json:"path"`
	ReadOnly bool        `json:"readonly"`
	Base64   string      `json:"base64"`
	Volume   string      `json:"request_json"`
	Cache    *bool       `json:"has_write_cache"`
}

// pciPath is where a PCI device sits.
type pciPath struct {
	Bus      uint64 `json:"bus"`
	Device   uint64 `json:"device"`
	Function uint64 `json:"function"`
}

// bootEntry names a disk.
type bootEntry struct {
	ID string `json:"id"`
}

func (c component) contents() (p contents) {
	_ = json.Unmarshal(c.Body, &p) // our own
	return p
}

// cacheless is an NVMe disk without a write cache.
func (c component) cacheless() bool {
	cache := c.contents().Cache
	return cache != nil && !*cache
}

// replacement is a component that a target exchanges.
type replacement struct {
	Kind string          `json:"component"` // as the request has it
	Body json.RawMessage `json:"spec"`
}

// decodeEnsure reads the body as the version that the client speaks has it.
func decodeEnsure(body []byte, spoken version) (e ensureRequest, err error) {
	err = decode(body, "InstanceEnsureRequest", spoken, &e)
	if spec := e.Init.Value.Spec; err == nil && spec != nil {
		if hv := spec.Board.HV; hv != nil && hv.Type == "bhyve" {
			spec.Board.HV = nil
		}
	}
	return e, err
}
