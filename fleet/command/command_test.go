package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/sledctl/sledctl/host"
)

func run(args ...string) (string, error) {
	var out bytes.Buffer
	root := New("devel", func(string) (host.Host, error) { return nil, errors.New("no host in this test") })
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

func TestCRDsAreThoseOfTheTypes(t *testing.T) {
	out, err := run("crds")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, text := range strings.Split(out, "\n---\n") {
		var crd apiextensions.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(text), &crd); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		kinds[crd.Spec.Names.Kind] = true
		for _, v := range crd.Spec.Versions {
			if v.Subresources == nil || v.Subresources.Status == nil || len(v.AdditionalPrinterColumns) < 4 {
				t.Errorf("%s has no status of its own, or no columns", crd.Name)
			}
			if v.Schema.OpenAPIV3Schema.Properties["spec"].Type != "object" {
				t.Errorf("%s has no schema", crd.Name)
			}
		}
	}
	for _, kind := range []string{"VirtualMachine", "VirtualMachineMigration", "SledMaintenance", "SledBMC"} {
		if !kinds[kind] {
			t.Errorf("no definition of %s in\n%.300s", kind, out)
		}
	}
}

func TestAWrongCommandLineIsOne(t *testing.T) {
	for _, args := range [][]string{{"crd"}, {"crds", "now"}, {"crds", "--now"}, {"node"}, {"node", "--name", "sled1", "--agent", "sled1"}, {"guard"},
		{"guard", "--file", "lease", "--host", "x"}, {"controller", "--fence", "0s"}, {"controller", "--settle", "0s"},
		{"controller", "--power-after", "1s"}} {
		if _, err := run(args...); err == nil || ExitCode(err) != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
	if ExitCode(errors.New("no")) != 1 {
		t.Error("what fails is not exit 1")
	}
}
