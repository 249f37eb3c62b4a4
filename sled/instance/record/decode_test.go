package record

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var sameAddresses = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}

func drawVNIC(t *rapid.T) VNIC {
	text := rapid.StringMatching(`[a-z0-9_:]{0,12}`)
	return VNIC{Name: text.Draw(t, "name"), Over: text.Draw(t, "over"), MAC: text.Draw(t, "mac"), VLAN: rapid.IntRange(0, 4094).Draw(t, "vlan")}
}

func drawIncarnation(t *rapid.T) Incarnation {
	text := rapid.StringMatching(`[a-zA-Z0-9_/-]{0,20}`)
	return Incarnation{
		PropolisID: text.Draw(t, "propolis"), Zone: text.Draw(t, "zone"), Zonepath: text.Draw(t, "zonepath"), Dataset: text.Draw(t, "dataset"),
		Base: text.Draw(t, "base"), BaseDataset: text.Draw(t, "base dataset"), Brand: text.Draw(t, "brand"), Control: drawVNIC(t),
		Guests: drawList(t, drawVNIC), Boot: text.Draw(t, "boot"), Ensured: rapid.Bool().Draw(t, "ensured"),
		Foreign: rapid.Bool().Draw(t, "foreign"), Object: text.Draw(t, "object"), Service: text.Draw(t, "service"),
	}
}

// drawList also draws no list and an empty one, which are written differently.
func drawList[T any](t *rapid.T, one func(*rapid.T) T) []T {
	if rapid.Bool().Draw(t, "nil") {
		return nil
	}
	items := []T{}
	for range rapid.IntRange(0, 3).Draw(t, "length") {
		items = append(items, one(t))
	}
	return items
}

func drawRecord(t *rapid.T) Record {
	text := rapid.StringMatching(`[a-z0-9/.-]{0,36}`)
	r := Record{
		ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Wanted: text.Draw(t, "wanted"), Control: text.Draw(t, "control"), Protected: rapid.Bool().Draw(t, "protected"),
		Keeper: Keeper(text.Draw(t, "keeper")), KeeperGeneration: rapid.Uint64().Draw(t, "keeper's generation"),
		Generation: rapid.Uint64().Draw(t, "generation"), Updated: time.Unix(0, rapid.Int64().Draw(t, "updated")).UTC(),
		Began: time.Unix(0, rapid.Int64().Draw(t, "began")).UTC(),
		Spec: Spec{
			CPUs: rapid.IntRange(0, 64).Draw(t, "cpus"), Memory: rapid.Uint64().Draw(t, "memory"), Pool: text.Draw(t, "pool"),
			CPUCap: CPUCap(rapid.IntRange(0, int(MaxCPUCap)).Draw(t, "cap")), StartOrder: StartOrder(rapid.IntRange(0, MaxStartOrder+1).Draw(t, "order")),
			Disks: drawList(t, func(t *rapid.T) Disk {
				return Disk{Path: text.Draw(t, "path"), ReadOnly: rapid.Bool().Draw(t, "read-only")}
			}),
			NICs: drawList(t, func(t *rapid.T) NIC {
				return NIC{Over: text.Draw(t, "over"), MAC: text.Draw(t, "mac"), VLAN: rapid.IntRange(0, 4094).Draw(t, "vlan")}
			}),
			Address: rapid.SampledFrom([]Address{
				{Mode: DHCP}, {Mode: Addrconf}, {Mode: Static, Prefix: netip.MustParsePrefix("10.77.0.5/16")},
				{Mode: Static, Prefix: netip.MustParsePrefix("fd00:1::5/64"), Gateway: netip.MustParseAddr("fd00:1::1")},
			}).Draw(t, "address"),
		},
	}
	if rapid.Bool().Draw(t, "cloud-init") {
		r.Spec.CloudInit = &CloudInit{
			Hostname: text.Draw(t, "hostname"), UserData: text.Draw(t, "user-data"), NetworkConfig: text.Draw(t, "network-config"), Volume: text.Draw(t, "volume"),
			SSHKeys: drawList(t, func(t *rapid.T) string { return text.Draw(t, "key") }),
		}
	}
	if rapid.Bool().Draw(t, "up") {
		incarnation := drawIncarnation(t)
		r.Incarnation = &incarnation
	}
	if rapid.Bool().Draw(t, "leaving") {
		r.Leaving = []Incarnation{drawIncarnation(t)}
	}
	if rapid.Bool().Draw(t, "the control plane's") {
		r.VMM = &VMM{PropolisID: text.Draw(t, "vm"), Boot: text.Draw(t, "boot"), SiloID: text.Draw(t, "silo"), ProjectID: text.Draw(t, "project")}
		if rapid.Bool().Draw(t, "arrives") {
			r.VMM.Migration = &Migration{ID: text.Draw(t, "migration"), Source: text.Draw(t, "source")}
		}
	}
	if rapid.Bool().Draw(t, "ending") {
		r.Ending = &Ending{PropolisID: text.Draw(t, "vm"), State: text.Draw(t, "state"), Reason: text.Draw(t, "reason")}
	}
	return r
}

