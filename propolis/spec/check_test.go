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
	if err := sound().Check(Server{}); err != nil {
		t.Error(err)
	}
}

// Each fault is one that the server refuses, fails at or dies of.
func TestCheckFinds(t *testing.T) {
	const upper, lower = "44444444-AAAA-4444-8444-444444444444", "44444444-aaaa-4444-8444-444444444444"
	for name, c := range map[string]struct {
		change func(*InstanceSpec)
		path   string
		what   string
	}{
		"no com1": {func(s *InstanceSpec) { delete(s.Components, "com1") }, "components", "there is no serial port com1, without which a Propolis server dies"},
		"a port twice": {
			func(s *InstanceSpec) { s.Components["com3"] = SerialPort{"com2"} }, "components.com3.component.num", "com2 is a com2 already",
		},
		"a port that is none": {
			func(s *InstanceSpec) { s.Components["com5"] = SerialPort{"com5"} }, "components.com5.component.num", `there is no serial port "com5": want com1, com2, com3 or com4`,
		},
		"a second pvpanic": {
			func(s *InstanceSpec) { s.Components["x"] = Pvpanic{} }, "components.x", "pvpanic is a qemu_pvpanic already",
		},
		"two boot orders": {
			func(s *InstanceSpec) { s.Components["x"] = BootSettings{} }, "components.x", "boot-settings is a boot_settings already",
		},
		"255 CPUs":    {func(s *InstanceSpec) { s.Board.CPUs = 255 }, "board.cpus", "255 CPUs are not from 1 to 254"},
		"no chipset":  {func(s *InstanceSpec) { s.Board.Chipset.Type = "" }, "board.chipset.type", `there is no chipset "": want i440_fx`},
		"an odd leaf": {func(s *InstanceSpec) { s.Board.CPUID.Entries[0].Leaf = 0x10000 }, "board.cpuid.entries[0].leaf", "leaf 0x10000 is out of range"},
		"a leaf twice": {
			func(s *InstanceSpec) { s.Board.CPUID.Entries[2] = CPUIDEntry{Leaf: 0} }, "board.cpuid.entries[2]", "leaf 0x0 is answered twice",
		},
		"a leaf with and without subleaves": {
			func(s *InstanceSpec) { s.Board.CPUID.Entries[2] = CPUIDEntry{Leaf: 7} }, "board.cpuid.entries[2]", "leaf 0x7 is answered twice",
		},
		"a disk without a backend": {
			func(s *InstanceSpec) { delete(s.Components, "boot-backend") }, "components.boot.component.backend_id", "there is no backend boot-backend",
		},
		"a NIC with a disk's backend": {
			func(s *InstanceSpec) {
				s.Components["net0"] = VirtioNIC{Backend: "boot-backend", Interface: id, PCI: PCIPath{0, 8, 0}}
				delete(s.Components, "net0-backend")
				delete(s.Components, "boot")
				s.Components["boot-settings"] = BootSettings{}
			},
			"components.net0.component.backend_id", "boot-backend, a file_storage_backend, cannot be its backend",
		},
		"a backend for two": {
			func(s *InstanceSpec) {
				s.Components["more"] = VirtioDisk{Backend: "boot-backend", PCI: PCIPath{0, 17, 0}}
			},
			"components.more.component.backend_id", "the backend boot-backend serves boot",
		},
		"a backend for nobody": {
			func(s *InstanceSpec) { s.Components["more"] = VirtioNetwork{"vnic1"} }, "components.more", "no device uses this backend",
		},
		"a key twice": {
			func(s *InstanceSpec) {
				s.Components[upper], s.Components[lower] = SerialPort{"com3"}, SerialPort{"com4"}
			},
			"components." + lower, "is there twice, written differently",
		},
		"a boot entry that is a backend": {
			func(s *InstanceSpec) { s.Components["boot-settings"] = BootSettings{[]BootEntry{{"boot-backend"}}} },
			"components.boot-settings.component.order[0].id", "boot-backend is not a disk",
		},
		"a boot disk behind a bridge": {
			func(s *InstanceSpec) { s.Components["boot-settings"] = BootSettings{[]BootEntry{{"data"}}} },
			"components.boot-settings.component.order[0].id", "data is on bus 1: only those on bus 0 are booted from",
		},
		"device 32": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 32, 0}} },
			"components.vsock.component.pci_path", "there is no place 0.32.0: devices end at 31, functions at 7",
		},
		"the place of the host bridge": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 0, 0}} }, "components.vsock.component.pci_path", "at 0.0.0 is the host bridge",
		},
		"the place of the LPC bridge": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 1, 0}} }, "components.vsock.component.pci_path", "at 0.1.0 is the LPC bridge",
		},
		"the place of power management": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 1, 3}} }, "components.vsock.component.pci_path", "at 0.1.3 is power management",
		},
		"a taken place": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 8, 0}} }, "components.vsock.component.pci_path", "at 0.8.0 is net0",
		},
		"a missing bus": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{2, 8, 0}} }, "components.vsock.component.pci_path", "no bridge makes bus 2",
		},
		"a bridge to bus 0": {
			func(s *InstanceSpec) { s.Components["x"] = PCIBridge{0, PCIPath{0, 21, 0}} }, "components.x.component.downstream_bus", "bus 0 is that of the host bridge",
		},
		"two bridges to a bus": {
			func(s *InstanceSpec) { s.Components["x"] = PCIBridge{1, PCIPath{0, 21, 0}} }, "components.x.component.downstream_bus", "bus 1 is that of bridge",
		},
		"a guest's CID of the host": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{2, PCIPath{0, 25, 0}} },
			"components.vsock.component.guest_cid", "2 is not from 3 to 4294967295",
		},
		"a blob that is empty": {
			func(s *InstanceSpec) { s.Components["seed-backend"] = BlobStorage{} }, "components.seed-backend.component.base64", "0 bytes are not a multiple of 512",
		},
		"a blob that is cut": {
			func(s *InstanceSpec) { s.Components["seed-backend"] = BlobStorage{Base64: "AAAA"} },
			"components.seed-backend.component.base64", "3 bytes are not a multiple of 512",
		},
		"a blob of another alphabet": {
			func(s *InstanceSpec) { s.Components["seed-backend"] = BlobStorage{Base64: "__--"} }, "components.seed-backend.component.base64", "is not base64",
		},
		"no workers": {
			func(s *InstanceSpec) {
				s.Components["boot-backend"] = FileStorage{Path: "/x", BlockSize: 512, Workers: new(uint64)}
			},
			"components.boot-backend.component.workers", "there are no workers",
		},
		"blocks of nothing": {
			func(s *InstanceSpec) { s.Components["boot-backend"] = FileStorage{Path: "/x"} }, "components.boot-backend.component.block_size", "blocks have no size",
		},
		"a part of a later version": {
			func(s *InstanceSpec) { s.Components["x"] = Other{Tag: "newer_thing"} }, "components.x.type", "no released Propolis server has a component newer_thing",
		},
		"no CPUs":        {func(s *InstanceSpec) { s.Board.CPUs = 0 }, "board.cpus", "0 CPUs are not from 1 to 254"},
		"no memory":      {func(s *InstanceSpec) { s.Board.MemoryMiB = 0 }, "board.memory_mb", "there is no memory"},
		"16 TiB and all": {func(s *InstanceSpec) { s.Board.MemoryMiB = 16 << 20 }, "board.memory_mb", "16777216 MiB are more than a machine can address, 16776192"},
		"another hypervisor": {
			func(s *InstanceSpec) { s.Board.Hypervisor = &Hypervisor{Type: "xen"} },
			"board.guest_hv_interface.type", `there is no hypervisor "xen": want bhyve or hyper_v`,
		},
		"Hyper-V without a value": {
			func(s *InstanceSpec) { s.Board.Hypervisor = &Hypervisor{Type: HypervisorHyperV} }, "board.guest_hv_interface.value", "is missing",
		},
		"bhyve with a value": {
			func(s *InstanceSpec) { s.Board.Hypervisor = &Hypervisor{HypervisorBhyve, &HyperV{}} }, "board.guest_hv_interface.value", "bhyve has none",
		},
		"another enlightenment": {
			func(s *InstanceSpec) {
				s.Board.Hypervisor = &Hypervisor{HypervisorHyperV, &HyperV{[]string{ReferenceTSC, "x"}}}
			},
			"board.guest_hv_interface.value.features[1]", `there is no feature "x": want reference_tsc`,
		},
		"another vendor": {func(s *InstanceSpec) { s.Board.CPUID.Vendor = "AMD" }, "board.cpuid.vendor", `there is no vendor "AMD": want amd or intel`},
		"a NIC without a backend": {
			func(s *InstanceSpec) { delete(s.Components, "net0-backend") }, "components.net0.component.backend_id", "there is no backend net0-backend",
		},
		"a NIC whose label is no UUID": {
			func(s *InstanceSpec) { s.Components["net0"] = VirtioNIC{"net0-backend", "x", PCIPath{0, 8, 0}} },
			"components.net0.component.interface_id", `"x" is not a UUID`,
		},
		"a disk with a NIC's backend": {
			func(s *InstanceSpec) {
				s.Components["boot"] = VirtioDisk{Backend: "net0-backend", PCI: PCIPath{0, 16, 0}}
				delete(s.Components, "boot-backend")
				delete(s.Components, "net0")
			},
			"components.boot.component.backend_id", "net0-backend, a virtio_network_backend, cannot be its backend",
		},
		"a disk backend for nobody": {
			func(s *InstanceSpec) { s.Components["a.b"] = FileStorage{Path: "/x", BlockSize: 512} }, `components."a.b"`, "no device uses this backend",
		},
		"a boot entry that is nothing": {
			func(s *InstanceSpec) { s.Components["boot-settings"] = BootSettings{[]BootEntry{{"boot"}, {"x"}}} },
			"components.boot-settings.component.order[1].id", "x is not a disk",
		},
		"a relative file": {
			func(s *InstanceSpec) { s.Components["boot-backend"] = FileStorage{Path: "x", BlockSize: 512} },
			"components.boot-backend.component.path", `"x" is not an absolute name`,
		},
		"a second vsock device": {
			func(s *InstanceSpec) { s.Components["x"] = VirtioSocket{17, PCIPath{0, 26, 0}} }, "components.x", "vsock is a virtio_socket already",
		},
		"a CID beyond 32 bits": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{1 << 32, PCIPath{0, 25, 0}} },
			"components.vsock.component.guest_cid", "4294967296 is not from 3 to 4294967295",
		},
		"function 8": {
			func(s *InstanceSpec) { s.Components["vsock"] = VirtioSocket{16, PCIPath{0, 25, 8}} },
			"components.vsock.component.pci_path", "there is no place 0.25.8: devices end at 31, functions at 7",
		},
		"a bridge behind itself": {
			func(s *InstanceSpec) { s.Components["x"] = PCIBridge{7, PCIPath{7, 1, 0}} },
			"components.x.component.pci_path", "bus 7 does not hang from bus 0",
		},
		"a device of falcon": {
			func(s *InstanceSpec) { s.Components["x"] = SoftNPUP9{PCIPath{0, 9, 0}} },
			"components.x.type", "only a Propolis server that is built with the feature falcon has a soft_npu_p9",
		},
		"a part of failure-injection": {
			func(s *InstanceSpec) {
				s.Components["x"] = MigrationFailureInjector{}
			},
			"components.x.type", "only a Propolis server that is built with the feature failure-injection has a migration_failure_injector",
		},
		"nothing": {func(s *InstanceSpec) { s.Components["x"] = nil }, "components.x", "there is nothing"},
	} {
		s := sound()
		c.change(&s)
		err := s.Check(Server{})
		invalid, ok := errors.AsType[*InvalidError](err)
		if !ok || !slices.Equal(invalid.Problems, []Problem{{Path: c.path, What: c.what}}) {
			t.Errorf("%s: %v, want %s: %s", name, err, c.path, c.what)
		}
	}
}

