package disk

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What prtconf prints of a disk, with the other things that -v shows of nodes:
// dump_devs, dump_prop_list and dump_minor_data of
// usr/src/cmd/prtconf/pdevinfo.c.
const gimlet = `System Configuration:  Oxide  oxide
Memory size: 1048064 Megabytes
System Peripherals (Software Nodes):

Oxide,Gimlet (driver name: rootnex)
    System properties:
        name='#size-cells' type=int items=1
            value=00000002
        name='boot-storage-unit' type=int items=1
            value=00000042
    scsi_vhci, instance #0 (driver name: scsi_vhci)
    pci, instance #0 (driver name: npe)
        Hardware properties:
            name='ranges' type=int items=2
                value=82000000.00000000
            name='device_type' type=string items=1
                value='pciex'
        Register Specifications:
            Bus Type=0xd0
        pci1de,fff9, instance #2 (driver name: pcieb)
            Hardware properties:
                name='pci-msi-capid-pointer' type=boolean
                name='physical-slot#' type=int items=1
                    value=00000011
            pci1b96,0, instance #1 (driver name: nvme)
                Hardware properties:
                    name='vendor-id' type=int items=1
                        value=00001b96
                    name='compatible' type=string items=2
                        value='pciex1b96,2500.1b96.0.1' + 'pciclass,010802'
                blkdev, instance #1 (driver name: blkdev)
                    Driver properties:
                        name='ddi-kernel-ioctl' type=boolean dev=none
                        name='device-nblocks' type=int64 items=1 dev=none
                            value=0000000000000200
                        name='device-blksize' type=int items=1 dev=none
                            value=00001000
                    Hardware properties:
                        name='inquiry-serial-no' type=string items=1
                            value='A079E3F8 '
                        name='inquiry-product-id' type=string items=1
                            value='WUS4C6432DSP3X3'
                        name='inquiry-vendor-id' type=string items=1
                            value='NVMe'
                    Device Minor Nodes:
                        dev=(202,64)
                            dev_path=/pci@0,0/pci1de,fff9@1,2/pci1b96,0@0/blkdev@w0014EE81000BC481,0:a
                                spectype=blk type=minor
                                dev_link=/dev/dsk/c1t0014EE81000BC481d0s0
                        dev=(202,71)
                            dev_path=/pci@0,0/pci1de,fff9@1,2/pci1b96,0@0/blkdev@w0014EE81000BC481,0:wd
                                spectype=blk type=minor
                                dev_link=/dev/dsk/c1t0014EE81000BC481d0
                            dev_path=/pci@0,0/pci1de,fff9@1,2/pci1b96,0@0/blkdev@w0014EE81000BC481,0:wd,raw
                                spectype=chr type=minor
                                dev_link=/dev/rdsk/c1t0014EE81000BC481d0
        pci1de,fff9, instance #3 (driver name: pcieb)
    fw (driver not attached)
    cpus, instance #0 (driver name: cpunex)
`

func TestParseTree(t *testing.T) {
	nodes, err := parseTree([]byte(gimlet))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range nodes {
		parent := "-"
		if n.parent != nil {
			parent = n.parent.name
		}
		got = append(got, n.name+" "+n.driver+" "+parent)
	}
	want := []string{
		"Oxide,Gimlet rootnex -", "scsi_vhci scsi_vhci Oxide,Gimlet", "pci npe Oxide,Gimlet", "pci1de,fff9 pcieb pci", "pci1b96,0 nvme pci1de,fff9",
		"blkdev blkdev pci1b96,0", "pci1de,fff9 pcieb pci", "fw  Oxide,Gimlet", "cpus cpunex Oxide,Gimlet",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	disk := nodes[5]
	if n, err := disk.number("device-nblocks"); n != 0x200 || err != nil {
		t.Error(n, err)
	}
	if s, err := disk.text("inquiry-serial-no"); s != "A079E3F8 " || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if link, ok := disk.whole(); link != "/dev/dsk/c1t0014EE81000BC481d0" || !ok {
		t.Error(link)
	}
	if n, err := nodes[0].number("boot-storage-unit"); n != 'B' || err != nil {
		t.Error(n, err)
	}
	for property, n := range map[string]*node{
		"no such": disk, "inquiry-serial-no": disk, "ranges": nodes[2], "physical-slot#": nodes[6], "ddi-kernel-ioctl": disk, "anything": nil,
	} {
		if got, err := n.number(property); !errors.Is(err, ErrSyntax) {
			t.Errorf("number %s: %d, %v", property, got, err)
		}
	}
	for property, n := range map[string]*node{"no such": disk, "device-nblocks": disk, "compatible": nodes[4]} {
		if got, err := n.text(property); !errors.Is(err, ErrSyntax) {
			t.Errorf("text %s: %q, %v", property, got, err)
		}
	}
}

func TestParseTreeRefuses(t *testing.T) {
	const head = "System Peripherals (Software Nodes):\n"
	for name, out := range map[string]string{
		"nothing":           "",
		"no heading":        "i86pc\n",
		"no root":           head + "\n",
		"cut off":           gimlet[:len(gimlet)-1],
		"two roots":         head + "a\nb\n",
		"a level left out":  head + "a\n        b\n",
		"three blanks":      head + "a\n   b\n",
		"a child, no root":  head + "    a\n",
		"in a zone, a word": "System Configuration:  Oxide\n",
	} {
		if got, err := parseTree([]byte(out)); !errors.Is(err, ErrSyntax) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
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

func FuzzParseTree(f *testing.F) {
	f.Add([]byte(gimlet))
	f.Add([]byte("System Peripherals (Software Nodes):\na\n    b:\n        name='x'\n    c\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		nodes, err := parseTree(out)
		if err != nil {
			if !errors.Is(err, ErrSyntax) || nodes != nil {
				t.Errorf("%v, %v", nodes, err)
			}
			return
		}
		for i, n := range nodes {
			if (n.parent == nil) != (i == 0) {
				t.Errorf("node %d has the parent %v", i, n.parent)
			}
			// Nobody may fall over what a node has or lacks.
			_, _ = n.disk(U2, 0)
			_, _ = n.above("nvme").above("pcieb").number("physical-slot#")
		}
	})
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
