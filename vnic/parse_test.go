package vnic

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/illumos/ofmt"
	"github.com/sledctl/sledctl/test/refdata"
)

func TestParseLinks(t *testing.T) {
	got, err := ParseLinks([]byte("net0:phys:1500:up\nstub0:etherstub:9000:up\nv0:vnic:9000:unknown\n"))
	want := []Link{
		{Name: "net0", Class: "phys", MTU: 1500, State: "up"}, {Name: "stub0", Class: "etherstub", MTU: 9000, State: "up"},
		{Name: "v0", Class: "vnic", MTU: 9000, State: "unknown"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestParseVNICs(t *testing.T) {
	got, err := plainVNICs([]byte(`v0:stub0:2\:8\:20\:a1\:0\:f:7` + "\n" + `v1:?:1\:0\:5e\:0\:0\:1:0` + "\n"))
	want := []Link{{Name: "v0", Over: "stub0", MAC: "02:08:20:a1:00:0f", VLAN: 7}, {Name: "v1", Over: "?", MAC: "01:00:5e:00:00:01"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	got, err = zonedVNICs([]byte(`v0:stub0:2\:8\:20\:a1\:0\:f:7:z1` + "\n" + `v1:?:1\:0\:5e\:0\:0\:1:0:` + "\n"))
	want[0].Zone = "z1"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func plainVNICs(out []byte) ([]Link, error) { return ParseVNICs(out, false) }
func zonedVNICs(out []byte) ([]Link, error) { return ParseVNICs(out, true) }

func TestParseAddresses(t *testing.T) {
	got, err := ParseAddresses([]byte("net0:a8\\:40\\:25\\:0\\:7\\:1\nnet0:2\\:8\\:20\\:0\\:0\\:1\n"))
	want := []Link{{Name: "net0", MAC: "a8:40:25:00:07:01"}, {Name: "net0", MAC: "02:08:20:00:00:01"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"net0\n", "net0:x\n", ":a8\\:40\\:25\\:0\\:7\\:1\n", "net0:a8\\:40\\:25\\:0\\:7\\:1"} {
		if got, err := ParseAddresses([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}

func TestParseAggregations(t *testing.T) {
	got, err := ParseAggregations([]byte("aggr0::a8\\:40\\:25\\:0\\:7\\:1\naggr0:net0:a8\\:40\\:25\\:0\\:7\\:1\naggr0:net1:a8\\:40\\:25\\:0\\:7\\:2\n"))
	want := []Link{{Name: "aggr0", MAC: "a8:40:25:00:07:01"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"aggr0:\n", "aggr0::x\n", "::a8\\:40\\:25\\:0\\:7\\:1\n"} {
		if got, err := ParseAggregations([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}

func TestParseZone(t *testing.T) {
	for text, want := range map[string]string{"z1\n": "z1", "\n": ""} {
		if got, err := parseZone([]byte(text)); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, bad := range []string{"z 1\n", "?\n", "v0:z1\n", "z1\nz2\n"} {
		if got, err := parseZone([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %q, %v", bad, got, err)
		}
	}
}

func TestParsersRefuse(t *testing.T) {
	for text, parse := range map[string]func([]byte) ([]Link, error){
		"net0:phys:1500\n":                      ParseLinks,
		"net0:phys:1500:up:x\n":                 ParseLinks,
		"net0:phys:1500:up":                     ParseLinks,
		"net0:phys:-1:up\n":                     ParseLinks,
		"net0:phys:01500:up\n":                  ParseLinks,
		"net0::1500:up\n":                       ParseLinks,
		":phys:1500:up\n":                       ParseLinks,
		"net 0:phys:1500:up\n":                  ParseLinks,
		`net0:phys:1500:u\p` + "\n":             ParseLinks,
		"\n":                                    ParseLinks,
		"v0:stub0:2:8:20:a1:0:f:7\n":            plainVNICs,
		`v0:stub0:2\:8\:20\:a1\:0:7` + "\n":     plainVNICs,
		"v0:stub0::0\n":                         plainVNICs,
		"v0::" + `2\:8\:20\:a1\:0\:f:7` + "\n":  plainVNICs,
		`v0:s0:2\:8\:20\:a1\:0\:f:7` + "\n":     zonedVNICs,
		`v0:s0:2\:8\:20\:a1\:0\:f:7:z 1` + "\n": zonedVNICs,
		`v0:s0:2\:8\:20\:a1\:0\:f:7:?` + "\n":   zonedVNICs,
	} {
		if got, err := parse([]byte(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, %v, want ErrSyntax", text, got, err)
		}
	}
}

// The listings have one order, so that two links of one name are told apart.
func TestJoin(t *testing.T) {
	links := []Link{{Name: "net0", Class: "phys"}, {Name: "v0", Class: "vnic"}, {Name: "v0", Class: "vnic"}}
	vnics := []Link{{Name: "v0", Over: "net0", MAC: "02:00:00:00:00:01", Zone: "z1"}, {Name: "v0", Over: "net0", MAC: "02:00:00:00:00:02", VLAN: 2}}
	got, ok := join(links, vnics)
	want := []Link{
		{Name: "net0", Class: "phys"}, {Name: "v0", Class: "vnic", Over: "net0", MAC: "02:00:00:00:00:01", Zone: "z1"},
		{Name: "v0", Class: "vnic", Over: "net0", MAC: "02:00:00:00:00:02", VLAN: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("%v %s", ok, diff)
	}
	for name, lists := range map[string][2][]Link{
		"a VNIC went": {links, vnics[:1]},
		"a VNIC came": {links[:2], vnics},
	} {
		if _, ok := join(lists[0], lists[1]); ok {
			t.Errorf("%s: the listings fit", name)
		}
	}
}

// What real systems printed.
func TestSamples(t *testing.T) {
	for name, text := range refdata.Files(t, "samples/napi/dladm-show-vnic-p.txt") {
		for line := range strings.Lines(string(text)) {
			fields, err := ofmt.Row(strings.TrimSuffix(line, "\n"), 3)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := ParseMAC(fields[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, text := range refdata.Files(t, "samples/omicron/dladm_show-linkprop_-c_-o_value_-p_mtu_VNIC*") {
		if zone, err := parseZone([]byte(text)); err == nil && strings.Contains(zone, "\n") {
			t.Errorf("%q: zone %q", text, zone)
		}
		if mtu, err := parseMTU(text); err != nil || mtu != 1500 {
			t.Errorf("%s: %d, %v", name, mtu, err)
		}
	}
	for name, text := range refdata.Files(t, "samples/illumos/dladm-delete-vnic-busy*") {
		if err := failed(t, "v0", string(text)); !errors.Is(err, errBusy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range refdata.Files(t, "samples/illumos/dladm-create-vnic-mac-in-use*") {
		if err := failed(t, "aggr0", string(text)); !errors.Is(err, ErrMACInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Tables for people, and what other commands printed, are no listings.
func TestSamplesOfOtherKindsAreRefused(t *testing.T) {
	for _, pattern := range []string{"omicron/dladm__*", "omicron/dladm_show-vnic__*", "illumos/dladm-default*", "illumos/dladm-show-vnic-illumos*",
		"omicron/ipadm__*", "omicron/netstat*", "illumos/zoneadm-list*"} {
		for name, text := range refdata.Files(t, "samples/"+pattern) {
			for what, parse := range map[string]func([]byte) ([]Link, error){"links": ParseLinks, "VNICs": plainVNICs, "VNICs with zones": zonedVNICs} {
				if links, err := parse(text); err == nil {
					t.Errorf("%s as %s: %v", name, what, links)
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"net0:phys:1500:up\n", `v0:stub0:2\:8\:20\:a1\:0\:f:7` + "\n", `v0:s0:2\:8\:20\:a1\:0\:f:7:z1` + "\n", "\\", "a:b\\:c\\\\d\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func([]byte) ([]Link, error){ParseLinks, plainVNICs, zonedVNICs} {
			links, err := parse([]byte(text))
			if err != nil && !errors.Is(err, ErrSyntax) {
				t.Errorf("%q: %v", text, err)
			}
			if err == nil && len(links) != strings.Count(text, "\n") {
				t.Errorf("%q: %d links", text, len(links))
			}
		}
		if zone, err := parseZone([]byte(text)); err == nil && strings.Contains(zone, "\n") {
			t.Errorf("%q: zone %q", text, zone)
		}
		if mtu, err := parseMTU([]byte(text)); err == nil && mtu < 0 {
			t.Errorf("%q: MTU %d", text, mtu)
		}
	})
}

func TestListingsInOneOrderAreJoinedAsAnyOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	quick := 0
	for range 20_000 {
		var links, vnics []Link
		for range r.IntN(6) {
			l := Link{Name: string(rune('a' + r.IntN(4))), Class: []string{"vnic", "vnic", "phys"}[r.IntN(3)]}
			links = append(links, l)
			if (l.Class == "vnic") == (r.IntN(9) > 0) {
				vnics = append(vnics, Link{Name: l.Name, Over: "net0", MAC: fmt.Sprint(len(vnics)), VLAN: r.IntN(3)})
			}
		}
		got, inOrder := zip(links, vnics)
		if !inOrder {
			continue
		}
		quick++
		want, fits := pair(links, vnics)
		if diff := cmp.Diff(want, got); diff != "" || !fits {
			t.Fatalf("%v and %v: fits %v: %s", links, vnics, fits, diff)
		}
	}
	if quick < 5000 {
		t.Errorf("only %d were in one order", quick)
	}
}
