package zone

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/test/refdata"
)

func number(n int) *int { return &n }

func TestParseListReadsEveryColumn(t *testing.T) {
	in := "0:global:running:/::ipkg:shared:\n" +
		`7:web1:running:/zone/we\:b1:54f1cc77-68f1-42ab-acac-5c4f64f5d6e0:sparse:excl:12` + "\n" +
		"-:new:configured:/zone/new::omicron1:excl\n" +
		"-:next:down:/zone/next::sparse:excl:3:and:columns:of:later\n"
	want := []Zone{
		{ID: number(0), Name: "global", State: Running, Path: "/", Brand: "ipkg", IPType: "shared"},
		{
			ID: number(7), Name: "web1", State: Running, Path: "/zone/we:b1", UUID: "54f1cc77-68f1-42ab-acac-5c4f64f5d6e0",
			Brand: "sparse", IPType: "exclusive",
		},
		{Name: "new", State: Configured, Path: "/zone/new", Brand: "omicron1", IPType: "exclusive"},
		{Name: "next", State: Down, Path: "/zone/next", Brand: "sparse", IPType: "exclusive"},
	}
	got, err := ParseList([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseListRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"a listing that is cut off":     "0:global:running:/::ipkg:shared",
		"six columns":                   "0:global:running:/::ipkg\n",
		"an empty line":                 "0:global:running:/::ipkg:shared\n\n",
		"a zone id that is no number":   "x:global:running:/::ipkg:shared\n",
		"a negative zone id":            "-1:global:running:/::ipkg:shared\n",
		"a zone without a name":         "-::running:/::ipkg:shared\n",
		"a zone without a state":        "-:a::/::ipkg:shared\n",
		"a zone without a path":         "-:a:installed:::ipkg:shared\n",
		"an unknown ip-type":            "-:a:installed:/a::ipkg:vlan\n",
		"an eighth column of Solaris":   "0:global:running:/::solaris:shared:-:none\n",
		"a table meant for people":      "  ID NAME             STATUS     PATH\n",
		"what zoneadm says in its need": "zoneadm: global: could not get state: No such zone configured\n",
	} {
		if zones, err := ParseList([]byte(in)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: got %v, %v", name, zones, err)
		}
	}
}

func TestParseListAcceptsTheSamplesOfIllumos(t *testing.T) {
	for name, sample := range refdata.Files(t, "samples/napi/zoneadm-list-*", "samples/omicron/zoneadm_list_*") {
		zones, err := ParseList(sample)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := strings.Count(string(sample), "\n"); len(zones) != want || zones[0].Name != Global {
			t.Errorf("%s: %d zones of %d lines", name, len(zones), want)
		}
	}
}

func TestParseListRejectsTheSamplesOfOtherSystems(t *testing.T) {
	for _, sample := range refdata.Files(t, "samples/illumos/zoneadm-list-*NOT-ILLUMOS*") {
		for line := range strings.Lines(string(sample)) {
			if zones, err := ParseList([]byte(line)); !errors.Is(err, ErrSyntax) {
				t.Errorf("%s: accepted as %v, %v", line, zones, err)
			}
		}
	}
}

func TestParseConfigReadsTheSamples(t *testing.T) {
	files := refdata.Files(t, "samples/illumos/etc-zones-*.xml")
	for name, sample := range files {
		owner, c, err := ParseConfig(sample)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == "etc-zones-minimal-joyent.xml" { // a zone without resources
			want := Config{Zonepath: "/zones/" + owner, Brand: "joyent", IPType: "exclusive", Limitpriv: "default", Autoboot: true}
			if diff := cmp.Diff(want, c); diff != "" || owner != "073ae53b-c444-4e23-866b-10f99f276242" {
				t.Errorf("%s: zone %s: %s", name, owner, diff)
			}
			continue
		}
		if want := strings.TrimSuffix(strings.TrimPrefix(name, "etc-zones-"), ".xml"); owner != want {
			t.Errorf("zone %s, want %s", owner, want)
		}
		if c.Brand != "joyent" || !c.Autoboot || len(c.Attrs) != 10 || len(c.Nets) != 1 || c.Nets[0].Physical != "net0" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestParseConfigTakesWhatTheDTDLeavesOut(t *testing.T) {
	owner, c, err := ParseConfig([]byte(`<zone name="z" zonepath="/zone/z" debugid="4"><rctl name="zone.cpu-cap"/></zone>`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Config{Zonepath: "/zone/z", IPType: "shared"}, c); owner != "z" || diff != "" {
		t.Errorf("zone %s: %s", owner, diff)
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"an empty file":           "",
		"a file that is cut off":  `<zone name="z" zonepath="/zone/z">`,
		"another document":        `<service_bundle type="profile" name="z"/>`,
		"a zone without a name":   `<zone zonepath="/zone/z"/>`,
		"a zone without a path":   `<zone name="z"/>`,
		"an autoboot of no sense": `<zone name="z" zonepath="/zone/z" autoboot="maybe"/>`,
	} {
		if _, c, err := ParseConfig([]byte(in)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: got %+v, %v", name, c, err)
		}
	}
}

func TestParseIndex(t *testing.T) {
	in := "# a comment\n\nglobal:installed:/\n" +
		"z1:configured:/zones/z1:\n" +
		`z2:installed:"/zones/z:2":54f1cc77-68f1-42ab-acac-5c4f64f5d6e0` + "\n"
	want := []Entry{
		{Name: "global", State: Installed, Path: "/"},
		{Name: "z1", State: Configured, Path: "/zones/z1"},
		{Name: "z2", State: Installed, Path: "/zones/z:2", UUID: "54f1cc77-68f1-42ab-acac-5c4f64f5d6e0"},
	}
	got, err := ParseIndex([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"z1", "z1:installed", ":installed:/z", `z1:installed:"/z`, `z1:installed:"/z"x`, "z1:installed:/z:a:b"} {
		if entries, err := ParseIndex([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: got %v, %v", bad, entries, err)
		}
	}
}

// line prints a zone as zone_print of zoneadm.c does.
func line(z Zone) string {
	id, ip := "-", "shared"
	if z.ID != nil {
		id = fmt.Sprint(*z.ID)
	}
	if z.IPType == "exclusive" {
		ip = "excl"
	}
	return strings.Join([]string{id, z.Name, string(z.State), strings.ReplaceAll(z.Path, ":", `\:`), z.UUID, z.Brand, ip}, ":") + "\n"
}

func TestParseListReadsBackWhatIsPrinted(t *testing.T) {
	zones := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Zone {
		z := Zone{
			Name:   rapid.StringMatching(`[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}`).Draw(t, "name"),
			State:  State(rapid.SampledFrom([]string{"configured", "incomplete", "installed", "ready", "running", "shutting_down"}).Draw(t, "state")),
			Path:   rapid.StringMatching(`/([a-z0-9: ]{1,8}/){0,3}[a-z0-9:]{1,8}`).Draw(t, "path"),
			UUID:   rapid.StringMatching(`([0-9a-f-]{36})?`).Draw(t, "uuid"),
			Brand:  rapid.SampledFrom([]string{"", "sparse", "omicron1"}).Draw(t, "brand"),
			IPType: rapid.SampledFrom([]string{"shared", "exclusive"}).Draw(t, "ip"),
		}
		if rapid.Bool().Draw(t, "in the kernel") {
			z.ID = number(rapid.IntRange(0, 9999).Draw(t, "id"))
		}
		return z
	}), 1, 5)
	rapid.Check(t, func(t *rapid.T) {
		want := zones.Draw(t, "zones")
		var out strings.Builder
		for _, z := range want {
			out.WriteString(line(z))
		}
		got, err := ParseList([]byte(out.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzParseList(f *testing.F) {
	f.Add([]byte("0:global:running:/::ipkg:shared:\n-:a:configured:/z\\:a::sparse:excl\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		zones, err := ParseList(in)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if len(zones) != strings.Count(string(in), "\n") {
			t.Fatalf("%d zones of %q", len(zones), in)
		}
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`<zone name="z" zonepath="/z" autoboot="false" ip-type="exclusive"><network physical="net0"/></zone>`))
	f.Fuzz(func(t *testing.T, in []byte) {
		owner, c, err := ParseConfig(in)
		if err == nil && (owner == "" || c.Zonepath == "" || c.IPType == "") {
			t.Fatalf("%q gives %q, %+v", in, owner, c)
		}
		if err != nil && !errors.Is(err, ErrSyntax) {
			t.Fatalf("an error of another kind: %v", err)
		}
	})
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte("global:installed:/\nz:configured:\"/a:b\":\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		entries, err := ParseIndex(in)
		if err != nil && !errors.Is(err, ErrSyntax) {
			t.Fatalf("an error of another kind: %v", err)
		}
		for _, e := range entries {
			if e.Name == "" || e.Path == "" {
				t.Fatalf("%q gives %+v", in, e)
			}
		}
	})
}
