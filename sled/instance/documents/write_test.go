package documents

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func parseSizes(s string) (uint64, error) {
	shift := map[byte]int{'K': 10, 'M': 20, 'G': 30, 'T': 40}[s[len(s)-1]]
	var n uint64
	for _, r := range strings.TrimRight(s, "KMGT") {
		n = n*10 + uint64(r-'0')
	}
	return n << shift, nil
}

func TestADocumentIsWrittenInTheOrderOfThePage(t *testing.T) {
	r := record.Record{
		ID: "6dee3e34-3723-5e73-a96e-7ab1bbc63fae", Name: "web1", Protected: true, Wanted: record.WantedStopped,
		Spec: record.Spec{
			CPUs: 4, Memory: 8 << 30, Pool: "oxp_a",
			Address: record.Address{Mode: record.Static, Prefix: netip.MustParsePrefix("10.77.0.20/16"), Gateway: netip.MustParseAddr("10.77.0.1")},
			Disks:   []record.Disk{{Path: naming.VolumeDevices + "rpool/volumes/web1"}, {Path: `/images/"a" b.iso`, ReadOnly: true}},
			NICs:    []record.NIC{{Over: "net0", MAC: "02:08:20:01:02:03", VLAN: 100}, {Over: "net1", MAC: "02:08:20:01:02:04"}},
		},
	}
	want := `# protected: instance ensure --protect
# stopped: instance ensure starts it
id = "6dee3e34-3723-5e73-a96e-7ab1bbc63fae"
name = "web1"
cpus = 4
memory = "8G"
address = "10.77.0.20/16,gateway=10.77.0.1"
pool = "oxp_a"

[[disks]]
path = "rpool/volumes/web1"

[[disks]]
path = "/images/\"a\" b.iso"
readonly = true

[[nics]]
over = "net0"
mac = "02:08:20:01:02:03"
vlan = 100

[[nics]]
over = "net1"
mac = "02:08:20:01:02:04"
`
	got, err := Text(r, false)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	own, _ := Text(r, true)
	if own != strings.Replace(want, `id = "6dee3e34-3723-5e73-a96e-7ab1bbc63fae"`+"\n", "", 1) {
		t.Errorf("with its own id:\n%s", own)
	}
}

// What is written is read back.
func TestADocumentComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := record.Record{ID: "6dee3e34-3723-5e73-a96e-7ab1bbc63fae", Name: rapid.StringMatching(`[a-z][a-z0-9]{0,9}`).Draw(t, "name")}
		r.Spec = record.Spec{
			CPUs: rapid.IntRange(1, 32).Draw(t, "cpus"), Memory: rapid.Uint64Range(1, 1<<30).Draw(t, "memory") << 20, Pool: "oxp_a",
			CPUCap:     record.CPUCap(rapid.IntRange(1, int(record.MaxCPUCap)).Draw(t, "cap")),
			StartOrder: record.StartOrder(rapid.IntRange(1, record.MaxStartOrder+1).Draw(t, "order")),
			Address:    record.Address{Mode: rapid.SampledFrom([]string{record.DHCP, record.Addrconf}).Draw(t, "address")},
		}
		for _, name := range rapid.SliceOfN(rapid.StringMatching(`[ -~\x7f\x{e4}]{1,9}`), 0, 3).Draw(t, "disks") {
			r.Spec.Disks = append(r.Spec.Disks, record.Disk{Path: "/d/" + strings.ReplaceAll(name, "/", "_") + "x", ReadOnly: rapid.Bool().Draw(t, "readonly")})
		}
		for _, vlan := range rapid.SliceOfN(rapid.IntRange(0, 4094), 0, 3).Draw(t, "nics") {
			r.Spec.NICs = append(r.Spec.NICs, record.NIC{Over: "net0", MAC: "02:08:20:01:02:03", VLAN: vlan})
		}
		text, err := Text(r, false)
		if err != nil {
			t.Fatal(err)
		}
		w, err := ParseDocument([]byte(text), parseSizes)
		if _, bad := normal(r.Spec.Disks); bad != nil {
			return // no instance has such a disk
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if w.Ref != r.ID || w.Name != r.Name || *w.CPUs != r.Spec.CPUs || *w.CPUCap != r.Spec.CPUCap || *w.StartOrder != r.Spec.StartOrder || *w.Memory != r.Spec.Memory || *w.Address != r.Spec.Address || *w.Pool != r.Spec.Pool {
			t.Fatalf("got %+v\n%s", w, text)
		}
		if w.Disks == nil || w.NICs == nil {
			t.Fatalf("disks or NICs are left open:\n%s", text)
		}
		if diff := cmp.Diff(r.Spec.Disks, w.Disks, cmpopts.EquateEmpty()) + cmp.Diff(r.Spec.NICs, w.NICs, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\n%s", diff, text)
		}
	})
}

func normal(disks []record.Disk) ([]record.Disk, error) {
	for _, d := range disks {
		if _, err := d.Normal(); err != nil {
			return nil, err
		}
	}
	return disks, nil
}
