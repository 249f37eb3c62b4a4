package propolis

import (
	"encoding/json"
	"slices"
	"strings"
)

// component is a device or backend of an instance spec, in the form in which
// it is given back: keys canonical, absent options null.
type component struct {
	Type string         `json:"type"`
	Body map[string]any `json:"component"`
}

// field is a field of a component's body.
type field struct {
	name string
	kind string // key, pci, serial, uuid, com, u8, u32, u64, bool, text, workers, order
}

// componentType is a kind of component and its fields
// (crates/propolis-api-types-versions in oxidecomputer/propolis). All bodies
// refuse fields that they do not have.
type componentType struct {
	name   string
	fields []field
	from   uint64 // first major version that has it
}

func componentTypes() []componentType {
	pci, backend := field{"pci_path", "pci"}, field{"backend_id", "key"}
	readonly, vnic := field{"readonly", "bool"}, field{"vnic_name", "text"}
	return []componentType{
		{"virtio_disk", []field{backend, pci}, 1},
		{"nvme_disk", []field{backend, pci, {"serial_number", "serial"}}, 1},
		{"virtio_nic", []field{backend, {"interface_id", "uuid"}, pci}, 1},
		{"virtio_socket", []field{{"guest_cid", "u64"}, pci}, 3},
		{"serial_port", []field{{"num", "com"}}, 1},
		{"pci_pci_bridge", []field{{"downstream_bus", "u8"}, pci}, 1},
		{"qemu_pvpanic", []field{{"enable_isa", "bool"}}, 1},
		{"boot_settings", []field{{"order", "order"}}, 1},
		{"soft_npu_pci_port", []field{pci}, 1},
		{"soft_npu_port", []field{{"link_name", "text"}, backend}, 1},
		{"soft_npu_p9", []field{pci}, 1},
		{"p9fs", []field{{"source", "text"}, {"target", "text"}, {"chunk_size", "u32"}, pci}, 1},
		{"migration_failure_injector", []field{{"fail_exports", "u32"}, {"fail_imports", "u32"}}, 1},
		{"crucible_storage_backend", []field{{"request_json", "text"}, readonly}, 1},
		{"file_storage_backend", []field{{"path", "text"}, readonly, {"block_size", "u32"}, {"workers", "workers"}}, 1},
		{"blob_storage_backend", []field{{"base64", "text"}, readonly}, 1},
		{"virtio_network_backend", []field{vnic}, 1},
		{"dlpi_network_backend", []field{vnic}, 1},
	}
}

// component reads {"type":T,"component":{…}}.
func (d *decoder) component(v any, path string, spoken version) component {
	m := d.object(v, path, "Component", false, "type", "component")
	var names []string
	types := slices.DeleteFunc(componentTypes(), func(t componentType) bool { return t.from > 1 && spoken.Before(t.from) })
	for _, t := range types {
		names = append(names, t.name)
	}
	name := d.variant(m["type"], path+".type", names...)
	i := slices.Index(names, name)
	if d.fault != "" || i < 0 {
		return component{}
	}
	return component{name, d.body(m["component"], path+".component", types[i])}
}

func (d *decoder) body(v any, path string, t componentType) map[string]any {
	names := make([]string, len(t.fields))
	for i, f := range t.fields {
		names[i] = f.name
		if f.kind == "workers" {
			names[i] += "?"
		}
	}
	m := d.object(v, path, structName(t.name), true, names...)
	body := map[string]any{}
	for _, f := range t.fields {
		if d.fault == "" {
			body[f.name] = d.field(m[f.name], path+"."+f.name, f.kind)
		}
	}
	return body
}

// structName is the Rust name of a type: nvme_disk is NvmeDisk.
func structName(snake string) string {
	var b strings.Builder
	for _, word := range strings.Split(snake, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func (d *decoder) field(v any, path, kind string) any {
	switch kind {
	case "key":
		return d.key(v, path)
	case "pci":
		return d.pciPath(v, path)
	case "serial":
		return d.serialNumber(v, path)
	case "uuid":
		return d.uuid(v, path)
	case "com":
		return d.variant(v, path, "com1", "com2", "com3", "com4")
	case "u8":
		return d.unsigned(v, path, 8)
	case "u32":
		return d.unsigned(v, path, 32)
	case "u64":
		return d.unsigned(v, path, 64)
	case "bool":
		return d.boolean(v, path)
	case "workers":
		return d.workers(v, path)
	case "order":
		return d.bootOrder(v, path)
	}
	return d.str(v, path)
}

// pciPath is where a PCI device sits. The ranges are checked while decoding.
type pciPath struct {
	Bus      uint64 `json:"bus"`
	Device   uint64 `json:"device"`
	Function uint64 `json:"function"`
}

func (d *decoder) pciPath(v any, path string) pciPath {
	m := d.object(v, path, "PciPath", false, "bus", "device", "function")
	if d.fault != "" {
		return pciPath{}
	}
	p := pciPath{d.unsigned(m["bus"], path+".bus", 8), d.unsigned(m["device"], path+".device", 8), d.unsigned(m["function"], path+".function", 8)}
	switch {
	case p.Device > 31:
		d.fail(path, "PCI device %d outside range of 0-31", p.Device)
	case p.Function > 7:
		d.fail(path, "PCI function %d outside range of 0-7", p.Function)
	}
	return p
}

func (d *decoder) serialNumber(v any, path string) []json.Number {
	list, ok := v.([]any)
	if !ok {
		d.wrong(path, v, "an array of length 20")
		return nil
	}
	if len(list) != 20 {
		d.fail(path, "invalid length %d, expected an array of length 20", len(list))
	}
	var out []json.Number
	for _, b := range list {
		d.unsigned(b, path, 8)
		n, _ := b.(json.Number)
		out = append(out, n)
	}
	return out
}

// workers is an optional number that is not zero.
func (d *decoder) workers(v any, path string) any {
	if v == nil {
		return nil
	}
	n := d.unsigned(v, path, 64)
	if n == 0 {
		d.fail(path, "invalid value: integer `0`, expected a nonzero usize")
	}
	return n
}

// bootEntry names a disk.
type bootEntry struct {
	ID string `json:"id"`
}

func (d *decoder) bootOrder(v any, path string) []bootEntry {
	list, ok := v.([]any)
	if !ok {
		d.wrong(path, v, "a sequence")
		return nil
	}
	order := []bootEntry{}
	for _, e := range list {
		m := d.object(e, path, "BootOrderEntry", false, "id")
		order = append(order, bootEntry{d.key(m["id"], path+".id")})
	}
	return order
}
