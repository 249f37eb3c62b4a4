package spec

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Difference is a part of two specs that is not the same in both, as JSON;
// empty where one has no such part.
type Difference struct {
	Path      string // "components.disk0.pci_path.device"
	Sent, Got string
}

// Compare returns what a server has that it was not sent, and the other way round,
// sorted by path. Servers fill in the CPUID set that they were not sent,
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
// was not sent.
//
// Guess cpuid-set-comes-back-whole: the CPUID set that was sent comes back whole, in any order.
// Check: `sledctl instance ensure` twice: nothing to do
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
		if p.WriteCache != nil && *p.WriteCache {
			p.WriteCache = nil
		}
		return p
	case VirtioDisk:
		p.Backend = Key(p.Backend)
		return p
	case VirtioNIC:
		p.Backend, p.Interface = Key(p.Backend), Key(p.Interface)
		return p
	case SoftNPUPort:
		p.Backend = Key(p.Backend)
		return p
	case CrucibleStorage:
		p.Request = digest(p.Request)
		return p
	case BlobStorage:
		p.Base64 = digest(p.Base64)
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

// digest stands for what is too long to print, or secret.
func digest(s string) string {
	if IsSealed(s) {
		return s
	}
	return fmt.Sprintf("%d characters with the SHA-256 %x", len(s), sha256.Sum256([]byte(s)))
}

type differ struct{ found []Difference }

func (d *differ) compare(path string, sent, got any) {
	a, isA := sent.(map[string]any)
	b, isB := got.(map[string]any)
	if !isA || !isB {
		d.compareLists(path, sent, got)
		return
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		d.compare(join(path, key), a[key], b[key])
	}
}

// compareLists compares what are no tables. Lists of tables of one length are
// compared place by place.
func (d *differ) compareLists(path string, sent, got any) {
	a, isA := sent.([]any)
	b, isB := got.([]any)
	if isA && isB && len(a) == len(b) && !slices.ContainsFunc(slices.Concat(a, b), func(v any) bool { _, table := v.(map[string]any); return !table }) {
		for i := range a {
			d.compare(at(path, i), a[i], b[i])
		}
		return
	}
	if left, right := text(sent), text(got); left != right {
		d.found = append(d.found, Difference{path, left, right})
	}
}

// text is a part as JSON. Null is absent.
func text(v any) string {
	if v == nil {
		return ""
	}
	if list, ok := v.([]any); ok {
		if s, ok := serialText(list); ok {
			v = s
		}
	}
	data, err := encode(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// serialText is a serial number as people read it; false for any other list.
func serialText(list []any) (string, bool) {
	var b []byte
	for _, v := range list {
		n, _ := v.(json.Number)
		c, err := strconv.ParseUint(n.String(), 10, 8)
		if err != nil || c < ' ' || c > '~' {
			return "", false
		}
		b = append(b, byte(c))
	}
	return string(b), len(b) == len(SerialNumber{})
}
