package disk

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/devtree"
	"github.com/sledctl/sledctl/test/hosttest"
)

// printer is a host whose commands end as told, by their first word.
type printer struct {
	results map[string]host.Result
	err     error
	files   host.Files
	asked   []string
}

// Run is part of host.Host.
func (p *printer) Run(_ context.Context, c host.Command) (host.Result, error) {
	p.asked = append(p.asked, c.Shell())
	return p.results[c.Program], p.err
}

// Dial is part of host.Host.
func (p *printer) Dial(context.Context, string, string) (net.Conn, error) { panic("nobody dials") }

// DeviceVersion is part of host.Host.
func (*printer) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

// Files is part of host.Host.
func (p *printer) Files() host.Files { return p.files }

func prints(tree string) *printer {
	return &printer{results: map[string]host.Result{"prtconf": {Stdout: []byte(tree)}}, files: hosttest.Memory()}
}

func TestDetect(t *testing.T) {
	const device = "/dev/dsk/c1t0014EE81000BC481d0"
	want := []Disk{{
		Name: "c1t0014EE81000BC481d0", Kind: M2, Slot: 0x11, Identity: Identity{"1b96", "WUS4C6432DSP3X3", "A079E3F8 "}, Size: 0x200 * 0x1000,
		Device: device, PoolDevice: device + "s5",
		Partitions: []string{device + "s0", device + "s1", device + "s2", device + "s3", device + "s4", device + "s5"},
	}}
	for board, machine := range map[string]string{"": gimlet, "auto": gimlet, "gimlet": strings.Replace(gimlet, "Oxide,Gimlet", "i86pc", 1)} {
		p := prints(machine)
		got, err := Look(t.Context(), p, Detect{Board: board})
		if diff := cmp.Diff(want, got); diff != "" || err != nil || len(p.asked) != 1 {
			t.Errorf("%q: %v, asked %q: %s", board, err, p.asked, diff)
		}
	}
	booted := want[0]
	booted.Boot = true
	got, err := Look(t.Context(), prints(strings.Replace(gimlet, "00000042", "00000041", 1)), Detect{})
	if diff := cmp.Diff([]Disk{booted}, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	model := strings.Replace(gimlet, "'NVMe'", "'ACME'", 1)
	named := Identity{"1b96", "ACME WUS4C6432DSP3X3", "A079E3F8 "}
	if got, err := Look(t.Context(), prints(model), Detect{}); err != nil || got[0].Identity != named {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDetectPassesByWhatIsInNoSlotOfDisks(t *testing.T) {
	for name, machine := range map[string]string{
		"another slot":        strings.Replace(gimlet, "value=00000011", "value=00000013", 1),
		"no slot's number":    strings.Replace(gimlet, "physical-slot#", "other", 1),
		"no NVMe controller":  strings.Replace(gimlet, "(driver name: nvme)", "(driver name: vioblk)", 1),
		"no bridge":           strings.Replace(gimlet, "#2 (driver name: pcieb)", "#2 (driver name: pci)", 1),
		"another disk driver": strings.Replace(gimlet, "(driver name: blkdev)", "(driver name: sd)", 1),
	} {
		if got, err := Look(t.Context(), prints(machine), Detect{}); len(got) > 0 || err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestALookThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		p    *printer
		s    Detect
		want error
	}{
		"no Oxide sled":      {prints(strings.Replace(gimlet, "Oxide,Gimlet", "i86pc", 1)), Detect{}, ErrNoSlots},
		"no serial number":   {prints(strings.Replace(gimlet, "inquiry-serial-no", "other", 1)), Detect{}, devtree.ErrSyntax},
		"no link":            {prints(strings.ReplaceAll(gimlet, "dev_link=", "other=")), Detect{}, ErrSyntax},
		"no vendor":          {prints(strings.Replace(gimlet, "vendor-id", "other", 1)), Detect{}, devtree.ErrSyntax},
		"cut off":            {prints(gimlet[:400]), Detect{}, devtree.ErrSyntax},
		"no command":         {&printer{err: host.ErrNoCommand}, Detect{}, host.ErrNoCommand},
		"exit 1":             {&printer{results: map[string]host.Result{"prtconf": {Exit: 1, Stdout: []byte(gimlet)}}}, Detect{}, nil},
		"a board of no sled": {prints(gimlet), Detect{Board: "gimlt"}, nil},
	} {
		got, err := Look(t.Context(), c.p, c.s)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || len(got) > 0 {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
	zone := &printer{results: map[string]host.Result{"prtconf": {
		Stdout: []byte("System Peripherals (Software Nodes):\n\n"), Stderr: []byte("prtconf: devinfo facility not available\n"),
	}}}
	if _, err := Look(t.Context(), zone, Detect{}); err == nil || !strings.Contains(err.Error(), "devinfo facility not available") {
		t.Errorf("in a zone: %v", err)
	}
}

// Two disks, one of which tells nothing of itself: the other one is listed.
func TestAnUnclearDiskDoesNotHideOthers(t *testing.T) {
	i, j := strings.Index(gimlet, "        pci1de,fff9, instance #2"), strings.Index(gimlet, "        pci1de,fff9, instance #3")
	other := strings.NewReplacer("value=00000011", "value=00000003", "inquiry-serial-no", "other", "c1t", "c2t").Replace(gimlet[i:j])
	got, err := Look(t.Context(), prints(gimlet[:j]+other+gimlet[j:]), Detect{})
	if len(got) != 1 || got[0].Slot != 0x11 || !errors.Is(err, devtree.ErrSyntax) || !strings.Contains(err.Error(), "slot 0x03") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestVdevs(t *testing.T) {
	p := prints("")
	files := p.files.(*hosttest.MemoryFiles)
	if err := host.MkdirAll(files, "/var/tmp/dir.vdev", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/var/tmp/u2_0.vdev", "/var/tmp/m2_a_b.vdev", "/else.vdev"} {
		if err := host.WriteFile(files, name, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := host.WriteFile(files, "/u2_far.vdev", make([]byte, 7), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Look(t.Context(), p, Vdevs{Names: []string{"u2_0.vdev", "/u2_far.vdev", "u2_gone.vdev", "m2_a_b.vdev"}})
	want := []Disk{
		{
			Name: "m2_a_b", Kind: M2, Slot: 1027, Identity: Identity{"synthetic-vendor", "synthetic-model-M2", "synthetic-serial-a_b"}, Size: 100,
			Device: "/var/tmp/m2_a_b.vdev", PoolDevice: "/var/tmp/m2_a_b.vdev", Boot: true,
		},
		{
			Name: "u2_0", Kind: U2, Slot: 1024, Identity: Identity{"synthetic-vendor", "synthetic-model-U2", "synthetic-serial-0"}, Size: 100,
			Device: "/var/tmp/u2_0.vdev", PoolDevice: "/var/tmp/u2_0.vdev",
		},
		{
			Name: "u2_far", Kind: U2, Slot: 1025, Identity: Identity{"synthetic-vendor", "synthetic-model-U2", "synthetic-serial-far"}, Size: 7,
			Device: "/u2_far.vdev", PoolDevice: "/u2_far.vdev",
		},
		{Name: "u2_gone", Kind: U2, Slot: 1026, Device: "/var/tmp/u2_gone.vdev", Absent: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(p.asked) > 0 {
		t.Errorf("%v, asked %q: %s", err, p.asked, diff)
	}
	for _, bad := range []string{"/else.vdev", "disk", "u2_.vdev", "u3_a.vdev", "u2_a", "u2.vdev"} {
		if got, err := Look(t.Context(), p, Vdevs{Dir: "/var/tmp", Names: []string{bad, "u2_0.vdev"}}); err == nil || len(got) != 1 {
			t.Errorf("%s: %+v, %v", bad, got, err)
		}
	}
	files.Fail(func(op, name string) error {
		if op == "stat" {
			return syscall.EIO
		}
		return nil
	})
	if got, err := Look(t.Context(), p, Vdevs{Names: []string{"u2_0.vdev"}}); !errors.Is(err, syscall.EIO) || len(got) > 0 {
		t.Errorf("a failed look: %+v, %v", got, err)
	}
}

func TestDevices(t *testing.T) {
	const device = "/dev/dsk/c1t0014EE81000BC481d0"
	p := prints(strings.Replace(gimlet, "Oxide,Gimlet", "i86pc", 1))
	got, err := Look(t.Context(), p, Devices{{U2, device}, {M2, "/dev/dsk/c9t0d0"}})
	want := []Disk{
		{Name: "c9t0d0", Kind: M2, Slot: NoSlot, Device: "/dev/dsk/c9t0d0", Absent: true},
		{
			Name: "c1t0014EE81000BC481d0", Kind: U2, Slot: NoSlot, Identity: Identity{"1b96", "WUS4C6432DSP3X3", "A079E3F8 "}, Size: 0x200000,
			Device: device, PoolDevice: device,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	p = prints(strings.NewReplacer("#1 (driver name: nvme)", "#1 (driver name: ahci)", "'NVMe'", "'INTEL'").Replace(gimlet))
	got, err = Look(t.Context(), p, Devices{{U2, device}})
	if err != nil || got[0].Identity != (Identity{"INTEL", "WUS4C6432DSP3X3", "A079E3F8 "}) {
		t.Errorf("behind another controller: %+v, %v", got, err)
	}
	p = prints("")
	if got, err := Look(t.Context(), p, Devices{}); got != nil || err != nil || len(p.asked) > 0 {
		t.Errorf("none: %v, %v, asked %q", got, err, p.asked)
	}
}
