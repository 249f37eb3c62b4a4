package propolis_test

import (
	"encoding/base64"
	"math/rand/v2"
	"testing"

	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// mutations are what people do to specs, sound or not.
func mutations() []func(s *spec.InstanceSpec) {
	set := func(key string, c spec.Component) func(*spec.InstanceSpec) {
		return func(s *spec.InstanceSpec) { s.Components[key] = c }
	}
	drop := func(key string) func(*spec.InstanceSpec) {
		return func(s *spec.InstanceSpec) { delete(s.Components, key) }
	}
	disk := func(bus, device, function uint8) spec.Component {
		return spec.VirtioDisk{Backend: "b", PCI: spec.PCIPath{Bus: bus, Device: device, Function: function}}
	}
	blob := func(n int) spec.Component {
		return spec.BlobStorage{Base64: base64.StdEncoding.EncodeToString(make([]byte, n))}
	}
	bridge := func(bus, device, downstream uint8) spec.Component {
		return spec.PCIBridge{Downstream: downstream, PCI: spec.PCIPath{Bus: bus, Device: device}}
	}
	all := []func(*spec.InstanceSpec){
		drop("com1"), drop("com2"), drop("pvpanic"), drop("disk0-backend"), drop("disk0"), drop("net0"), drop("net0-backend"), drop("boot-settings"),
		set("com9", spec.SerialPort{Number: "com1"}), set("com9", spec.SerialPort{Number: "com9"}), set("panics", spec.Pvpanic{}),
		set("b", blob(512)), set("b", blob(512)), set("b", blob(0)), set("b", blob(511)), set("b", spec.FileStorage{Path: "/vms/web1.img", BlockSize: 512, Workers: new(uint64)}),
		set("d", disk(0, 4, 0)), set("d", disk(0, 4, 7)), set("d", disk(1, 4, 0)), set("d", disk(1, 0, 0)), set("d", disk(0, 0, 0)), set("d", disk(0, 1, 0)), set("d", disk(0, 1, 3)),
		set("d", disk(0, 1, 1)), set("d", disk(0, 8, 0)), set("d", disk(0, 32, 0)), set("d", disk(0, 31, 8)), set("d", disk(2, 4, 0)),
		set("br", bridge(0, 20, 1)), set("br", bridge(0, 20, 1)), set("br", bridge(0, 20, 0)), set("br2", bridge(1, 21, 2)), set("br2", bridge(0, 21, 1)),
		set("boot-settings", spec.BootSettings{Order: []spec.BootEntry{{ID: "d"}}}), set("boot-settings", spec.BootSettings{Order: []spec.BootEntry{{ID: "disk0"}, {ID: "disk0"}}}),
		set("boot-settings", spec.BootSettings{Order: []spec.BootEntry{{ID: "disk0-backend"}}}), set("boot-settings", spec.BootSettings{Order: []spec.BootEntry{}}),
		set("n", spec.VirtioNIC{Backend: "disk0-backend", Interface: id, PCI: spec.PCIPath{Device: 9}}), set("n", spec.VirtioNIC{Backend: "nb", Interface: id, PCI: spec.PCIPath{Device: 9}}),
		set("n", spec.VirtioNIC{Backend: "nb", Interface: "x", PCI: spec.PCIPath{Device: 9}}), set("nb", spec.VirtioNetwork{VNIC: "guest1"}), set("nb", spec.VirtioNetwork{VNIC: "guest0"}),
		set("s", spec.VirtioSocket{CID: 3, PCI: spec.PCIPath{Device: 25}}), set("s", spec.VirtioSocket{CID: 2, PCI: spec.PCIPath{Device: 25}}), set("s", spec.VirtioSocket{CID: 1 << 32, PCI: spec.PCIPath{Device: 25}}),
		set("p9", spec.SoftNPUP9{PCI: spec.PCIPath{Device: 26}}), set("fails", spec.MigrationFailureInjector{}), set("new", spec.Other{Tag: "newer_thing", Body: []byte(`{}`)}),
	}
	for _, n := range []uint8{0, 1, 32, 255} {
		all = append(all, func(s *spec.InstanceSpec) { s.Board.CPUs = n })
	}
	for _, leaf := range []uint32{0, 0xffff, 0x10000, 0x80000000, 0x80010000} {
		all = append(all, func(s *spec.InstanceSpec) {
			s.Board.CPUID = &spec.CPUID{Vendor: "amd", Entries: []spec.CPUIDEntry{{Leaf: 0}, {Leaf: leaf, Subleaf: new(uint32)}}}
		})
	}
	return append(all,
		func(s *spec.InstanceSpec) { s.Board.MemoryMiB = 0 },
		func(s *spec.InstanceSpec) { s.Board.Hypervisor = &spec.Hypervisor{Type: "xen"} },
		func(s *spec.InstanceSpec) { s.SMBIOS = &spec.SMBIOS{Manufacturer: "x"} },
	)
}

// A server makes a machine of what Check lets pass, and of nothing else: the
// simulated one was written without a look at Check.
func TestCheckAgreesWithTheServer(t *testing.T) {
	samples := 600
	if testing.Short() {
		samples = 60
	}
	random := rand.New(rand.NewPCG(1, 2))
	sound, unsound := 0, 0
	for n := range samples {
		unwatched(t, 0, func(t *testing.T, r rig) {
			r.change(func(tx *world.Tx) {
				must(t, network.CreateVNIC(tx, network.VNIC{Name: "guest1", Over: "net0", Temporary: true}))
			})
			request := r.request()
			s := request.Init.Spec
			s.Components["d"] = spec.VirtioDisk{Backend: "b", PCI: spec.PCIPath{Device: 5}}
			s.Components["b"] = spec.BlobStorage{Base64: base64.StdEncoding.EncodeToString(make([]byte, 512))}
			var did []int
			for range random.IntN(4) {
				i := random.IntN(len(mutations()))
				did = append(did, i)
				mutations()[i](s)
			}
			r.do(propolis.AwaitHTTP{Target: target()})
			checked := s.Check(spec.Server{})
			err := r.client().Ensure(t.Context(), request)
			if (checked == nil) != (err == nil) {
				t.Errorf("sample %d, mutations %v: check: %v; the server: %v", n, did, checked, err)
			}
			if checked == nil {
				sound++
			} else {
				unsound++
			}
		})
	}
	if sound < samples/5 || unsound < samples/5 {
		t.Errorf("%d sound and %d unsound specs show little", sound, unsound)
	}
}