func marshalled(t interface{ Fatal(...any) }, r Record) []byte {
	value, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTheQuickWayReadsARecordAsItIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := marshalled(t, drawRecord(t))
		c := cursor{json: string(value)}
		got := c.record()
		if !c.done() {
			t.Fatalf("not read: %s", value)
		}
		var want Record
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, sameAddresses); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Whatever is wrong or merely different with a record, decode says what
// encoding/json says.
func TestDecodeIsNeverAnotherThanThatOfEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := marshalled(t, drawRecord(t))
		at := rapid.IntRange(0, len(value)-1).Draw(t, "at")
		value[at] = rapid.SampledFrom([]byte("{}[],:\"\\0129.-+ eabntu\x00\xff")).Draw(t, "byte")
		var want Record
		wantErr := json.Unmarshal(value, &want)
		got, err := Decode(value)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%s\ngot %v, want %v", value, err, wantErr)
		}
		if diff := cmp.Diff(want, got, sameAddresses); diff != "" {
			t.Fatalf("%s\n%s", value, diff)
		}
	})
}

func TestDecodeReadsWhatTheQuickWayDoesNot(t *testing.T) {
	for name, value := range map[string]string{
		"a key of a later sledctl": `{"id":"1","name":"web1","later":[{"a":1}]}`,
		"an escaped character":     `{"id":"1","name":"web\u0031"}`,
		"blanks":                   ` { "id" : "1" , "name" : "web1" } `,
		"a key in another case":    `{"ID":"1","Name":"web1"}`,
		"no run":                   `{"id":"1","name":"web1","run":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode([]byte(value))
			if err != nil || got.ID != "1" || got.Name != "web1" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	value := marshalled(b, Record{
		ID: "0b9c0dd4-8e2f-5d05-8a40-0b5c2a1b7d2e", Name: "web1", Wanted: WantedRunning, Control: "02:08:20:01:02:03", Updated: time.Now(),
		Spec: Spec{
			CPUs: 4, Memory: 8 << 30, Pool: "rpool", NICs: []NIC{{Over: "net0", MAC: "02:08:20:00:00:01"}},
			Address: Address{Mode: Static, Prefix: netip.MustParsePrefix("10.77.0.5/16")},
		},
		Incarnation: &Incarnation{PropolisID: "0b9c0dd4-8e2f-5d05-8a40-0b5c2a1b7d2e", Zone: "propolis_instance_0b9c", Guests: []VNIC{{Name: "vopte0", Over: "net0"}}},
	})
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			if _, err := Decode(value); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		for b.Loop() {
			var r Record
			if err := json.Unmarshal(value, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// An older sledctl reads a record with a field of a newer one, and does not keep the field.
func TestAFieldOfANewerVersionIsIgnored(t *testing.T) {
	r, err := Decode([]byte(`{"id":"5d4ef0ef-2c6f-4e9c-9c4e-3c5f0b7f5f11","name":"web1","colour":{"of":"the case"}}`))
	if err != nil || r.Name != "web1" {
		t.Fatalf("%+v, %v", r, err)
	}
	if data, err := json.Marshal(r); err != nil || strings.Contains(string(data), "colour") {
		t.Errorf("%s, %v", data, err)
	}
}
