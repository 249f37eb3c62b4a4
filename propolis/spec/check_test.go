package spec

import (
	"encoding/base64"
	"errors"
	"slices"
	"testing"
)

// sound is a spec that has a part of each kind and no fault.
func sound() InstanceSpec {
	return InstanceSpec{
		Board: Board{
			CPUs: 4, MemoryMiB: 8192, Chipset: Chipset{Type: ChipsetI440FX},
			CPUID: &CPUID{Vendor: "amd", Entries: []CPUIDEntry{{Leaf: 0}, {Leaf: 7, Subleaf: new(uint32)}, {Leaf: 0x80000000}}},
		},
		Components: Components{
			"com1": SerialPort{"com1"}, "com2": SerialPort{"com2"}, "pvpanic": Pvpanic{true},
			"boot":          NVMeDisk{Backend: "boot-backend", PCI: PCIPath{0, 16, 0}},
			"boot-backend":  FileStorage{Path: "/vms/boot.img", BlockSize: 512},
			"seed":          VirtioDisk{Backend: "seed-backend", PCI: PCIPath{0, 24, 0}},
			"seed-backend":  BlobStorage{Base64: base64.StdEncoding.EncodeToString(make([]byte, 1024)), ReadOnly: true},
			"bridge":        PCIBridge{Downstream: 1, PCI: PCIPath{0, 20, 0}},
			"data":          VirtioDisk{Backend: "data-backend", PCI: PCIPath{1, 4, 0}},
			"data-backend":  CrucibleStorage{Request: "{}"},
			"net0":          VirtioNIC{Backend: "net0-backend", Interface: id, PCI: PCIPath{0, 8, 0}},
			"net0-backend":  VirtioNetwork{"vnic0"},
			"vsock":         VirtioSocket{CID: 16, PCI: PCIPath{0, 25, 0}},
			"boot-settings": BootSettings{[]BootEntry{{"boot"}, {"seed"}}},
		},
	}
}

func TestCheckFindsNothingWrongWithASoundSpec(t *testing.T) {
	if err := sound().Check(); err != nil {
		t.Error(err)
	}
}

