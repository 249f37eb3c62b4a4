package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everyKind is a config with each kind of table, and each driver.
const everyKind = `
[main]
boot_order = ["boot", "data"]

[chipset]
enable-pcie = true

[[pci_bridge]]
pci-path = "0.20.0"
downstream-bus = 1

[block_dev.image]
type = "file"
path = "/vms/web.img"

[block_dev.volume]
type = "file"
path = "/dev/zvol/rdsk/rpool/data"
readonly = "true"
block_size = 4096
workers = 16

[block_dev.44444444-4444-4444-8444-444444444444]
type = "file"
path = "/iso"
readonly = true

[dev.boot]
driver = "pci-nvme"
block_dev = "image"
pci-path = "0.16.0"

[dev.data]
driver = "pci-virtio-block"
block_dev = "volume"
pci-path = "0.17.0"

[dev.a-disk-with-a-name-that-is-long]
driver = "pci-nvme"
block_dev = "44444444-4444-4444-8444-444444444444"
pci-path = "1.4.7"

[dev.net0]
driver = "pci-virtio-viona"
vnic = "web0"
pci-path = "0.8.0"

[dev.sock]
driver = "pci-virtio-socket"
guest_cid = "16"
pci-path = "0.25.0"

[dev.npu]
driver = "softnpu-pci-port"
pci-path = "0.9.0"

[dev.npu-p9]
driver = "softnpu-p9"
pci-path = "0.10.0"

[dev.port1]
driver = "softnpu-port"
vnic = "tfport1"

[dev.src]
driver = "pci-virtio-9p"
source = "/src"
target = "src"
pci-path = "0.11.0"

[dev.share]
driver = "pci-virtio-9p"
source = "/share"
target = "share"
chunk_size = "8192"
pci-path = "0.12.0"

[dev.test-migration-failure]
driver = "anything"
fail_exports = 2
fail_imports = -1

[cpuid.plain]
vendor = "amd"
"0" = [16, 1752462657, 1145913699, 1769238117]
"7-0" = [0, 1, 2, 3]
"80000000" = [2147483656, 0, 0, 0]
`

