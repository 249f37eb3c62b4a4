package spec

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/test/refdata"
)

// schema is a schema of the published document of a version.
func schema(t *testing.T, v Version, name string) *openapi3.Schema {
	t.Helper()
	return dropshottest.Published(t, "propolis-server-"+v.String()+"*.json").Components.Schemas[name].Value
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

// everything is a spec with each component there is, and each optional part.
func everything() InstanceSpec {
	s := sound()
	s.SMBIOS = &SMBIOS{Manufacturer: "Acme"}
	s.Board.Hypervisor = &Hypervisor{HypervisorHyperV, &HyperV{[]string{ReferenceTSC}}}
	s.Components["npu"] = SoftNPUPCIPort{PCIPath{0, 9, 0}}
	s.Components["npu-p9"] = SoftNPUP9{PCIPath{0, 10, 0}}
	s.Components["port"] = SoftNPUPort{"port", "port:backend"}
	s.Components["port:backend"] = DLPINetwork{"tfport0"}
	s.Components["src"] = P9FS{"/src", "src", 8192, PCIPath{0, 11, 0}}
	s.Components["fails"] = MigrationFailureInjector{1, 2}
	return s
}

// Each version's requests are what the document of that version wants; what it
// cannot express is not sent.
func TestRequestsMatchThePublishedDocuments(t *testing.T) {
	for _, v := range Versions() {
		schema := schema(t, v, "InstanceEnsureRequest")
		request := func(s InstanceSpec) {
			body, err := EnsureRequest{Properties: built(t, bare()).Properties, Init: Init{Spec: &s}}.Encode(v)
			if err != nil {
				t.Errorf("%s: %v", v, err)
				return
			}
			conforms(t, schema, body)
		}
		for _, d := range []Description{web1(), full(), bare()} {
			request(*built(t, d).Init.Spec)
		}
		s := everything()
		if v < 2 {
			s.SMBIOS = nil
		}
		if v < 3 {
			delete(s.Components, "vsock")
		}
		request(s)
	}
}

// Of each version's document, the client knows each component: none is left to
// be read as an unknown one.
func TestEachComponentOfTheDocumentsIsKnown(t *testing.T) {
	for _, v := range Versions() {
		name := "Component"
		if v < 3 {
			name = "ComponentV0"
		}
		var tags []string
		for _, one := range schema(t, v, name).OneOf {
			tags = append(tags, one.Value.Properties["type"].Value.Enum[0].(string))
		}
		if len(tags) < 10 {
			t.Fatalf("%s: %v", v, tags)
		}
		for _, tag := range tags {
			if !slices.ContainsFunc(kinds(), func(c Component) bool { return c.Type() == tag }) {
				t.Errorf("%s: %s", v, tag)
			}
		}
	}
}

// The samples, which are of version 5, are understood whole: nothing is lost
// between reading and writing.
func TestSamplesSurvive(t *testing.T) {
	s := schema(t, 5, "InstanceEnsureRequest")
	for _, name := range []string{"ensure-spec-minimal.json", "ensure-spec-full.json", "ensure-migration-target.json"} {
		sample := refdata.File(t, "samples/propolis/"+name)
		var r EnsureRequest
		if err := json.Unmarshal(sample, &r); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		data, err := r.Encode(5)
		if err != nil {
			t.Fatal(err)
		}
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
		if err := json.Unmarshal(refdata.File(t, "samples/propolis/"+name), &r); err != nil {
			t.Fatal(err)
		}
		err := r.Init.Spec.Check(Server{})
		if invalid, _ := err.(*InvalidError); (err == nil) != (problems == 0) || invalid != nil && len(invalid.Problems) != problems {
			t.Errorf("%s: %v", name, err)
		}
	}
}
