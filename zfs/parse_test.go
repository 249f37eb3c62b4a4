package zfs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines are lines of zfs get for one dataset: "property value source".
func lines(name string, rest ...string) string {
	var b strings.Builder
	for _, r := range rest {
		b.WriteString(name + "\t" + strings.ReplaceAll(r, "|", "\t") + "\n")
	}
	return b.String()
}

func TestParseDatasets(t *testing.T) {
	properties := append(native(), "sledctl:instance", "sledctl:base")
	out := lines("tank/a",
		"type|filesystem|-", "guid|16318927390126112711|-", "mountpoint|/zone/a b|inherited from tank", "mounted|yes|-", "origin|tank/base@1|-",
		"used|98304|-", "available|1099511627776|-", "quota|0|default", "reservation|512|local", "compression|lz4|inherited from tank",
		"canmount|on|default", "sledctl:instance|web 1|local", "sledctl:base|-|-",
	) + lines("tank/a@s",
		"type|snapshot|-", "guid|1|-", "mountpoint|-|-", "mounted|-|-", "origin|-|-", "used|0|-", "available|-|-", "quota|-|-",
		"reservation|-|-", "compression|-|-", "canmount|-|-", "sledctl:instance|web 1|inherited from tank/a", "sledctl:base||local",
	) + lines("tank/a#b",
		"type|bookmark|-", "guid|1|-", "mountpoint|-|-", "mounted|-|-", "origin|-|-", "used|-|-", "available|-|-", "quota|-|-",
		"reservation|-|-", "compression|-|-", "canmount|-|-", "sledctl:instance|-|-", "sledctl:base|-|-",
	) + lines("tank/v",
		"type|volume|-", "guid|2|-", "mountpoint|-|-", "mounted|-|-", "origin|-|-", "used|8|-", "available|9|-", "quota|-|-",
		"reservation|none|default", "compression|off|default", "canmount|-|-", "sledctl:instance|-|-", "sledctl:base|-|-",
	)
	got, err := ParseDatasets([]byte(out), properties)
	if err != nil {
		t.Fatal(err)
	}
	want := []Dataset{
		{
			Name: "tank/a", Type: TypeFilesystem, GUID: "16318927390126112711", Mountpoint: "/zone/a b", Mounted: true, Origin: "tank/base@1",
			Used: 98304, Available: 1 << 40, Reservation: 512, Compression: "lz4", Canmount: "on",
			User: map[string]Value{"sledctl:instance": {"web 1", Local}},
		},
		{
			Name: "tank/a@s", Type: TypeSnapshot, GUID: "1",
			User: map[string]Value{"sledctl:instance": {"web 1", "inherited from tank/a"}, "sledctl:base": {"", Local}},
		},
		{Name: "tank/v", Type: TypeVolume, GUID: "2", Used: 8, Available: 9, Compression: "off"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseDatasetsTakesAnyOrder(t *testing.T) {
	out := "b\tused\t1\t-\na\tguid\t7\t-\na\tunasked\tx\t-\na\tused\t2\t-\nb\tguid\t8\t-\nb\tused\t3\t-\n"
	got, err := ParseDatasets([]byte(out), []string{"guid", "used"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Dataset{{Name: "b", GUID: "8", Used: 3}, {Name: "a", GUID: "7", Used: 2}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseDatasetsReadsHowTheyAreEncrypted(t *testing.T) {
	out := lines("tank/crypt", "refquota|none|default", "volsize|-|-", "zoned|off|default", "encryption|aes-256-gcm|-", "keyformat|raw|-",
		"keystatus|available|-", "encryptionroot|tank/crypt|-",
	) + lines("tank/crypt/data", "refquota|107374182400|local", "volsize|-|-", "zoned|on|local", "encryption|aes-256-gcm|-",
		"keyformat|none|default", "keystatus|unavailable|-", "encryptionroot|tank/crypt|-",
	) + lines("tank/v", "refquota|-|-", "volsize|8192|local", "zoned|-|-", "encryption|off|default", "keyformat|none|default", "keystatus|-|-",
		"encryptionroot|-|-",
	)
	got, err := ParseDatasets([]byte(out), Extended())
	if err != nil {
		t.Fatal(err)
	}
	want := []Dataset{
		{Name: "tank/crypt", Encryption: "aes-256-gcm", Keyformat: "raw", Keystatus: KeyAvailable, EncryptionRoot: "tank/crypt"},
		{
			Name: "tank/crypt/data", Refquota: 100 << 30, Zoned: true,
			Encryption: "aes-256-gcm", Keyformat: "none", Keystatus: KeyUnavailable, EncryptionRoot: "tank/crypt",
		},
		{Name: "tank/v", Volsize: 8192, Encryption: "off", Keyformat: "none"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err := ParseDatasets([]byte(strings.Replace(out, KeyUnavailable, "lost", 1)), Extended()); !errors.Is(err, ErrSyntax) {
		t.Errorf("a third state of a key: %v, %v", got, err)
	}
}

func TestParseDatasetsOfNothing(t *testing.T) {
	if got, err := ParseDatasets(nil, native()); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestParseDatasetsRefuses(t *testing.T) {
	for name, c := range map[string]struct{ out, says string }{
		"an end without a newline":    {"a\tused\t1\t-", "cut off"},
		"a missing property":          {"a\tguid\t1\t-\n", "a has no line for type"},
		"a property of another only":  {lines("a", "type|volume|-", "mounted|-|-", "guid|1|-") + lines("b", "used|1|-"), "a has no line for used"},
		"three columns":               {"a\tused\t1\n", "3 columns"},
		"five columns":                {"a\tused\t1\t2\t-\n", "5 columns"},
		"an empty line":               {"\n", "1 columns"},
		"blanks for tabs":             {"a  used  1  -\n", "1 columns"},
		"no name":                     {"\tused\t1\t-\n", "empty"},
		"no source":                   {"a\tused\t1\t\n", "empty"},
		"a size with a unit":          {"a\tused\t1.5K\t-\n", `"1.5K" is no number`},
		"a negative size":             {"a\tused\t-1\t-\n", `"-1" is no number`},
		"a size beyond 64 bits":       {"a\tused\t18446744073709551616\t-\n", "is no number"},
		"an unknown GUID":             {"a\tguid\t-\t-\n", `"-" is no number`},
		"a type that does not exist":  {"a\ttype\tshare\t-\n", `"share" is none of`},
		"a third truth":               {"a\tmounted\tmaybe\t-\n", `"maybe" is none of`},
		"an answer in another tongue": {"NAME\tPROPERTY\tVALUE\tSOURCE\n", "has no line"},
	} {
		got, err := ParseDatasets([]byte(c.out), []string{"type", "mounted", "guid", "used"})
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzParseDatasets(f *testing.F) {
	f.Add([]byte("a\tguid\t1\t-\na\tused\t2\t-\na\tx:y\tz\tlocal\n"))
	f.Add([]byte("a\tguid\t1\t-\na\tused\t2\t-\nb\tused"))
	f.Add([]byte("a\tused\t-\t-\na\tused\t2\t-\n\n"))
	properties := []string{"guid", "used", "x:y"}
	f.Fuzz(func(t *testing.T, out []byte) {
		got, err := ParseDatasets(out, properties)
		if err != nil {
			if !errors.Is(err, ErrSyntax) || got != nil {
				t.Errorf("%v, %v", got, err)
			}
			return
		}
		for _, d := range got {
			if d.Name == "" || d.GUID == "" {
				t.Errorf("%+v of %q", d, out)
			}
			for _, p := range properties {
				if !strings.Contains(string(out), d.Name+"\t"+p+"\t") {
					t.Errorf("%s has no %s in %q", d.Name, p, out)
				}
			}
		}
	})
}

// large is the listing of n datasets, as an old sled has them: a clone, its
// snapshot and a volume for each instance.
func large(n int) ([]byte, []string) {
	properties := append(native(), "sledctl:instance", "sledctl:base")
	var b strings.Builder
	for i := range n {
		name := fmt.Sprintf("oxp_8a1f2c3d-0000-4000-8000-000000000001/crypt/zone/oxz_propolis-server_%08d", i/3)
		kind, mountpoint, mounted := TypeFilesystem, "/pool/ext/8a1f2c3d/crypt/zone/x", "yes"
		switch i % 3 {
		case 1:
			name, kind, mountpoint, mounted = name+"@s", TypeSnapshot, "-", "-"
		case 2:
			name, kind, mountpoint, mounted = name+"/disk", TypeVolume, "-", "-"
		}
		b.WriteString(lines(name, "type|"+kind+"|-", fmt.Sprintf("guid|%d|-", i), "mountpoint|"+mountpoint+"|inherited from oxp_1",
			"mounted|"+mounted+"|-", "origin|-|-", "used|98304|-", "available|1099511627776|-", "quota|0|default", "reservation|0|default",
			"compression|lz4|inherited from oxp_1", "canmount|on|default", "sledctl:instance|54f1cc77-68f1-42ab-acac-5c4f64f5d6e0|local",
			"sledctl:base|-|-"))
	}
	return []byte(b.String()), properties
}

func TestALineOfALargeListingAllocatesNothing(t *testing.T) {
	const n = 600
	out, properties := large(n)
	perRun := testing.AllocsPerRun(5, func() {
		if got, err := ParseDatasets(out, properties); err != nil || len(got) != n {
			t.Fatalf("%d datasets, %v", len(got), err)
		}
	})
	// What a dataset costs: its map of user properties and its share of the
	// tables; 13 lines each would be far above.
	if perRun > 4*n {
		t.Errorf("%.0f allocations for %d datasets", perRun, n)
	}
}

func BenchmarkParse10000Datasets(b *testing.B) {
	out, properties := large(10000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseDatasets(out, properties); err != nil {
			b.Fatal(err)
		}
	}
}
