package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func movable() InstanceSpec {
	return InstanceSpec{
		Board: Board{CPUs: 2, MemoryMiB: 512, Chipset: Chipset{Type: ChipsetI440FX}},
		Components: Components{
			KeyCOM1: SerialPort{Number: "com1"},
			"net0":  VirtioNIC{Backend: "net0-backend", PCI: PCIPath{Device: 8}}, "net0-backend": VirtioNetwork{VNIC: "vnic0"},
			"net1": VirtioNIC{Backend: "net1-backend", PCI: PCIPath{Device: 9}}, "net1-backend": VirtioNetwork{VNIC: "vnic1"},
			"disk0": NVMeDisk{Backend: "disk0-backend", PCI: PCIPath{Device: 16}}, "disk0-backend": CrucibleStorage{Request: `{"generation":1}`},
		},
	}
}

func TestUnmovable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*InstanceSpec)
		want   []string
	}{
		"a machine with NICs and a Crucible disk": {func(*InstanceSpec) {}, nil},
		"one that injects failures":               {func(s *InstanceSpec) { s.Components["fail"] = MigrationFailureInjector{} }, nil},
		"a bridge":                                {func(s *InstanceSpec) { s.Components["b"] = PCIBridge{} }, []string{"components.b: a pci_pci_bridge"}},
		"a socket":                                {func(s *InstanceSpec) { s.Components["s"] = VirtioSocket{} }, []string{"components.s: a virtio_socket"}},
		"what only a rack's tests have": {func(s *InstanceSpec) {
			s.Components["a"], s.Components["b"], s.Components["c"], s.Components["d"], s.Components["e"] = SoftNPUPCIPort{}, SoftNPUPort{}, SoftNPUP9{}, P9FS{}, DLPINetwork{}
		}, []string{"components.a", "components.b", "components.c", "components.d", "components.e"}},
		"what nobody knows": {func(s *InstanceSpec) { s.Components["x"] = Other{Tag: "new_device"} }, []string{"components.x: it is not known"}},
		"an SMBIOS table":   {func(s *InstanceSpec) { s.SMBIOS = &SMBIOS{} }, []string{"smbios"}},
	} {
		s := movable()
		c.change(&s)
		got := s.Unmovable()
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i, p := range got {
			if !strings.HasPrefix(p.String(), c.want[i]) {
				t.Errorf("%s: %s, want %s", name, p, c.want[i])
			}
		}
	}
}

func TestReplace(t *testing.T) {
	const upper, lower = "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	both := map[string]Replacement{"net0-backend": {VirtioNetwork{"vnic0"}}, "net1-backend": {VirtioNetwork{"vnic1"}}}
	with := func(key string, part Component) map[string]Replacement {
		all := map[string]Replacement{key: {part}}
		for k, r := range both {
			if k != key {
				all[k] = r
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		source, wanted func(*InstanceSpec)
		want           map[string]Replacement
		problems       []string
	}{
		"the same machine": {want: both},
		"another VNIC": {wanted: func(s *InstanceSpec) { s.Components["net1-backend"] = VirtioNetwork{"vnic7"} },
			want: with("net1-backend", VirtioNetwork{"vnic7"})},
		"another generation of a Crucible disk": {wanted: func(s *InstanceSpec) { s.Components["disk0-backend"] = CrucibleStorage{Request: `{"generation":2}`} },
			want: with("disk0-backend", CrucibleStorage{Request: `{"generation":2}`})},
		"a CPUID set that the server has filled in": {source: func(s *InstanceSpec) { s.Board.CPUID = &CPUID{Vendor: "amd"} }, want: both},
		"a key that the server spells otherwise": {
			source: func(s *InstanceSpec) { s.Components[lower] = CrucibleStorage{Request: "{}"} },
			wanted: func(s *InstanceSpec) { s.Components[upper] = CrucibleStorage{Request: "{ }"} },
			want:   with(lower, CrucibleStorage{Request: "{ }"})},
		"other memory": {wanted: func(s *InstanceSpec) { s.Board.MemoryMiB = 1024 }, want: both,
			problems: []string{"board.memory_mb: is 512 at the source, and would be 1024"}},
		"a place that differs": {wanted: func(s *InstanceSpec) {
			s.Components["net0"] = VirtioNIC{Backend: "net0-backend", PCI: PCIPath{Device: 10}}
		}, want: both,
			problems: []string{"components.net0.component.pci_path.device: is 8 at the source, and would be 10"}},
		"a disk that was of another kind": {source: func(s *InstanceSpec) { s.Components["disk0-backend"] = FileStorage{Path: "/a"} }, want: both,
			problems: []string{"components.disk0-backend"}},
		"a component more": {wanted: func(s *InstanceSpec) { s.Components["pvpanic"] = Pvpanic{ISA: true} }, want: both,
			problems: []string{"components.pvpanic"}},
	} {
		source, wanted := movable(), movable()
		if c.source != nil {
			c.source(&source)
		}
		if c.wanted != nil {
			c.wanted(&wanted)
		}
		got, problems := Replace(source, wanted)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(problems) < len(c.problems) || len(problems) > 0 && len(c.problems) == 0 {
			t.Errorf("%s: %v, want %v", name, problems, c.problems)
			continue
		}
		for i, want := range c.problems {
			if !strings.HasPrefix(problems[i].String(), want) {
				t.Errorf("%s: %s, want %s", name, problems[i], want)
			}
		}
	}
}
