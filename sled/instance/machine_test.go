package instance

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/adoption"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
)

// machineConfig is a machine that sledctl would not build from disks and NICs.
const machineConfig = `
[main]
boot_order = ["boot"]
[[pci_bridge]]
pci-path = "0.20.0"
downstream-bus = 1
[block_dev.image]
type = "file"
path = "/vms/a.img"
[block_dev.volume]
type = "file"
path = "/dev/zvol/dsk/tank/b"
readonly = true
[dev.boot]
driver = "pci-virtio-block"
block_dev = "image"
pci-path = "0.18.0"
[dev.a-second]
driver = "pci-nvme"
block_dev = "volume"
pci-path = "0.17.0"
[dev.net0]
driver = "pci-virtio-viona"
vnic = "outer"
pci-path = "1.8.0"
[dev.net1]
driver = "pci-virtio-viona"
vnic = "inner"
pci-path = "0.9.0"
`

func machineOf(t testing.TB, text string) *spec.Document {
	t.Helper()
	d, err := spec.Parse([]byte(text), spec.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.File = "m.toml"
	return &d
}

// withDisks is a prepared sled that has the machine's disks.
func withDisks() *scene {
	here := prepared()
	here.Datasets = append(here.Datasets, zfs.Dataset{Name: "tank/b", Type: zfs.TypeVolume})
	return here
}

// sentBy is the request of a plan.
func sentBy(t testing.TB, d operation.Decision) spec.InstanceSpec {
	t.Helper()
	for _, a := range d.Plan.Actions {
		if step, ok := a.Step.(propolis.Ensure); ok {
			return *step.Request.Init.Spec
		}
	}
	t.Fatal("nothing is sent")
	return spec.InstanceSpec{}
}

// The machine is asked for as it was written, over VNICs that sledctl makes; its zone
// has its disks, and nobody else is given them.
func TestAMachineThatWasWrittenDownIsAskedForAsItIs(t *testing.T) {
	c := settings()
	d, r, err := withDisks().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: Wanted{
		Ref: "web1", Machine: machineOf(t, machineConfig), NICs: []record.NIC{{VLAN: 1}, {VLAN: 2}}, CPUs: new(3),
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := machineOf(t, machineConfig).Spec
	want.Board.CPUs, want.Board.MemoryMiB = 3, c.Memory>>20
	image := want.Components["volume"].(spec.FileStorage)
	image.Path = "/dev/zvol/rdsk/tank/b" // the device that the zone gets
	want.Components["volume"] = image
	want.Components["net1-backend"] = spec.VirtioNetwork{VNIC: r.Incarnation.Guests[0].Name} // by its place, the first
	want.Components["net0-backend"] = spec.VirtioNetwork{VNIC: r.Incarnation.Guests[1].Name}
	if diff := cmp.Diff(want, sentBy(t, d)); diff != "" {
		t.Error(diff)
	}
	if r.Incarnation.Guests[0].VLAN != 1 || r.Incarnation.Guests[1].VLAN != 2 {
		t.Errorf("%+v", r.Incarnation.Guests)
	}
	disks := []record.Disk{{Path: "/dev/zvol/rdsk/tank/b", ReadOnly: true}, {Path: "/vms/a.img"}}
	if diff := cmp.Diff(disks, r.Spec.Disks); diff != "" {
		t.Error(diff)
	}
	config := layout.ZoneConfig(c.Blueprint(), r)
	if got := config.FS[len(config.FS)-1].Dir; got != "/vms/a.img" || config.Devices[len(config.Devices)-1] != "/dev/zvol/rdsk/tank/b" {
		t.Errorf("%+v", config)
	}
}

// What is recorded is read back, and is what it was asked for, in each form.
func TestAMachineThatWasWrittenDownIsRecorded(t *testing.T) {
	c := settings()
	_, r, err := withDisks().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: Wanted{Ref: "web1", Machine: machineOf(t, machineConfig)}})
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	read, err := record.Decode(value)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]Wanted{
		"the same":                 {Machine: machineOf(t, machineConfig)},
		"with other names":         {Machine: machineOf(t, strings.ReplaceAll(machineConfig, "outer", "other"))},
		"nothing":                  {},
		"with NICs of any address": {Machine: machineOf(t, machineConfig), NICs: []record.NIC{{}, {}}},
	} {
		if got := differences(read.Spec, w.apply(read.Spec)); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	moved := Wanted{Machine: machineOf(t, strings.Replace(machineConfig, "1.8.0", "1.9.0", 1))}
	want := []Difference{{"components.net0.component.pci_path.device", "8", "9"}}
	if diff := cmp.Diff(want, differences(read.Spec, moved.apply(read.Spec))); diff != "" {
		t.Error(diff)
	}
}

