package propolis

import (
	"encoding/json"
	"net/netip"

	"github.com/sledctl/sledctl/sim/serve"
)

// ensureRequest is the body of PUT /instance.
type ensureRequest struct {
	properties json.RawMessage // as given back
	id         string
	spec       *instanceSpec // nil: the VM comes from another server
	migration  string        // id of the migration
	source     netip.AddrPort
	// replacements are the components that it exchanges, by their keys.
	replacements map[string]replacement
}

// instanceSpec is a spec in the form in which it is given back.
type instanceSpec struct {
	Board      board                `json:"board"`
	Components map[string]component `json:"components"`
	SMBIOS     any                  `json:"smbios"`
}

// board is the main board. The CPUID set is always there when it is given
// back: the server asks the host for what was not said.
type board struct {
	CPUs    uint64 `json:"cpus"`
	Memory  uint64 `json:"memory_mb"`
	Chipset any    `json:"chipset"`
	HV      any    `json:"guest_hv_interface,omitempty"` // absent: bhyve
	CPUID   *cpuid `json:"cpuid"`
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

// decodeEnsure reads the body as the version that the client speaks has it.
func decodeEnsure(body []byte, spoken version) (ensureRequest, error) {
	var e ensureRequest
	err := parse(body, func(d *decoder, v any) {
		m := d.object(v, "", "InstanceEnsureRequest", false, "properties", "init")
		if d.fault != "" {
			return
		}
		e.properties, e.id = d.properties(m["properties"])
		d.init(m["init"], spoken, &e)
	})
	return e, err
}

func (d *decoder) properties(v any) (json.RawMessage, string) {
	const at = ".properties"
	m := d.object(v, at, "InstanceProperties", false, "id", "name", "description", "metadata")
	if d.fault != "" {
		return nil, ""
	}
	id := d.uuid(m["id"], at+".id")
	meta := d.object(m["metadata"], at+".metadata", "InstanceMetadata", false,
		"silo_id", "project_id", "sled_id", "sled_serial", "sled_revision", "sled_model")
	out := map[string]any{"id": id, "name": d.str(m["name"], at+".name"), "description": d.str(m["description"], at+".description")}
	if d.fault != "" {
		return nil, ""
	}
	known := map[string]any{"sled_revision": d.unsigned(meta["sled_revision"], at+".metadata.sled_revision", 32)}
	for _, f := range []string{"silo_id", "project_id", "sled_id"} {
		known[f] = d.uuid(meta[f], at+".metadata."+f)
	}
	for _, f := range []string{"sled_serial", "sled_model"} {
		known[f] = d.str(meta[f], at+".metadata."+f)
	}
	out["metadata"] = known
	return serve.JSON(out), id
}

func (d *decoder) init(v any, spoken version, e *ensureRequest) {
	const at = ".init"
	m := d.object(v, at, "InstanceInitializationMethod", false, "method", "value")
	if d.fault != "" {
		return
	}
	if d.variant(m["method"], at+".method", "Spec", "MigrationTarget") == "Spec" {
		value := d.object(m["value"], at+".value", "Spec", false, "spec")
		if d.fault == "" {
			e.spec = d.spec(value["spec"], at+".value.spec", spoken)
		}
		return
	}
	value := d.object(m["value"], at+".value", "MigrationTarget", false, "migration_id", "src_addr", "replace_components")
	if d.fault != "" {
		return
	}
	e.migration = d.uuid(value["migration_id"], at+".value.migration_id")
	var err error
	if e.source, err = netip.ParseAddrPort(d.str(value["src_addr"], at+".value.src_addr")); err != nil {
		d.fail(at+".value.src_addr", "invalid socket address syntax")
	}
	e.replacements = d.replacements(value["replace_components"], at+".value.replace_components")
}

// replacements are the components that a migration target may exchange.
func (d *decoder) replacements(v any, path string) map[string]replacement {
	all := map[string]replacement{}
	m, ok := v.(map[string]any)
	if !ok {
		d.wrong(path, v, "a map")
	}
	for _, key := range sortedKeys(m) {
		at := path + "." + key
		r := d.object(m[key], at, "ReplacementComponent", false, "component", "spec")
		if d.fault != "" {
			return nil
		}
		kinds := map[string]string{"MigrationFailureInjector": "migration_failure_injector",
			"CrucibleStorageBackend": "crucible_storage_backend", "VirtioNetworkBackend": "virtio_network_backend"}
		kind := d.variant(r["component"], at+".component", "MigrationFailureInjector", "CrucibleStorageBackend", "VirtioNetworkBackend")
		for _, t := range componentTypes() {
			if t.name == kinds[kind] {
				all[canonicalKey(key)] = replacement{kind, component{t.name, d.body(r["spec"], at+".spec", t)}}
			}
		}
	}
	return all
}

// spec reads an instance spec. In version 1 it has no SMBIOS part and refuses
// fields that it does not know; later it lets them pass.
func (d *decoder) spec(v any, path string, spoken version) *instanceSpec {
	fields := []string{"board", "components", "smbios?"}
	if spoken.Before(2) {
		fields = fields[:2]
	}
	m := d.object(v, path, "InstanceSpec", spoken.Before(2), fields...)
	if d.fault != "" {
		return nil
	}
	s := &instanceSpec{Board: d.board(m["board"], path+".board"), Components: map[string]component{}}
	components, ok := m["components"].(map[string]any)
	if !ok {
		d.wrong(path+".components", m["components"], "a map")
	}
	for _, key := range sortedKeys(components) {
		s.Components[canonicalKey(key)] = d.component(components[key], path+".components."+key, spoken)
	}
	if !spoken.Before(2) {
		s.SMBIOS = d.smbios(m["smbios"], path+".smbios")
	}
	return s
}

func (d *decoder) smbios(v any, path string) any {
	if v == nil {
		return nil
	}
	m := d.object(v, path, "SmbiosType1Input", true, "manufacturer", "product_name", "serial_number", "version")
	if d.fault != "" {
		return nil
	}
	return map[string]any{"manufacturer": d.str(m["manufacturer"], path+".manufacturer"), "product_name": d.str(m["product_name"], path+".product_name"),
		"serial_number": d.str(m["serial_number"], path+".serial_number"), "version": d.unsigned(m["version"], path+".version", 64)}
}

func (d *decoder) board(v any, path string) board {
	m := d.object(v, path, "Board", true, "cpus", "memory_mb", "chipset", "guest_hv_interface?", "cpuid?")
	if d.fault != "" {
		return board{}
	}
	b := board{
		CPUs: d.unsigned(m["cpus"], path+".cpus", 8), Memory: d.unsigned(m["memory_mb"], path+".memory_mb", 64),
		Chipset: d.chipset(m["chipset"], path+".chipset"),
	}
	if hv, has := m["guest_hv_interface"]; has {
		b.HV = d.hypervisor(hv, path+".guest_hv_interface")
	}
	if set := m["cpuid"]; set != nil {
		b.CPUID = d.cpuid(set, path+".cpuid")
	}
	return b
}

func (d *decoder) chipset(v any, path string) any {
	m := d.object(v, path, "Chipset", true, "type", "value")
	if d.fault != "" {
		return nil
	}
	kind := d.variant(m["type"], path+".type", "i440_fx")
	value := d.object(m["value"], path+".value", "I440Fx", true, "enable_pcie")
	return map[string]any{"type": kind, "value": map[string]any{"enable_pcie": d.boolean(value["enable_pcie"], path+".value.enable_pcie")}}
}

// hypervisor is nil for the default, which is left out when it is given back.
func (d *decoder) hypervisor(v any, path string) any {
	m := d.object(v, path, "GuestHypervisorInterface", true, "type", "value?")
	if d.fault != "" {
		return nil
	}
	kind := d.variant(m["type"], path+".type", "bhyve", "hyper_v")
	if kind != "hyper_v" {
		return nil
	}
	value := d.object(m["value"], path+".value", "HyperV", true, "features")
	list, ok := value["features"].([]any)
	if !ok {
		d.wrong(path+".value.features", value["features"], "a sequence")
	}
	features := []string{}
	for _, f := range list {
		features = append(features, d.variant(f, path+".value.features", "reference_tsc"))
	}
	return map[string]any{"type": kind, "value": map[string]any{"features": features}}
}

func (d *decoder) cpuid(v any, path string) *cpuid {
	m := d.object(v, path, "Cpuid", true, "entries", "vendor")
	if d.fault != "" {
		return nil
	}
	set := &cpuid{Vendor: d.variant(m["vendor"], path+".vendor", "amd", "intel"), Entries: []cpuidEntry{}}
	list, ok := m["entries"].([]any)
	if !ok {
		d.wrong(path+".entries", m["entries"], "a sequence")
	}
	for _, item := range list {
		at := path + ".entries"
		e := d.object(item, at, "CpuidEntry", true, "leaf", "subleaf?", "eax", "ebx", "ecx", "edx")
		if d.fault != "" {
			return nil
		}
		entry := cpuidEntry{Leaf: d.unsigned(e["leaf"], at+".leaf", 32), EAX: d.unsigned(e["eax"], at+".eax", 32),
			EBX: d.unsigned(e["ebx"], at+".ebx", 32), ECX: d.unsigned(e["ecx"], at+".ecx", 32), EDX: d.unsigned(e["edx"], at+".edx", 32)}
		if e["subleaf"] != nil {
			n := d.unsigned(e["subleaf"], at+".subleaf", 32)
			entry.Subleaf = &n
		}
		set.Entries = append(set.Entries, entry)
	}
	return set
}
