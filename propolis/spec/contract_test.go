package spec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
)

// shared reads a file of the published documents and samples.
func shared(t *testing.T, name ...string) []byte {
	t.Helper()
	file := filepath.Join(append([]string{"..", "..", "..", "shared"}, name...)...)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Skip(filepath.Join("shared", filepath.Join(name[:len(name)-1]...)) + " is not here")
	}
	return data
}

// schema is a schema of the published document. A component's key is said to
// be a UUID or a string, of which each UUID is both: that is repaired.
func schema(t *testing.T, name string) *openapi3.Schema {
	t.Helper()
	var raw map[string]any
	if err := json.Unmarshal(shared(t, "openapi", "propolis-server-5.0.0.json"), &raw); err != nil {
		t.Fatal(err)
	}
	raw["components"].(map[string]any)["schemas"].(map[string]any)["SpecKey"] = map[string]any{"type": "string"}
	data, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	return doc.Components.Schemas[name].Value
}

func conforms(t *testing.T, s *openapi3.Schema, data []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if err := s.VisitJSON(v); err != nil {
		t.Errorf("%s: %v", data, err)
	}
}

func TestRequestsMatchThePublishedDocument(t *testing.T) {
	s := schema(t, "InstanceEnsureRequest")
	for _, d := range []Description{web1(), full(), bare()} {
		conforms(t, s, encoded(t, built(t, d)))
	}
	everything := sound()
	everything.SMBIOS = &SMBIOS{Manufacturer: "Acme"}
	everything.Board.Hypervisor = &Hypervisor{HypervisorHyperV, &HyperV{[]string{"reference_tsc"}}}
	conforms(t, s, encoded(t, EnsureRequest{Properties: built(t, bare()).Properties, Init: Init{Spec: &everything}}))
}

// The samples are understood whole: nothing is lost between reading and
// writing.
func TestSamplesSurvive(t *testing.T) {
	s := schema(t, "InstanceEnsureRequest")
	for _, name := range []string{"ensure-spec-minimal.json", "ensure-spec-full.json", "ensure-migration-target.json"} {
		sample := shared(t, "samples", "propolis", name)
		var r EnsureRequest
		if err := json.Unmarshal(sample, &r); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		data := encoded(t, r)
		conforms(t, s, data)
		if diff := cmp.Diff(withoutNulls(t, sample), withoutNulls(t, data)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func withoutNulls(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return strip(v)
}

func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
			} else {
				v[key] = strip(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
	}
	return v
}

// The minimal sample is a machine that runs, so Check lets it pass; the full
// one is only meant to be read, and its blob is three bytes long.
func TestCheckOfTheSamples(t *testing.T) {
	for name, problems := range map[string]int{"ensure-spec-minimal.json": 0, "ensure-spec-full.json": 1} {
		var r EnsureRequest
		if err := json.Unmarshal(shared(t, "samples", "propolis", name), &r); err != nil {
			t.Fatal(err)
		}
		err := r.Init.Spec.Check()
		if invalid, _ := err.(*InvalidError); (err == nil) != (problems == 0) || invalid != nil && len(invalid.Problems) != problems {
			t.Errorf("%s: %v", name, err)
		}
	}
}
