package disk

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/illumos/devtree"
)

// gimlet is the device tree that package devtree reads in its tests.
var gimlet = func() string {
	data, err := os.ReadFile("../devtree/testdata/gimlet")
	if err != nil {
		panic(err)
	}
	return string(data)
}()

// Nobody may fall over what a node has or lacks.
func FuzzDisk(f *testing.F) {
	f.Add([]byte(gimlet))
	f.Fuzz(func(t *testing.T, out []byte) {
		nodes, _ := devtree.Parse(out)
		for _, n := range nodes {
			if d, err := found(n, U2, 0); err == nil && (d.Identity.Serial == "" && !strings.Contains(string(out), "''") || d.Device == "") {
				t.Errorf("%+v", d)
			}
		}
	})
}

func TestParseContent(t *testing.T) {
	for out, want := range map[string]file{
		"ufs\n":                           {system: "ufs"},
		"pcfs\nname: 'x'\npool_guid: 1\n": {system: "pcfs"},
		"zfs\nversion: 5000\nname: 'oxp_1'\nstate: 0\npool_guid: 18446744073709551615\nhostname: 'a'\n" +
			"vdev_tree:\n    name: 'inner'\n    pool_guid: 3\n": {
			system: "zfs", name: "oxp_1", guid: "18446744073709551615",
		},
	} {
		got, err := parseContent([]byte(out))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(file{})); diff != "" || err != nil {
			t.Errorf("%q: %v %s", out, err, diff)
		}
	}
	for _, out := range []string{
		"", "\n", "zfs", "zfs\n", "zfs\nname: 'a'\n", "zfs\npool_guid: 1\n", "zfs\nname: 'a'\npool_guid: x\n", "Usage: fstyp\n",
		"unknown_fstyp (no matches)\n",
	} {
		if got, err := parseContent([]byte(out)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, %v", out, got, err)
		}
	}
}

func FuzzParseContent(f *testing.F) {
	f.Add([]byte("zfs\nname: 'a'\npool_guid: 1\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		got, err := parseContent(out)
		switch {
		case err != nil && !errors.Is(err, ErrSyntax):
			t.Error(err)
		case err == nil && (got.system == "" || got.system == "zfs" && (got.name == "" || got.guid == "")):
			t.Errorf("%+v of %q", got, out)
		}
	})
}

func TestOwns(t *testing.T) {
	d := Disk{Name: "c1t0d0", Device: "/dev/dsk/c1t0d0"}
	for device, want := range map[string]bool{
		"c1t0d0": true, "c1t0d0s0": true, "c1t0d0s15": true, "c1t0d0p0": true, "/dev/dsk/c1t0d0": true, "/dev/dsk/c1t0d0s5": true,
		"c1t0d01": false, "c1t0d0x": false, "c1t0d0s": false, "c1t0d": false, "c11t0d0": false, "/vdev/c1t0d0": false, "123456789": false, "": false,
	} {
		if d.Owns(device) != want {
			t.Errorf("%s: %v", device, !want)
		}
	}
	f := Disk{Name: "u2_0", Device: "/var/tmp/u2_0.vdev"}
	if !f.IsFile() || d.IsFile() || !f.Owns("/var/tmp/u2_0.vdev") || f.Owns("/var/tmp/u2_0.vdevs0") || f.Owns("u2_0.vdev") {
		t.Error("files")
	}
}

func TestSlots(t *testing.T) {
	for name, slots := range map[string]map[int]Kind{
		"gimlet": {0: U2, 9: U2, 10: "", 0x10: "", 0x11: M2, 0x12: M2, 0x13: "", 0x20: "", -1: ""},
		"cosmo":  {0: "", 0x11: M2, 0x12: M2, 0x1f: "", 0x20: U2, 0x29: U2, 0x2a: ""},
	} {
		for slot, want := range slots {
			if got := boards()[name].kind(slot); got != want {
				t.Errorf("%s, slot %#x: %q, want %q", name, slot, got, want)
			}
		}
	}
	b := boards()["gimlet"]
	if !b.booted(0x11, 'A') || !b.booted(0x12, 'B') || b.booted(0x11, 'B') || b.booted(0x12, 'A') || b.booted(0x11, 0) {
		t.Error("the disk that the sled was booted from")
	}
	if !strings.HasPrefix(b.root, "Oxide,") {
		t.Error(b.root)
	}
}