func TestCheckFindsABackendHoweverItIsSpelled(t *testing.T) {
	s := sound()
	s.Components["44444444-AAAA-4444-8444-444444444444"] = s.Components["data-backend"]
	delete(s.Components, "data-backend")
	s.Components["data"] = VirtioDisk{Backend: "44444444aaaa44448444444444444444", PCI: PCIPath{1, 4, 0}}
	if err := s.Check(Server{}); err != nil {
		t.Error(err)
	}
}

// A server of falcon takes what others do not, and a SoftNPU's port wants a
// backend of its own kind.
func TestCheckKnowsWhatAServerIsBuiltWith(t *testing.T) {
	s := sound()
	s.Components["p9"] = P9FS{Source: "/src", Target: "src", ChunkSize: 8192, PCI: PCIPath{0, 9, 0}}
	s.Components["port"] = SoftNPUPort{"port", "port:backend"}
	s.Components["port:backend"] = DLPINetwork{"tfport0"}
	s.Components["fails"] = MigrationFailureInjector{}
	if err := s.Check(Server{Features: Features()}); err != nil {
		t.Error(err)
	}
	delete(s.Components, "fails")
	s.Components["port"] = SoftNPUPort{"port", "net0-backend"}
	invalid, ok := errors.AsType[*InvalidError](s.Check(Server{Features: []string{FeatureFalcon}}))
	if !ok || len(invalid.Problems) != 2 || invalid.Problems[0].What != "the backend net0-backend, a virtio_network_backend, cannot be its backend" &&
		invalid.Problems[0].What != "net0-backend, a virtio_network_backend, cannot be its backend" {
		t.Errorf("%v", invalid)
	}
}

// What attests a guest finds one boot disk, or ends the server; it is asked for
// only on IPv6.
func TestCheckOfABootOrderBesideAVsockDevice(t *testing.T) {
	if err := sound().Check(Server{}); err != nil {
		t.Error(err)
	}
	invalid, ok := errors.AsType[*InvalidError](sound().Check(Server{IPv6: true}))
	if !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Path != "components.boot-settings.component.order" {
		t.Errorf("%v", invalid)
	}
}

func TestWarnings(t *testing.T) {
	s := sound()
	s.Components["boot-backend"] = FileStorage{Path: "/x", BlockSize: 512, Workers: new(uint64(33))}
	s.Components["data"] = NVMeDisk{Backend: "data-backend", PCI: PCIPath{1, 4, 0}}
	want := []string{
		"components.boot-backend.component.workers: 33 are more than 32: the server takes its default",
		"components.bridge: a machine with a pci_pci_bridge cannot be migrated",
		"components.data.component.serial_number: is that of boot too: guests tell disks by it",
		"components.vsock: a machine with a virtio_socket cannot be migrated",
	}
	var got []string
	for _, p := range s.Warnings() {
		got = append(got, p.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
