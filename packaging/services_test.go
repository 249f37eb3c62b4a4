package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// dtd is where illumos keeps the grammar of manifests; SLEDCTL_DTD names it elsewhere.
const dtd = "/usr/share/lib/xml/dtd/service_bundle.dtd.1"

// manifests are all of SMF's in both packages, by name.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for name, data := range pack(t, example()) {
		if !strings.HasSuffix(name, ".tar.gz") {
			continue
		}
		_, contents := unpack(t, data)
		for name, data := range contents {
			if strings.HasSuffix(name, ".xml") {
				all[name] = data
			}
		}
	}
	if len(all) != 5 {
		t.Fatalf("%d manifests", len(all))
	}
	return all
}

// A packaged service is not the administrator's: nothing of its manifest says site/. It
// finds the program where the package has put it.
func TestPackagedServicesAreNotTheAdministrators(t *testing.T) {
	for name, data := range manifests(t) {
		if bytes.Contains(data, []byte("site/")) || !bytes.Contains(data, []byte(`<service name="ooce/sledctl/`)) {
			t.Errorf("%s:\n%s", name, data)
		}
		want := tarballPath
		if strings.Contains(name, "/proto/") {
			want = ipsPath
		}
		if !strings.Contains(name, "restore") && !bytes.Contains(data, []byte(":"+want+"\"/>")) {
			t.Errorf("%s does not look in %s", name, want)
		}
	}
	if _, err := service("sledctl.xml", []byte("<service/>"), ipsPath); err == nil {
		t.Error("a manifest of another form is no error")
	}
}

// The manifests are valid by the DTD of illumos, where that and xmllint are.
func TestManifestsAreValid(t *testing.T) {
	grammar := os.Getenv("SLEDCTL_DTD")
	if grammar == "" {
		grammar = dtd
	}
	if _, err := os.Stat(grammar); err != nil {
		t.Skip("no DTD of service bundles: SLEDCTL_DTD names usr/src/cmd/svc/dtd/service_bundle.dtd.1 of illumos-gate: ", err)
	}
	for name, data := range manifests(t) {
		lint(t, name, data, "xmllint", "--noout", "--nonet", "--dtdvalid", grammar)
	}
}

// Each script is one of POSIX' shell, and shellcheck finds nothing in it but lists that it
// takes for conditions.
func TestScriptsAreClean(t *testing.T) {
	for _, name := range []string{"install.sh", "publish.sh", "sledctl-restore"} {
		t.Run(name, func(t *testing.T) {
			data := shipped(name, 0o555).data
			lint(t, name, data, "sh", "-n")
			lint(t, name, data, "shellcheck", "-s", "sh", "-e", "SC2015")
		})
	}
}

// lint runs a checker on a file, or skips the test where it is not installed.
func lint(t *testing.T, name string, data []byte, checker ...string) {
	t.Helper()
	if _, err := exec.LookPath(checker[0]); err != nil {
		t.Skip(checker[0], " is not installed: apt-get install shellcheck libxml2-utils")
	}
	file := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(checker[0], append(checker[1:], file)...).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", checker[0], name, err, out)
	}
}

// The bill of materials has a component for each module that the program was linked with,
// the replacement where there is one, and nothing that changes from build to build.
func TestTheBillOfMaterialsHasEachModule(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.org/x", Version: "(devel)"},
		Deps: []*debug.Module{{Path: "a.org/a", Version: "v1.0.0"}, {Path: "b.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "c.org/c", Version: "v2.0.0"}}},
	}
	data, err := billOfMaterials(info, "v0.1.0", example().at)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		BOMFormat, SpecVersion string
		Metadata               struct{ Timestamp string }
		Components             []component
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got.Components {
		names = append(names, c.PURL)
	}
	if want := "pkg:golang/std@1.26.8 pkg:golang/a.org/a@v1.0.0 pkg:golang/c.org/c@v2.0.0"; strings.Join(names, " ") != want || got.BOMFormat != "CycloneDX" || got.Metadata.Timestamp != "2026-11-27T00:18:14Z" {
		t.Errorf("%s", data)
	}
}
