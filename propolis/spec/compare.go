package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Difference is a part of two specs that is not the same in both, as JSON;
// empty where one has no such part.
type Difference struct {
	Path      string // "components.disk0.pci_path.device"
	Sent, Got string
}

// String shows both.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s, not %s", d.Path, cmp.Or(d.Got, "absent"), cmp.Or(d.Sent, "absent"))
}

// Compare tells what a server has that it was not sent, and the other way
// round, sorted by path. Servers fill in the CPUID set that they were not told,
// leave defaults out, and spell UUIDs in one way: that is no difference.
func Compare(sent, got InstanceSpec) []Difference {
	if sent.Board.CPUID == nil {
		got.Board.CPUID = nil
	}
	var d differ
	d.compare("", tree(sent), tree(got))
	return d.found
}

// tree is the spec as decoded JSON, in its normal form.
func tree(s InstanceSpec) any {
	data, err := encode(s.normal())
	if err != nil {
		return map[string]any{"": err.Error()} // a component that is nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // as numbers of float64, large ones would become equal
	var v any
	_ = d.Decode(&v) // it was just encoded
	return v
}

// normal is the spec as a server would give it back, apart from a CPUID set that
// was not sent. Guess: that one which was sent comes back whole, in any order.
func (s InstanceSpec) normal() InstanceSpec {
	if h := s.Board.Hypervisor; h != nil && h.Type == HypervisorBhyve {
		s.Board.Hypervisor = nil
	} else if h != nil && h.Value != nil {
		features := slices.Sorted(slices.Values(h.Value.Features)) // they are a set
		s.Board.Hypervisor = &Hypervisor{h.Type, &HyperV{slices.Compact(features)}}
	}
	if set := s.Board.CPUID; set != nil {
		s.Board.CPUID = &CPUID{set.Vendor, slices.SortedFunc(slices.Values(set.Entries), compareEntries)}
	}
	parts := make(Components, len(s.Components))
	for key, part := range s.Components {
		parts[Key(key)] = normalPart(part)
	}
	s.Components = parts
	return s
}

func compareEntries(a, b CPUIDEntry) int {
	subleaf := func(e CPUIDEntry) int64 {
		if e.Subleaf == nil {
			return -1
		}
		return int64(*e.Subleaf)
	}
	return cmp.Or(cmp.Compare(a.Leaf, b.Leaf), cmp.Compare(subleaf(a), subleaf(b)))
}

func normalPart(part Component) Component {
	switch p := part.(type) {
	case NVMeDisk:
		p.Backend = Key(p.Backend)
		return p
	case VirtioDisk:
		p.Backend = Key(p.Backend)
		return p
	case VirtioNIC:
		p.Backend, p.Interface = Key(p.Backend), Key(p.Interface)
		return p
	case BootSettings:
		order := make([]BootEntry, len(p.Order))
		for i, e := range p.Order {
			order[i].ID = Key(e.ID)
		}
		return BootSettings{order}
	}
	return part
}

type differ struct{ found []Difference }

func (d *differ) compare(path string, sent, got any) {
	a, isA := sent.(map[string]any)
	b, isB := got.(map[string]any)
	if !isA || !isB {
		if left, right := text(sent), text(got); left != right {
			d.found = append(d.found, Difference{path, left, right})
		}
		return
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		below := key
		if path != "" {
			below = path + "." + key
		}
		d.compare(below, a[key], b[key])
	}
}

// text is a part as JSON. Null is absent.
func text(v any) string {
	if v == nil {
		return ""
	}
	data, err := encode(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
