package spec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestASpecSurvivesTheWire(t *testing.T) {
	sent := sound()
	sent.SMBIOS = &SMBIOS{"Acme", "AcmeVM", "SN-1", 1 << 63}
	sent.Board.Hypervisor = &Hypervisor{HypervisorHyperV, &HyperV{[]string{"reference_tsc"}}}
	sent.Components["x"] = Other{"newer_thing", json.RawMessage(`{"pci_path":{"bus":0,"device":9,"function":0}}`)}
	data, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got InstanceSpec
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Error(diff)
	}
}

func TestAMigrationSurvivesTheWire(t *testing.T) {
	sent := EnsureRequest{Properties: Properties{ID: id}, Init: Init{Migration: &MigrationTarget{
		ID: id, Source: "[fd00::1]:12400", Replace: map[string]Replacement{
			"net0-backend": {VirtioNetwork{"vnic1"}}, "disk0-backend": {CrucibleStorage{Request: "{}"}},
		},
	}}}
	data := encoded(t, sent)
	var got EnsureRequest
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Error(diff)
	}
	for _, tag := range []string{`"method":"MigrationTarget"`, `"component":"VirtioNetworkBackend"`, `"component":"CrucibleStorageBackend"`} {
		if !strings.Contains(string(data), tag) {
			t.Errorf("no %s in %s", tag, data)
		}
	}
}

func TestWhatCannotBeSent(t *testing.T) {
	one := InstanceSpec{}
	for name, r := range map[string]EnsureRequest{
		"no beginning":        {},
		"two beginnings":      {Init: Init{Spec: &one, Migration: &MigrationTarget{}}},
		"a component of none": {Init: Init{Spec: &InstanceSpec{Components: Components{"x": nil}}}},
		"another replacement": {Init: Init{Migration: &MigrationTarget{Replace: map[string]Replacement{"x": {Pvpanic{}}}}}},
	} {
		if body, err := r.Encode(Latest); err == nil {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestWhatIsNotRead(t *testing.T) {
	for name, text := range map[string]string{
		"a component without a type": `{"components":{"x":{"component":{}}}}`,
		"a component without a body": `{"components":{"x":{"type":"qemu_pvpanic"}}}`,
		"a null component":           `{"components":{"x":{"type":"qemu_pvpanic","component":null}}}`,
		"an unknown one of nothing":  `{"components":{"x":{"type":"new"}}}`,
		"null components":            `{"components":null}`,
		"a short serial number":      `{"components":{"x":{"type":"nvme_disk","component":{"serial_number":[1]}}}}`,
		"a serial number in base64":  `{"components":{"x":{"type":"nvme_disk","component":{"serial_number":"AAAAAAAAAAAAAAAAAAAAAAAAAAA="}}}}`,
		"a serial number of words": `{"components":{"x":{"type":"nvme_disk","component":
			{"serial_number":[256,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}}}`,
		"a bus of 256": `{"components":{"x":{"type":"virtio_disk","component":{"pci_path":{"bus":256,"device":0,"function":0}}}}}`,
	} {
		var s InstanceSpec
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestKeysAreWrittenAsTheServerDoes(t *testing.T) {
	const canonical = "7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"
	for in, want := range map[string]string{
		canonical:                              canonical,
		strings.ToUpper(canonical):             canonical,
		"7b1c2f3e0d4a4a559b0e5f3d2c1b0a99":     canonical,
		"{" + canonical + "}":                  canonical,
		"urn:uuid:" + canonical:                canonical,
		"(" + canonical + ")":                  "(" + canonical + ")",
		"URN:UUID:" + canonical:                "URN:UUID:" + canonical,
		"disk0":                                "disk0",
		"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a9x": "7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a9x",
		"":                                     "",
	} {
		if got := Key(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

// FuzzInstanceSpec: whatever a server sends is refused or understood, and what
// is understood is the same when it is sent on.
func FuzzInstanceSpec(f *testing.F) {
	for _, s := range []InstanceSpec{sound(), {Components: Components{}}} {
		data, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"board":null,"components":{"x":{"type":"y","component":[1e400]}},"smbios":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s InstanceSpec
		if json.Unmarshal(data, &s) != nil {
			return
		}
		_ = s.Check(Server{})
		again, err := json.Marshal(s)
		if err != nil {
			if s.Components == nil {
				return
			}
			t.Fatal(err)
		}
		var read InstanceSpec
		if err := json.Unmarshal(again, &read); err != nil && s.Components != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if d := Compare(s, read); len(d) > 0 {
			t.Errorf("%s is not %s: %v", data, again, d)
		}
	})
}
