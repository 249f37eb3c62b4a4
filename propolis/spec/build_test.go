package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const id = "7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"

// web1 is a machine with one of everything.
func web1() Description {
	return Description{
		ID: id, Name: "web1", CPUs: 2, MemoryMiB: 2048,
		Disks: []Disk{{Path: "/dev/zvol/rdsk/rpool/vms/web1"}, {Path: "/vms/a & b.iso", ReadOnly: true}},
		NICs:  []NIC{{VNIC: "vnic_propolis_guest0"}, {VNIC: "vnic_propolis_guest1", InterfaceID: "44444444-4444-4444-8444-444444444444"}},
	}
}

// full is a machine with no free place.
func full() Description {
	d := Description{ID: id, Name: "full", CPUs: 32, MemoryMiB: 1 << 20}
	for i := range MaxDisks {
		d.Disks = append(d.Disks, Disk{Path: fmt.Sprintf("/vms/%d.img", i)})
	}
	for i := range MaxNICs {
		d.NICs = append(d.NICs, NIC{VNIC: fmt.Sprintf("guest%d", i)})
	}
	return d
}

func bare() Description { return Description{ID: id, Name: "bare", CPUs: 1, MemoryMiB: 1} }

func built(t *testing.T, d Description) EnsureRequest {
	t.Helper()
	r, err := Build(d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encoded(t *testing.T, r EnsureRequest) []byte {
	t.Helper()
	body, err := r.Encode(Latest)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// The goldens are not to change: guests keep the PCI addresses, and disks'
// serial numbers, that they have seen.
func TestBuild(t *testing.T) {
	for name, d := range map[string]Description{"web1": web1(), "full": full(), "bare": bare()} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := json.Indent(&got, encoded(t, built(t, d)), "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			file := filepath.Join("testdata", "build-"+name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBuildIsTheSameEachTime(t *testing.T) {
	first := encoded(t, built(t, full()))
	for range 10 {
		if again := encoded(t, built(t, full())); !bytes.Equal(first, again) {
			t.Fatalf("%s\nthen %s", first, again)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Description)
		want   string
	}{
		"an id that is no UUID":            {func(d *Description) { d.ID = "web1" }, `id: "web1" is not a UUID`},
		"no CPUs":                          {func(d *Description) { d.CPUs = 0 }, "cpus: 0 is not from 1 to 254"},
		"CPUs that would fit after a wrap": {func(d *Description) { d.CPUs = 257 }, "cpus: 257 is not from 1 to 254"},
		"no memory":                        {func(d *Description) { d.MemoryMiB = 0 }, "board.memory_mb: there is no memory"},
		"a 13th disk":                      {func(d *Description) { d.Disks = make([]Disk, 13) }, "disks: 13 are more than 12"},
		"a 9th NIC":                        {func(d *Description) { d.NICs = make([]NIC, 9) }, "nics: 9 are more than 8"},
		"a disk with a relative name":      {func(d *Description) { d.Disks[0].Path = "web1.img" }, `components.disk0-backend.component.path: "web1.img" is not an absolute name`},
		"a disk whose name JSON cannot say": {
			func(d *Description) { d.Disks[0].Path = "/vms/\xff" }, `components.disk0-backend.component.path: "/vms/\xff" is not an absolute name`,
		},
		"one VNIC for two NICs": {
			func(d *Description) { d.NICs[1].VNIC = d.NICs[0].VNIC }, "components.net1-backend.component.vnic_name: VNIC vnic_propolis_guest0 serves net0-backend",
		},
		"a NIC without a VNIC":    {func(d *Description) { d.NICs[0].VNIC = "" }, `components.net0-backend.component.vnic_name: "" is no VNIC`},
		"an interface id not one": {func(d *Description) { d.NICs[0].InterfaceID = "x" }, `components.net0.component.interface_id: "x" is not a UUID`},
	} {
		d := web1()
		c.change(&d)
		_, err := Build(d)
		invalid, ok := errors.AsType[*InvalidError](err)
		if !ok || len(invalid.Problems) != 1 || err.Error() != "instance spec: "+c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestBuildTellsAllProblemsAtOnce(t *testing.T) {
	d := web1()
	d.Disks[0].Path, d.NICs[0].VNIC = "", ""
	_, err := Build(d)
	if invalid, ok := errors.AsType[*InvalidError](err); !ok || len(invalid.Problems) != 2 {
		t.Errorf("%v", err)
	}
}

func TestBuildRefusesWhatTheServerWouldNotRead(t *testing.T) {
	d := web1()
	d.Name = strings.Repeat("x", MaxRequest)
	_, err := Build(d)
	if e, ok := errors.AsType[*TooLargeError](err); !ok || e.Size <= MaxRequest {
		t.Errorf("%v", err)
	}
}

func TestBuildWritesTheIDAsTheServerDoes(t *testing.T) {
	d := web1()
	d.ID = strings.ToUpper(id)
	if got := built(t, d).Properties.ID; got != id {
		t.Errorf("got %s", got)
	}
}

func TestSerialIsPaddedAndCut(t *testing.T) {
	for text, want := range map[string]string{"disk0": "disk0               ", "": strings.Repeat(" ", 20), strings.Repeat("ab", 15): strings.Repeat("ab", 10)} {
		if got := Serial(text); string(got[:]) != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