// Each fault is one that the server refuses, fails at or dies of.
func TestCheckFinds(t *testing.T) {
	const upper, lower = "44444444-AAAA-4444-8444-444444444444", "44444444-aaaa-4444-8444-444444444444"
	for name, c := range map[string]struct {
		change func(*InstanceSpec)
		want   Problem
	}{
		"no com1": {func(s *InstanceSpec) { delete(s.Components, "com1") }, Problem{"components", "there is no serial port com1"}},
		"a port twice": {
			func(s *InstanceSpec) { s.Components["com3"] = SerialPort{"com2"} }, Problem{"com3", "com2 is a com2 already"},
		},
		"a port that is none": {
			func(s *InstanceSpec) { s.Components["com5"] = SerialPort{"com5"} }, Problem{"com5", `there is no serial port "com5"`},
		},
		"a second pvpanic": {
			func(s *InstanceSpec) { s.Components["x"] = Pvpanic{} }, Problem{"x", "pvpanic is a qemu_pvpanic already"},
		},
		"two boot orders": {
			func(s *InstanceSpec) { s.Components["x"] = BootSettings{} }, Problem{"x", "boot-settings is a boot_settings already"},
		},
		"33 CPUs":     {func(s *InstanceSpec) { s.Board.CPUs = 33 }, Problem{"board", "33 CPUs are not from 1 to 32"}},
		"no chipset":  {func(s *InstanceSpec) { s.Board.Chipset.Type = "" }, Problem{"board", `there is no chipset ""`}},
		"an odd leaf": {func(s *InstanceSpec) { s.Board.CPUID.Entries[0].Leaf = 0x10000 }, Problem{"cpuid", "leaf 0x10000 is out of range"}},
		"a leaf twice": {
			func(s *InstanceSpec) { s.Board.CPUID.Entries[2] = CPUIDEntry{Leaf: 0} }, Problem{"cpuid", "leaf 0x0 is answered twice"},
		},
		"a leaf with and without subleaves": {
			func(s *InstanceSpec) { s.Board.CPUID.Entries[2] = CPUIDEntry{Leaf: 7} }, Problem{"cpuid", "leaf 0x7 is answered twice"},
		},
		"a disk without a backend": {
			func(s *InstanceSpec) { delete(s.Components, "boot-backend") }, Problem{"boot", "there is no backend boot-backend"},
		},
		"a NIC with a disk's backend": {
			func(s *InstanceSpec) {
				s.Components["net0"] = VirtioNIC{Backend: "boot-backend", Interface: id, PCI: PCIPath{0, 8, 0}}
				delete(s.Components, "net0-backend")
				delete(s.Components, "boot")
				s.Components["boot-settings"] = BootSettings{}
			},
			Problem{"net0", "boot-backend, a file_storage_backend, cannot be its backend"},
		},
		"a backend for two": {
			func(s *InstanceSpec) {
				s.Components["more"] = VirtioDisk{Backend: "boot-backend", PCI: PCIPath{0, 17, 0}}
			},
			Problem{"more", "its backend boot-backend serves boot"},
		},
		"a backend for nobody": {
			func(s *InstanceSpec) { s.Components["more"] = VirtioNetwork{"vnic1"} }, Problem{"more", "no device uses this backend"},
		},
		"a key twice": {
			func(s *InstanceSpec) {
				s.Components[upper], s.Components[lower] = SerialPort{"com3"}, SerialPort{"com4"}
			},
			Problem{lower, "is there twice, written differently"},
		},
		"a boot entry that is a backend": {
			func(s *InstanceSpec) { s.Components["boot-settings"] = BootSettings{[]BootEntry{{"boot-backend"}}} },
			Problem{"boot-settings", "boot-backend is not a disk"},
		},
		"a boot disk behind a bridge": {
			func(s *InstanceSpec) { s.Components["boot-settings"] = BootSettings{[]BootEntry{{"data"}}} },
			Problem{"boot-settings", "data is on bus 1: only those on bus 0 are booted from"},
		},
		"device 32": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 32, 0}} },
			Problem{"vsock", "there is no place 0.32.0: devices end at 31, functions at 7"},
		},
		"the place of the host bridge": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 0, 0}} }, Problem{"vsock", "at 0.0.0 is the host bridge"},
		},
		"the place of the LPC bridge": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 1, 0}} }, Problem{"vsock", "at 0.1.0 is the LPC bridge"},
		},
		"the place of power management": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 1, 3}} }, Problem{"vsock", "at 0.1.3 is power management"},
		},
		"a taken place": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 8, 0}} }, Problem{"vsock", "at 0.8.0 is net0"},
		},
		"a bus that is not there": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{2, 8, 0}} }, Problem{"vsock", "no bridge makes bus 2"},
		},
		"a bridge to bus 0": {
			func(s *InstanceSpec) { s.Components["x"] = PCIBridge{0, PCIPath{0, 21, 0}} }, Problem{"x", "bus 0 is that of the host bridge"},
		},
		"two bridges to a bus": {
			func(s *InstanceSpec) { s.Components["x"] = PCIBridge{1, PCIPath{0, 21, 0}} }, Problem{"x", "bus 1 is that of bridge"},
		},
		"a guest's CID of the host": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{2, PCIPath{0, 25, 0}} },
			Problem{"vsock", "the guest's CID 2 is not from 3 to 4294967295"},
		},
		"a blob that is empty": {
			func(s *InstanceSpec) { s.Components["seed-backend"] = BlobStorage{} }, Problem{"seed-backend", "0 bytes are not a multiple of 512"},
		},
		"a blob that is cut": {
			func(s *InstanceSpec) { s.Components["seed-backend"] = BlobStorage{Base64: "AAAA"} },
			Problem{"seed-backend", "3 bytes are not a multiple of 512"},
		},
		"a blob of another alphabet": {
			func(s *InstanceSpec) { s.Components["seed-backend"] = BlobStorage{Base64: "__--"} }, Problem{"seed-backend", "is not base64"},
		},
		"no workers": {
			func(s *InstanceSpec) {
				s.Components["boot-backend"] = FileStorage{Path: "/x", BlockSize: 512, Workers: new(uint64)}
			},
			Problem{"boot-backend", "there are no workers"},
		},
		"blocks of nothing": {
			func(s *InstanceSpec) { s.Components["boot-backend"] = FileStorage{Path: "/x"} }, Problem{"boot-backend", "blocks have no size"},
		},
		"a part of special builds": {
			func(s *InstanceSpec) { s.Components["x"] = Other{Tag: "soft_npu_p9"} }, Problem{"x", "released Propolis servers take no soft_npu_p9"},
		},
		"nothing": {func(s *InstanceSpec) { s.Components["x"] = nil }, Problem{"x", "there is nothing"}},
	} {
		s := sound()
		c.change(&s)
		invalid, ok := errors.AsType[*InvalidError](s.Check())
		if !ok || !slices.Equal(invalid.Problems, []Problem{c.want}) {
			t.Errorf("%s: %v, want %v", name, s.Check(), c.want)
		}
	}
}

func TestCheckFindsABackendHoweverItIsSpelled(t *testing.T) {
	s := sound()
	s.Components["44444444-AAAA-4444-8444-444444444444"] = s.Components["data-backend"]
	delete(s.Components, "data-backend")
	s.Components["data"] = VirtioDisk{Backend: "44444444aaaa44448444444444444444", PCI: PCIPath{1, 4, 0}}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