func TestAMachineThatCannotBeIsRefusedWithAllReasons(t *testing.T) {
	c := settings()
	for name, tc := range map[string]struct {
		w    Wanted
		want string
	}{
		"disks that do not exist, and a place twice": {
			Wanted{Machine: machineOf(t, strings.Replace(strings.Replace(machineConfig, "tank/b", "tank/c", 1), "0.17.0", "0.9.0", 1))},
			`m.toml: 2 problems: line 29: dev.net1.pci-path: at 0.9.0 is a-second; line 12: block_dev.volume.path: "/dev/zvol/dsk/tank/c": want a volume that exists (zfs create -V SIZE tank/c)`,
		},
		"no CPUs": {
			Wanted{Machine: machineOf(t, strings.Replace(machineConfig, "[main]", "[main]\ncpus = 255", 1))}, "m.toml: line 3: main.cpus: 255 CPUs are not from 1 to 254",
		},
		"more memory than there is": {
			Wanted{Machine: machineOf(t, strings.Replace(machineConfig, "[main]", "[main]\nmemory = 1152921504606846976", 1))},
			"m.toml: line 3: main.memory: 1152921504606846976 MiB are more than a machine can address, 16776192",
		},
		"one NIC too few": {Wanted{Machine: machineOf(t, machineConfig), NICs: []record.NIC{{}}}, `nics "1": want one for each of the spec's, 2`},
		"disks next to it": {
			Wanted{Machine: machineOf(t, machineConfig), Disks: []record.Disk{{Path: "/x"}}}, `disks "/x": want none with a spec, which has its own`,
		},
		"a part of falcon": {
			Wanted{Machine: machineOf(t, "[dev.p9]\ndriver = \"softnpu-p9\"\npci-path = \"0.9.0\"\n")},
			"m.toml: line 1: dev.p9: only a Propolis server that is built with the feature falcon has a soft_npu_p9",
		},
		"two boot disks and a vsock device on IPv6": {
			Wanted{Address: &record.Address{Mode: record.DHCP}, Machine: machineOf(t, strings.Replace(machineConfig, `["boot"]`, `["boot", "a-second"]`, 1)+
				"[dev.sock]\ndriver = \"pci-virtio-socket\"\nguest_cid = \"16\"\npci-path = \"0.25.0\"\n")},
			"m.toml: line 3: main.boot_order: a machine with a vsock device boots from one disk at most where Propolis listens on IPv6: the server dies of more",
		},
	} {
		tc.w.Ref = "web1"
		if _, _, err := withDisks().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: tc.w}); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABootromOfWhichAServerDiesIsRefused(t *testing.T) {
	for size, sound := range map[int64]bool{4096: true, 2 << 20: true, 0: false, 4095: false, 2<<20 + 4096: false} {
		here := prepared()
		here.seen.Bootrom = CheckBootrom("/opt/p/rom", size)
		_, _, err := here.decide(t, settings(), operationtest.Book(t), EnsureRequest{Wanted: oneNIC()})
		if bad, ok := errors.AsType[*BootromError](err); ok == sound || ok && bad.Size != size {
			t.Errorf("%d: %v", size, err)
		}
	}
}

// What is to be sent is written down before it is sent. If all is undone, what
// was sent before stands again.
func TestWhatIsSentIsWrittenDown(t *testing.T) {
	c := settings()
	value := func(facts []ledger.Fact, id string) (string, bool) {
		for _, f := range facts {
			if f.Key == naming.KeySent+id {
				return string(f.Value), true
			}
		}
		return "", false
	}
	d, r, err := prepared().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: oneNIC()})
	if err != nil {
		t.Fatal(err)
	}
	first, kept := value(d.OnStart, r.ID)
	view := operationtest.Book(t, d.OnStart...)
	sent, known, err := record.LoadSent(view, r.ID)
	if err != nil || !kept || !known || sent.PropolisID != r.Incarnation.PropolisID || len(spec.Compare(sentBy(t, d), sent.Spec)) > 0 {
		t.Errorf("%+v, %v", sent, err)
	}
	if undone, told := value(d.OnUndo, r.ID); !told || undone != "" {
		t.Errorf("undone: %s", undone)
	}

	recorded, err := r.Replaces(record.Record{})
	if err != nil {
		t.Fatal(err)
	}
	recorded = append(recorded, ledger.Fact{Key: naming.KeySent + r.ID, Value: []byte(first)})
	stopped := prepared().bring(c, r, atRunning)
	again, _, err := stopped.decide(t, c, operationtest.Book(t, recorded...), EnsureRequest{Wanted: Wanted{Ref: "web1", CPUs: new(7)}, Recreate: true})
	if err != nil {
		t.Fatal(err)
	}
	if undone, _ := value(again.OnUndo, r.ID); undone != first {
		t.Errorf("undone: %s, before %s", undone, first)
	}
	gone, err := record.Record{}.Replaces(r)
	if value, told := value(gone, r.ID); err != nil || !told || value != "" {
		t.Errorf("deleted: %s, %v", value, err)
	}
}

// A machine that sledctl would have built differently is adopted as it is.
func TestAnAdoptedMachineStaysAsItIs(t *testing.T) {
	c := settings()
	w := Wanted{Ref: "web1", Machine: machineOf(t, machineConfig)}
	here := withDisks()
	_, want, err := here.decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: w})
	if err != nil {
		t.Fatal(err)
	}
	_, seen := sighted(t, c, want)
	_, got, err := adoptedRecord(c, operationtest.Book(t), seen, moment("adopted"), "")
	if err != nil {
		t.Fatal(err)
	}
	if d := differences(want.Spec, got.Spec); len(d) > 0 || adoption.SpecDifferences(c.Underlay, seen, got) != "" {
		t.Errorf("%+v, %s", d, adoption.SpecDifferences(c.Underlay, seen, got))
	}
}
