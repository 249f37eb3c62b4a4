package devtree

import (
	_ "embed"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gimlet is what prtconf prints of a disk, with the other things that -v shows of nodes:
// dump_devs, dump_prop_list and dump_minor_data of usr/src/cmd/prtconf/pdevinfo.c.
//
//go:embed testdata/gimlet
var gimlet string

func TestParse(t *testing.T) {
	nodes, err := Parse([]byte(gimlet))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range nodes {
		parent := "-"
		if n.Parent != nil {
			parent = n.Parent.Name
		}
		got = append(got, n.Name+" "+n.Driver+" "+parent)
	}
	want := []string{
		"Oxide,Gimlet rootnex -", "scsi_vhci scsi_vhci Oxide,Gimlet", "pci npe Oxide,Gimlet", "pci1de,fff9 pcieb pci", "pci1b96,0 nvme pci1de,fff9",
		"blkdev blkdev pci1b96,0", "pci1de,fff9 pcieb pci", "fw  Oxide,Gimlet", "cpus cpunex Oxide,Gimlet",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	disk := nodes[5]
	if n, err := disk.Number("device-nblocks"); n != 0x200 || err != nil {
		t.Error(n, err)
	}
	if s, err := disk.Text("inquiry-serial-no"); s != "A079E3F8 " || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if n, err := nodes[0].Number("boot-storage-unit"); n != 'B' || err != nil {
		t.Error(n, err)
	}
	for property, n := range map[string]*Node{
		"no such": disk, "inquiry-serial-no": disk, "ranges": nodes[2], "physical-slot#": nodes[6], "ddi-kernel-ioctl": disk, "anything": nil,
	} {
		if got, err := n.Number(property); !errors.Is(err, ErrSyntax) {
			t.Errorf("number %s: %d, %v", property, got, err)
		}
	}
	for property, n := range map[string]*Node{"no such": disk, "device-nblocks": disk, "compatible": nodes[4]} {
		if got, err := n.Text(property); !errors.Is(err, ErrSyntax) {
			t.Errorf("text %s: %q, %v", property, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
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
		if got, err := Parse([]byte(out)); !errors.Is(err, ErrSyntax) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(gimlet))
	f.Add([]byte("System Peripherals (Software Nodes):\na\n    b:\n        name='x'\n    c\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		nodes, err := Parse(out)
		if err != nil {
			if !errors.Is(err, ErrSyntax) || nodes != nil {
				t.Errorf("%v, %v", nodes, err)
			}
			return
		}
		for i, n := range nodes {
			if (n.Parent == nil) != (i == 0) {
				t.Errorf("node %d has the parent %v", i, n.Parent)
			}
			// Nobody may fall over what a node has or lacks.
			_, _ = n.Above("nvme").Above("pcieb").Number("physical-slot#")
		}
	})
}
