package main

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// action is one of a package's manifest.
type action struct {
	name, payload string
	attributes    map[string]string
}

// actionForms are, for each action, whether it has a payload, which attributes it must
// have, and which it may have (pkg(7), "Actions").
func actionForms() map[string][3]string {
	return map[string][3]string{
		"set":     {"", "name value", ""},
		"file":    {"payload", "path owner group mode", "preserve restart_fmri"},
		"dir":     {"", "path owner group mode", ""},
		"link":    {"", "path target", ""},
		"license": {"payload", "license", ""},
		"depend":  {"", "type fmri", ""},
	}
}

// parseManifest reads a manifest strictly: one action a line, NAME [PAYLOAD] KEY=VALUE…,
// where a value with blanks stands in quotes.
func parseManifest(text string) (all []action, err error) {
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		a, err := parseAction(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		all = append(all, a)
	}
	return all, nil
}

func parseAction(line string) (action, error) {
	name, rest, _ := strings.Cut(line, " ")
	form, ok := actionForms()[name]
	if !ok {
		return action{}, fmt.Errorf("no action %q", name)
	}
	a := action{name: name, attributes: map[string]string{}}
	if form[0] != "" {
		if a.payload, rest, _ = strings.Cut(rest, " "); strings.Contains(a.payload, "=") || a.payload == "" {
			return a, fmt.Errorf("%s without a payload", name)
		}
	}
	for rest != "" {
		key, value, ok := strings.Cut(rest, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \"") {
			return a, fmt.Errorf("no attribute: %q", rest)
		}
		if strings.HasPrefix(value, `"`) {
			quoted, err := strconv.QuotedPrefix(value)
			if err != nil || strings.Contains(quoted, `\`) {
				return a, fmt.Errorf("quotes of %q", value)
			}
			value, rest = quoted[1:len(quoted)-1], value[len(quoted):]
			if rest != "" && rest[0] != ' ' {
				return a, fmt.Errorf("after the quotes: %q", rest)
			}
			rest = strings.TrimPrefix(rest, " ")
		} else {
			value, rest, _ = strings.Cut(value, " ")
		}
		if _, twice := a.attributes[key]; twice || value == "" {
			return a, fmt.Errorf("%s is there twice, or empty", key)
		}
		a.attributes[key] = value
	}
	for _, key := range strings.Fields(form[1]) {
		if a.attributes[key] == "" {
			return a, fmt.Errorf("%s without %s", name, key)
		}
	}
	known := strings.Fields(form[1] + " " + form[2])
	for key := range a.attributes {
		if !slices.Contains(known, key) {
			return a, fmt.Errorf("%s with %s", name, key)
		}
	}
	return a, nil
}

// The parser of this test refuses what pkgsend refuses.
func TestTheParserOfManifestsIsStrict(t *testing.T) {
	for _, line := range []string{
		"", "files x path=a", "file path=a owner=root group=bin mode=0444", "dir path=a owner=root group=bin", "set name=a value=b c",
		`set name=a value="b`, `set name=a value="b"c`, "set name=a name=b value=c", "link path=a target=", "depend type=require fmri=a mode=4", " set name=a value=b",
	} {
		if a, err := parseAction(line); err == nil {
			t.Errorf("%q is read as %+v", line, a)
		}
	}
}

// Each manifest names the files of the package, all of them and each once; directories of
// sledctl's own, and what depends on which distribution it is for.
func TestAManifestNamesThePackagesFiles(t *testing.T) {
	in := example()
	files, err := proto(in)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]fs.FileMode{}
	for _, f := range files {
		modes[f.name] = f.mode
	}
	_, packed := unpack(t, pack(t, in)["sledctl-"+in.version+"-ips.tar.gz"])
	for distribution, brand := range map[string]string{"omnios": "system/zones/brand/sparse", "helios": "system/zones/brand/omicron1/tools"} {
		all, err := parseManifest(string(packed["sledctl-"+in.version+"-ips/sledctl-"+distribution+".p5m"]))
		if err != nil {
			t.Fatalf("%s: %v", distribution, err)
		}
		missing, needs, set := maps.Clone(modes), []string{}, map[string]string{}
		for _, a := range all {
			name := a.attributes["path"]
			if path.IsAbs(name) || name != path.Clean(name) && name != "" {
				t.Errorf("path %q", name)
			}
			switch a.name {
			case "file", "license":
				mode, ok := missing[a.payload]
				if !ok || a.name == "file" && (name != a.payload || a.attributes["mode"] != fmt.Sprintf("%04o", mode)) {
					t.Errorf("%+v: not in the package, named twice, or of another mode", a)
				}
				delete(missing, a.payload)
			case "depend":
				needs = append(needs, a.attributes["fmri"])
			case "set":
				set[a.attributes["name"]] = a.attributes["value"]
			case "dir", "link":
				if modes[name] != 0 {
					t.Errorf("%s is a file too", name)
				}
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s does not name %v", distribution, missing)
		}
		if want := []string{brand, "system/bhyve"}; !slices.Equal(needs, want) {
			t.Errorf("%s depends on %q", distribution, needs)
		}
		if set["pkg.fmri"] != "pkg:/ooce/system/sledctl@0.1.0.3" || set["pkg.human-version"] != in.version {
			t.Errorf("%v", set)
		}
	}
}

// What is a configuration is kept at an upgrade, and a manifest or a profile tells its
// service to read it.
func TestAManifestTellsWhoReadsAFile(t *testing.T) {
	files, err := proto(example())
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseManifest(string(packageManifest("v0.1.0", files, "some/brand")))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range all {
		if more := a.attributes["preserve"] + a.attributes["restart_fmri"]; more != "" {
			got[a.attributes["path"]] = more
		}
	}
	const imports, rbac = "svc:/system/manifest-import:default", "svc:/system/rbac:default"
	if want := map[string]string{
		"etc/opt/ooce/sledctl/config.toml": "renamenew", "lib/svc/manifest/ooce/sledctl.xml": imports, "lib/svc/manifest/ooce/sledctl-agent.xml": imports,
		"etc/security/exec_attr.d/ooce:sledctl": rbac, "etc/security/prof_attr.d/ooce:sledctl": rbac,
	}; !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// A version of IPS is numbers between dots, none with a leading zero; later commits are
// later versions.
func TestVersionsAreThoseOfIPS(t *testing.T) {
	for version, want := range map[string]string{
		"v0.1.0": "0.1.0", "v1.20.3-14-g0123abc": "1.20.3.14", "v1.2.0-dirty": "1.2.0", "2.0": "2.0", "v1.02": "1.2",
		"4ac699d9": "0", "12345678": "0", "devel": "0", "4ac699d9-dirty": "0",
	} {
		if got := dotted(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}