// What the converter of propolis-cli makes of it, component by component
// (crates/propolis-config-toml, and what propolis-cli adds).
func TestAConfigOfEveryKind(t *testing.T) {
	d, err := Parse([]byte(everyKind), ParseOptions{CPUID: "plain", HyperV: true})
	if err != nil {
		t.Fatal(err)
	}
	const nobody, volume = "00000000-0000-0000-0000-000000000000", "44444444-4444-4444-8444-444444444444"
	want := map[string]Component{
		"boot":                            NVMeDisk{Backend: "image", PCI: PCIPath{0, 16, 0}, Serial: serial("boot                ")},
		"image":                           FileStorage{Path: "/vms/web.img", BlockSize: 512},
		"data":                            VirtioDisk{Backend: "volume", PCI: PCIPath{0, 17, 0}},
		"volume":                          FileStorage{Path: "/dev/zvol/rdsk/rpool/data", ReadOnly: true, BlockSize: 4096, Workers: new(uint64(16))},
		"a-disk-with-a-name-that-is-long": NVMeDisk{Backend: volume, PCI: PCIPath{1, 4, 7}, Serial: serial("a-disk-with-a-name-t")},
		volume:                            FileStorage{Path: "/iso", ReadOnly: true, BlockSize: 512},
		"net0":                            VirtioNIC{Backend: "net0-backend", Interface: nobody, PCI: PCIPath{0, 8, 0}},
		"net0-backend":                    VirtioNetwork{"web0"},
		"sock":                            VirtioSocket{CID: 16, PCI: PCIPath{0, 25, 0}},
		"npu":                             SoftNPUPCIPort{PCIPath{0, 9, 0}},
		"npu-p9":                          SoftNPUP9{PCIPath{0, 10, 0}},
		"port1":                           SoftNPUPort{Link: "port1", Backend: "port1:backend"},
		"port1:backend":                   DLPINetwork{"tfport1"},
		"src":                             P9FS{Source: "/src", Target: "src", ChunkSize: 65536, PCI: PCIPath{0, 11, 0}},
		"share":                           P9FS{Source: "/share", Target: "share", ChunkSize: 8192, PCI: PCIPath{0, 12, 0}},
		"test-migration-failure":          MigrationFailureInjector{Exports: 2},
		"pci-bridge-0.20.0":               PCIBridge{Downstream: 1, PCI: PCIPath{0, 20, 0}},
		"boot-settings":                   BootSettings{[]BootEntry{{"boot"}, {"data"}}},
		"com1":                            SerialPort{"com1"},
		"com2":                            SerialPort{"com2"},
		"com3":                            SerialPort{"com3"}, // the fourth is the SoftNPU's
		"pvpanic":                         Pvpanic{ISA: true},
	}
	for key, part := range want {
		if diff := cmp.Diff(part, d.Spec.Components[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	for key := range d.Spec.Components {
		if want[key] == nil {
			t.Errorf("%s: not expected", key)
		}
	}
	board := Board{
		Chipset:    Chipset{ChipsetI440FX, I440FX{PCIe: true}},
		Hypervisor: &Hypervisor{HypervisorHyperV, &HyperV{[]string{ReferenceTSC}}},
		CPUID: &CPUID{"amd", []CPUIDEntry{
			{Leaf: 0, EAX: 16, EBX: 1752462657, ECX: 1145913699, EDX: 1769238117},
			{Leaf: 7, Subleaf: new(uint32), EBX: 1, ECX: 2, EDX: 3},
			{Leaf: 0x80000000, EAX: 2147483656},
		}},
	}
	if diff := cmp.Diff(board, d.Spec.Board); diff != "" {
		t.Error(diff)
	}
	d.Spec.Board.CPUs, d.Spec.Board.MemoryMiB = 2, 1024
	if err := d.Check(Server{Features: Features()}); err != nil || d.CPUs || d.Memory {
		t.Error(err)
	}
	warned := []string{
		`line 38: dev.a-disk-with-a-name-that-is-long: the serial number is the first 20 characters of the name`,
		`line 81: dev.test-migration-failure.fail_imports: -1 counts as 0`,
	}
	if diff := cmp.Diff(warned, texts(d.Warnings)); diff != "" {
		t.Error(diff)
	}
}

func serial(s string) (n SerialNumber) {
	copy(n[:], s)
	return n
}

func texts(all []Problem) []string {
	var out []string
	for _, p := range all {
		out = append(out, p.String())
	}
	return out
}

// A disk and a NIC are the whole of a small config; a fourth serial port is there
// where no SoftNPU needs it.
func TestASmallConfig(t *testing.T) {
	d, err := Parse([]byte("[main]\nboot_order = []\n"), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := Components{
		"com1": SerialPort{"com1"}, "com2": SerialPort{"com2"}, "com3": SerialPort{"com3"}, "com4": SerialPort{"com4"},
		"pvpanic": Pvpanic{true}, "boot-settings": BootSettings{[]BootEntry{}},
	}
	if diff := cmp.Diff(want, d.Spec.Components); diff != "" {
		t.Error(diff)
	}
}

// Where propolis-cli reads something else than what stands there, it is read as
// it stands, and said.
func TestTheTrapsOfConfigsAreMended(t *testing.T) {
	const disk = "\n[dev.d]\ndriver = \"pci-nvme\"\nblock_dev = \"b\"\npci-path = \"0.4.0\"\n"
	for name, c := range map[string]struct {
		text string
		key  string
		want Component
		warn []string
	}{
		"read_only": {
			"[block_dev.b]\ntype = \"file\"\npath = \"/x\"\nread_only = true" + disk, "b", FileStorage{Path: "/x", ReadOnly: true, BlockSize: 512},
			[]string{"line 4: block_dev.b.read_only: is read as readonly, which propolis-cli does not do: there the disk would be writable"},
		},
		"skip_flush": {
			"[block_dev.b]\ntype = \"file\"\npath = \"/x\"\nskip_flush = true" + disk, "b", FileStorage{Path: "/x", BlockSize: 512},
			[]string{"line 4: block_dev.b.skip_flush: is passed over: a spec has nothing like it"},
		},
		"a CID without quotes": {
			"[dev.s]\ndriver = \"pci-virtio-socket\"\nguest_cid = 16\npci-path = \"0.4.0\"", "s", VirtioSocket{16, PCIPath{0, 4, 0}},
			[]string{"line 3: dev.s.guest_cid: is read, which propolis-cli does not do without quotes"},
		},
		"a chunk size without quotes": {
			"[dev.s]\ndriver = \"pci-virtio-9p\"\nsource = \"/a\"\ntarget = \"a\"\nchunk_size = 8192\npci-path = \"0.4.0\"", "s", P9FS{"/a", "a", 8192, PCIPath{0, 4, 0}},
			[]string{"line 5: dev.s.chunk_size: is read, which propolis-cli does not do without quotes"},
		},
		"a block_dev that nobody has": {
			"[block_dev.b]\ntype = \"file\"\npath = \"/x\"\n[block_dev.c]\ntype = \"file\"\npath = \"/y\"" + disk, "c", nil,
			[]string{"line 4: block_dev.c: is left out: no device has it as its block_dev"},
		},
		"a block_dev that is a UUID in capitals": {
			"[block_dev.44444444-AAAA-4444-8444-444444444444]\ntype = \"file\"\npath = \"/x\"" + strings.Replace(disk, `"b"`, `"44444444-AAAA-4444-8444-444444444444"`, 1),
			"44444444-aaaa-4444-8444-444444444444", FileStorage{Path: "/x", BlockSize: 512},
			[]string{"line 1: block_dev.44444444-AAAA-4444-8444-444444444444: the name is a UUID, and is written 44444444-aaaa-4444-8444-444444444444 in the spec"},
		},
		"a board in main": {
			"[main]\ncpus = 3\nmemory = 4096\nname = \"x\"", "com1", SerialPort{"com1"},
			[]string{
				"line 2: main.cpus: is read, which propolis-cli does not do", "line 3: main.memory: is read, which propolis-cli does not do, in MiB",
				"line 4: main.name: is passed over: only propolis-standalone reads it",
			},
		},
		"a write cache": {
			"[block_dev.b]\ntype = \"file\"\npath = \"/x\"" + disk + "has_write_cache = false", "d",
			NVMeDisk{Backend: "b", PCI: PCIPath{0, 4, 0}, Serial: Serial("d"), WriteCache: new(false)}, nil,
		},
		"numbers as Rust reads them": {
			"[dev.s]\ndriver = \"softnpu-p9\"\npci-path = \"+0.004.0\"", "s", SoftNPUP9{PCIPath{0, 4, 0}}, nil,
		},
	} {
		d, err := Parse([]byte(c.text), ParseOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, d.Spec.Components[c.key]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.warn, texts(d.Warnings)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Each is a config that cannot be meant.
func TestWhatIsWrongWithAConfigIsToldAtOnce(t *testing.T) {
	device := func(lines ...string) string { return "[dev.d]\n" + strings.Join(lines, "\n") }
	const nvme, block, at = `driver = "pci-nvme"`, `block_dev = "b"`, `pci-path = "0.4.0"`
	const backend = "\n[block_dev.b]\ntype = \"file\"\npath = \"/x\"\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no TOML":         {"[dev.d\n", []string{"line 1: expected ']' to close table name"}},
		"an unknown key":  {"[man]\n", []string{"line 1: man: unknown key: known here are main, chipset, pci_bridge, dev, block_dev, cpuid, cloudinit, bootrom, bootrom_version"}},
		"no driver":       {device(at), []string{"line 1: dev.d: driver is missing: want " + strings.Join(drivers(), ", ")}},
		"another driver":  {device(`driver = "e1000"`), []string{`line 2: dev.d.driver: unrecognized device type "e1000": want ` + strings.Join(drivers(), ", ")}},
		"a driver's kind": {device(`driver = 1`), []string{`line 2: dev.d.driver: is 1: want a text`}},
		"another driver's key": {
			device(nvme, block, at, `vnic = "x"`) + backend, []string{"line 5: dev.d.vnic: unknown key: known here are driver, block_dev, pci-path, has_write_cache"},
		},
		"no block_dev":    {device(nvme, at), []string{`line 1: dev.d: no backend name for storage device "d": block_dev is missing`}},
		"a lost one":      {device(nvme, block, at), []string{`line 3: dev.d.block_dev: couldn't find storage device "d"'s backend "b": there is no table [block_dev.b]`}},
		"another backend": {device(nvme, block, at) + strings.Replace(backend, `"file"`, `"crucible"`, 1), []string{`line 6: block_dev.b.type: invalid storage backend kind the text "crucible" for backend "b": want file`}},
		"no file":         {device(nvme, block, at) + strings.Replace(backend, `path = "/x"`, "", 1), []string{"line 5: block_dev.b: path is missing"}},
		"many faults": {
			device(nvme, block) + "\n[block_dev.b]\ntype = \"file\"\nreadonly = 1\nblock_size = 0\nworkers = 0\n",
			[]string{
				"line 1: dev.d: pci-path is missing", "line 4: block_dev.b: path is missing", "line 6: block_dev.b.readonly: is 1: want true or false",
				"line 7: block_dev.b.block_size: is 0: want a whole number from 1 to 4294967295",
				"line 8: block_dev.b.workers: is 0: want a whole number from 1 to 9223372036854775807",
			},
		},
		"two spellings at odds": {
			device(nvme, block, at) + backend + "readonly = false\nread_only = true", []string{"line 9: block_dev.b.read_only: is not what readonly says"},
		},
		"a block_dev for two": {
			device(nvme, block, at) + "\n[dev.e]\n" + nvme + "\n" + block + "\npci-path = \"0.5.0\"" + backend,
			[]string{"line 7: dev.e.block_dev: b is the block_dev of d already"},
		},
		"a device and a block_dev of one name": {
			device(nvme, `block_dev = "d"`, at) + strings.Replace(backend, "block_dev.b", "block_dev.d", 1),
			[]string{"line 1: dev.d: the component d is that of block_dev.d already"},
		},
		"a device that every machine has": {
			"[dev.com1]\ndriver = \"softnpu-p9\"\n" + at, []string{"line 1: dev.com1: every machine has a component com1 of its own: give it another name"},
		},
		"a place beyond": {
			device(`driver = "softnpu-p9"`, `pci-path = "0.32.0"`), []string{`line 3: dev.d.pci-path: failed to parse PCI path the text "0.32.0": want BUS.DEVICE.FUNCTION, up to 255.31.7`},
		},
		"a place in another form": {
			device(`driver = "softnpu-p9"`, `pci-path = "4/3/4"`), []string{`line 3: dev.d.pci-path: failed to parse PCI path the text "4/3/4": want BUS.DEVICE.FUNCTION, up to 255.31.7`},
		},
		"no vnic":   {device(`driver = "pci-virtio-viona"`, at), []string{"line 1: dev.d: vnic is missing"}},
		"no cid":    {device(`driver = "pci-virtio-socket"`, at), []string{"line 1: dev.d: guest_cid is missing"}},
		"a bad cid": {device(`driver = "pci-virtio-socket"`, at, `guest_cid = "x"`), []string{`line 4: dev.d.guest_cid: is the text "x": want a whole number from 0 to 18446744073709551615`}},
		"no source": {device(`driver = "pci-virtio-9p"`, at), []string{"line 1: dev.d: source is missing", "line 1: dev.d: target is missing"}},
		"a flag in quotes": {
			"[chipset]\nenable-pcie = \"true\"", []string{`line 2: chipset.enable-pcie: invalid value for enable-pcie flag in chipset: the text "true": want true or false`},
		},
		"a bridge without its bus": {"[[pci_bridge]]\npci-path = \"0.4.0\"\n", []string{"line 1: pci_bridge[0]: downstream-bus is missing"}},
		"a bridge twice": {
			"[[pci_bridge]]\npci-path = \"0.4.0\"\ndownstream-bus = 1\n[[pci_bridge]]\npci-path = \"0.4.0\"\ndownstream-bus = 2",
			[]string{"line 4: pci_bridge[1]: the component pci-bridge-0.4.0 is that of pci_bridge[0] already"},
		},
		"no CPUID profile": {"[main]\ncpuid_profile = \"x\"", []string{`line 2: main.cpuid_profile: there is no CPUID profile "x": want a table [cpuid.x]`}},
		"a CPUID profile": {
			"[cpuid.x]\nvendor = \"via\"\n\"zz\" = [0, 0, 0, 0]\n\"1\" = [0]\n\"2\" = [0, 0, 0, -1]",
			[]string{
				`line 2: cpuid.x.vendor: is the text "via": want amd or intel`, `line 3: cpuid.x.zz: "zz" is no leaf, or leaf and subleaf, of hexadecimal digits`,
				"line 4: cpuid.x.1: is a list: want four numbers: eax, ebx, ecx, edx", "line 5: cpuid.x.2[3]: is -1: want a number from 0 to 4294967295",
			},
		},
	} {
		_, err := Parse([]byte(c.text), ParseOptions{})
		if diff := cmp.Diff(c.want, lines(err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What a server would not take is told by the config's own keys.
func TestWhatIsWrongWithTheSpecOfAConfigIsToldByItsKeys(t *testing.T) {
	d, err := Parse([]byte(`main = {boot_order = ["disk", "net0"], cpus = 255, memory = 1024}
[dev.disk]
driver = "pci-nvme"
pci-path = "1.4.0"
block_dev = "disk.img"
[dev.net0]
driver = "pci-virtio-viona"
pci-path = "0.1.0"
vnic = ""
[block_dev."disk.img"]
type = "file"
path = "disk.img"
`), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"line 1: main.cpus: 255 CPUs are not from 1 to 254",
		`line 12: block_dev."disk.img".path: "disk.img" is not an absolute name`,
		`line 9: dev.net0.vnic: "" is no VNIC`,
		"line 1: main.boot_order[0]: disk is on bus 1: only those on bus 0 are booted from",
		"line 1: main.boot_order[1]: net0 is not a disk",
		"line 4: dev.disk.pci-path: no bridge makes bus 1",
		"line 8: dev.net0.pci-path: at 0.1.0 is the LPC bridge",
	}
	if diff := cmp.Diff(want, lines(d.Check(Server{}))); diff != "" {
		t.Error(diff)
	}
}
