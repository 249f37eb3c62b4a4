package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/storage"
)

func TestTree(t *testing.T) {
	const healthy, lost, boot = "oxp_101964cb-a8ae-45ea-8aa0-399e4ead2671", "oxp_6eb758c7-ee2e-4e47-ae36-2884c421fb31", "oxi_7f7a2958-8b5b-4c0d-bd37-fd37f487d911"
	items := []storage.Item{
		{Kind: "disk", Name: "c1t0d0", State: "ready", On: "m2:17", Pool: boot, Serial: "AF8F386C"},
		{Kind: "disk", Name: "c11t0d0", State: "ready", On: "u2:10", Pool: healthy, Serial: "ABA4EC23"},
		{Kind: "disk", Name: "c12t0d0", State: "blank", On: "u2:2", Serial: "AF3DE204", Reason: "contents is blank, wanted a pool"},
		{Kind: "disk", Name: "c14t0d0", State: "absent", Reason: "absent: serial number A412F396 in slot 3, with pool " + lost},
		{Kind: "pool", Name: boot, State: "ready", On: "c1t0d0", Used: 1 << 20, Available: 99 << 20},
		{Kind: "pool", Name: healthy, State: "full", On: "c11t0d0", Used: 97 << 30, Available: 3 << 30, Reason: "97% of it is in use"},
		{Kind: "pool", Name: lost, State: "unavail", Reason: "pool is UNAVAIL"},
		{Kind: "pool", Name: "rpool", State: "ready", Used: 80 << 30, Available: 20 << 30},
		{Kind: "dataset", Name: healthy + "/crypt", State: "ready"},
	}
	known := []storage.Record{{Name: "c14t0d0", Kind: disk.U2, Slot: 3, Serial: "A412F396", Pool: lost}}
	vm := func(name, pool string, disks ...string) record.Record {
		r := record.Record{Name: name}
		if pool != "" {
			r.Incarnation = &record.Incarnation{Dataset: pool + "/crypt/zone/propolis_instance_1"}
		}
		for _, d := range disks {
			r.Spec.Disks = append(r.Spec.Disks, record.Disk{Path: d})
		}
		return r
	}
	vms := []record.Record{
		vm("web10", healthy), vm("web2", healthy, naming.VolumeDevices+"rpool/volumes/web2"), vm("db1", lost), vm("off1", "", "/data/off1.img"),
	}
	streams, out, _ := terminal.Buffers(terminal.Pretended{Terminal: true, Width: 75})
	if err := tree(streams.Out, branches(items, known, vms)); err != nil {
		t.Fatal(err)
	}
	const want = `DISK     POOL          STATE       USED   FREE  OF
u2:2     -             blank          -      -
  c12t0d0 AF3DE204     contents is blank, wanted a pool
u2:3     oxp_6eb758c7  ABSENT         -      -
  c14t0d0 A412F396     absent: serial number A412F396 in slot 3, with pool
                       oxp_6eb758c7
                       1 zone: db1
u2:10    oxp_101964cb  FULL         97G     3G  [###################.]  97%
  c11t0d0 ABA4EC23     97% of it is in use
                       2 zones: web2 web10
m2:17    oxi_7f7a2958  ready         1M    99M  [....................]   1%
  c1t0d0 AF8F386C
-        rpool         ready        80G    20G  [################....]  80%
                       1 volume: web2
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
