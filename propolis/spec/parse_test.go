package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written is a spec as a file.
func written(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestASpecIsReadFromWhateverItLiesIn(t *testing.T) {
	want := everything()
	for name, v := range map[string]any{
		"itself":            want,
		"a request":         EnsureRequest{Properties: Properties{ID: id}, Init: Init{Spec: &want}},
		"an answer":         map[string]any{"properties": 1, "state": "Running", "spec": map[string]any{"type": "Present", "value": want}},
		"an answer of 1":    map[string]any{"spec": map[string]any{"type": "Present", "value": map[string]any{"version": "V0", "spec": want}}},
		"what sledctl says": map[string]any{"apiVersion": "sledctl/v1", "kind": "Spec", "spec": want},
	} {
		d, err := Parse(written(t, v), ParseOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, d.Spec); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := d.Check(Server{Features: Features()}); err != nil || !d.CPUs || !d.Memory {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// small is a spec in JSON with one part to be put in.
func small(part string) string {
	return `{
  "board": {"cpus": 1, "memory_mb": 512, "chipset": {"type": "i440_fx", "value": {"enable_pcie": false}}},
  "components": {
    "com1": {"type": "serial_port", "component": {"num": "com1"}},
    ` + part + `
  }
}`
}

// Each is a document that is not what it must be, and all that is reported about it.
func TestWhatIsWrongWithAJSONDocumentIsToldAtOnce(t *testing.T) {
	disk := func(fields string) string { return small(`"d": {"type": "nvme_disk", "component": {` + fields + `}}`) }
	const sound = `"backend_id": "b", "pci_path": {"bus": 0, "device": 4, "function": 0}, "serial_number": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]`
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"an unknown key at the top": {
			strings.Replace(small(`"com2": {"type": "serial_port", "component": {"num": "com2"}}`), "{", `{"smbois": {},`, 1),
			[]string{"line 1: smbois: unknown key: known here are board, components, smbios"},
		},
		"an unknown key of a component": {
			disk(sound + `, "read_only": true`),
			[]string{"line 5: components.d.component.read_only: unknown key: known here are backend_id, pci_path, serial_number, has_write_cache"},
		},
		"an unknown key of a path": {
			disk(strings.Replace(sound, `"function": 0`, `"function": 0, "slot": 1`, 1)),
			[]string{"line 5: components.d.component.pci_path.slot: unknown key: known here are bus, device, function"},
		},
		"a path as a text": {
			disk(strings.Replace(sound, `{"bus": 0, "device": 4, "function": 0}`, `"0.4.0"`, 1)),
			[]string{`line 5: components.d.component.pci_path: is the text "0.4.0": want a table`},
		},
		"a short serial number": {
			disk(strings.Replace(sound, `[1,`, `[`, 1)), []string{"line 5: components.d.component.serial_number: has 19 elements: want 20"},
		},
		"a serial number as a text": {
			disk(`"backend_id": "b", "pci_path": {"bus": 0, "device": 4, "function": 0}, "serial_number": "AAAA"`),
			[]string{`line 5: components.d.component.serial_number: is the text "AAAA": want a list`},
		},
		"a large byte": {
			disk(strings.Replace(sound, `[1,`, `[256,`, 1)),
			[]string{"line 5: components.d.component.serial_number[0]: is 256: want a whole number from 0 to 255"},
		},
		"no workers": {
			small(`"b": {"type": "file_storage_backend", "component": {"path": "/x", "readonly": false, "block_size": 512, "workers": -1}}`),
			[]string{"line 5: components.b.component.workers: is -1: want a whole number from 0 to 18446744073709551615"},
		},
		"300 CPUs, and no memory": {
			strings.Replace(small(`"b": {}`), `"cpus": 1, "memory_mb": 512`, `"cpus": 300`, 1),
			[]string{
				"line 2: board.cpus: is 300: want a whole number from 0 to 255", "line 2: board.memory_mb: is missing",
				"line 5: components.b.type: is missing: want " + strings.Join(tags(), ", "),
			},
		},
		"an unknown component": {
			small(`"b": {"type": "nvme-disk", "component": {}}`),
			[]string{`line 5: components.b.type: there is no component "nvme-disk": want ` + strings.Join(tags(), ", ")},
		},
		"keys of all sorts": {
			small(`"a.b": {"type": "virtio_network_backend", "component": {}, "x": 1}`),
			[]string{
				`line 5: components."a.b".x: unknown key: known here are type, component`, `line 5: components."a.b".component.vnic_name: is missing`,
			},
		},
		"a key twice":      {small(`"com1": {"type": "serial_port", "component": {"num": "com1"}}`), []string{"line 5: components.com1: is there twice"}},
		"null for a table": {small(`"x": null`), []string{"line 5: components.x: is null: want a table"}},
		"no components":    {`{"board": null, "components": []}`, []string{"line 1: board: is null: want a table", "line 1: components: is a list: want a table"}},
		"a cut document":   {"{\n\"board\": {", []string{"line 2: the document ends too early"}},
		"two documents":    {small(`"x": {"type": "qemu_pvpanic", "component": {"enable_isa": true}}`) + "\n{}", []string{"line 8: there is more behind the document"}},
		"no JSON":          {"{\n'a'", []string{"line 2: invalid character '\\''"}},
		"a deep document":  {`{"board":` + strings.Repeat("[", 1000000), []string{"line 1: it is nested too deeply"}},
	} {
		_, err := Parse([]byte(c.text), ParseOptions{})
		if diff := cmp.Diff(c.want, lines(err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func tags() []string {
	var all []string
	for _, k := range kinds() {
		all = append(all, k.Type())
	}
	return all
}

// lines are the problems of an error.
func lines(err error) []string {
	invalid, _ := errors.AsType[*InvalidError](err)
	if invalid == nil {
		return nil
	}
	var all []string
	for _, p := range invalid.Problems {
		all = append(all, p.String())
	}
	return all
}

// What a server would not take is told with the line, also where the spec lies
// in something else.
func TestWhatIsWrongWithASpecIsToldWithItsLine(t *testing.T) {
	text := small(`"d": {"type": "virtio_disk", "component": {
      "backend_id": "b",
      "pci_path": {"bus": 0, "device": 1, "function": 3}
    }},
    "com2": {"type": "serial_port", "component": {"num": "com1"}}`)
	for path, text := range map[string]string{"": text, "init.value.spec.": `{"init": {"value": {"spec": ` + text + `}}}`} {
		d, err := Parse([]byte(text), ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"line 6: " + path + "components.d.component.backend_id: there is no backend b",
			"line 9: " + path + "components.com2.component.num: com1 is a com1 already",
			"line 7: " + path + "components.d.component.pci_path: at 0.1.3 is power management",
		}
		if diff := cmp.Diff(want, lines(d.Check(Server{}))); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPaths(t *testing.T) {
	for path, want := range map[string]string{
		"a": "", "a.b": "a", "a[0]": "a", "a.b[12].c": "a.b[12]", `a."b.c"`: "a", `a."b.c".d`: `a."b.c"`, `"x[\"]."[1]`: `"x[\"]."`, "": "",
	} {
		if got := above(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := at(join(join("a", "b.c"), "d"), 3); got != `a."b.c".d[3]` {
		t.Error(got)
	}
}

// FuzzParse: no document makes it fail in another way than by an error, and what
// is accepted breaks none of the rules, told here once more in another way.
func FuzzParse(f *testing.F) {
	f.Add(written(f, sound()))
	f.Add([]byte(small(`"com2": {"type": "serial_port", "component": {"num": "com2"}}`)))
	f.Add([]byte(everyKind))
	f.Add([]byte("[dev.a]\ndriver = \"pci-nvme\"\nblock_dev = \"b\"\npci-path = \"0.16.0\"\n[block_dev.b]\ntype = \"file\"\npath = \"/b\"\n[main]\ncpus = 1\nmemory = 1"))
	f.Add([]byte("pci_bridge = [{pci-path = \"0.4.0\", downstream-bus = 1}, {}]\nmain = {boot_order = [\"a\"]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(data, ParseOptions{HyperV: len(data)%2 == 0})
		for _, p := range append(append(problemsOf(err), problemsOf(d.Check(Server{}))...), d.AllWarnings()...) {
			if p.What == "" || p.Line < 0 || p.Line > 1+strings.Count(string(data), "\n") {
				t.Errorf("%q: %+v", data, p)
			}
		}
		if err != nil || d.Check(Server{}) != nil {
			return
		}
		if fault := forbidden(d.Spec); fault != "" {
			t.Errorf("%q was accepted: %s", data, fault)
		}
		body, err := EnsureRequest{Init: Init{Spec: &d.Spec}}.Encode(Latest)
		if _, large := errors.AsType[*TooLargeError](err); err != nil && !large {
			t.Errorf("%q cannot be sent: %v", data, err)
		}
		if again, err := Parse(body, ParseOptions{}); body != nil && (err != nil || len(Compare(d.Spec, again.Spec)) > 0) {
			t.Errorf("%q is not %q: %v", data, body, err)
		}
	})
}

func problemsOf(err error) []Problem {
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return invalid.Problems
	}
	return nil
}

// forbidden is a rule that a spec breaks, as the server would see it in what it
// is sent: generic, so that it does not depend on the types.
func forbidden(s InstanceSpec) string {
	data, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	var v struct {
		Board struct {
			CPUs   int    `json:"cpus"`
			Memory uint64 `json:"memory_mb"`
		} `json:"board"`
		Components map[string]struct {
			Type string         `json:"type"`
			Body map[string]any `json:"component"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return err.Error()
	}
	com1, buses, places, users := false, map[float64]bool{0: true}, map[string]bool{"0.0.0": true, "0.1.0": true, "0.1.3": true}, map[string]int{}
	for _, c := range v.Components {
		com1 = com1 || c.Body["num"] == "com1"
		if bus, ok := c.Body["downstream_bus"].(float64); ok {
			if buses[bus] {
				return "a bus twice"
			}
			buses[bus] = true
		}
		if backend, ok := c.Body["backend_id"].(string); ok {
			users[Key(backend)]++
		}
	}
	for key, c := range v.Components {
		if p, ok := c.Body["pci_path"].(map[string]any); ok {
			place := fmt.Sprintf("%v.%v.%v", p["bus"], p["device"], p["function"])
			if places[place] || !buses[p["bus"].(float64)] || p["device"].(float64) > 31 || p["function"].(float64) > 7 {
				return "at " + place
			}
			places[place] = true
		}
		if strings.HasSuffix(c.Type, "_backend") && users[Key(key)] != 1 {
			return key + " has not one user"
		}
		delete(users, Key(key))
	}
	switch {
	case !com1:
		return "no com1"
	case v.Board.CPUs < 1 || v.Board.CPUs > 32 || v.Board.Memory < 1:
		return "a board without CPUs or memory"
	case len(users) > 0:
		return "a device without its backend"
	}
	return ""
}

// What could not be read, and what a server would not take, is told together;
// nothing is said to be missing that may be in what could not be read.
func TestWhatCannotBeReadAndWhatIsWrongAreToldAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a CPU that is none, and no memory": {
			`{"board": {"cpus": "four", "memory_mb": 0, "chipset": {"type": "i440_fx", "value": {"enable_pcie": false}}}, "components": {}}`,
			[]string{
				`line 1: board.cpus: is the text "four": want a whole number from 0 to 255`, "line 1: board.memory_mb: there is no memory",
				"line 1: components: there is no serial port com1, without which a Propolis server dies",
			},
		},
		"a disk that cannot be read next to a backend with a fault of its own": {
			small(`"d": {"type": "nvme_disk", "component": {"backend_id": "b"}},
    "b": {"type": "file_storage_backend", "component": {"path": "x", "readonly": false, "block_size": 512}},
    "n": {"type": "virtio_network_backend", "component": {"vnic_name": ""}}`),
			[]string{
				"line 5: components.d.component.pci_path: is missing", "line 5: components.d.component.serial_number: is missing",
				`line 6: components.b.component.path: "x" is not an absolute name`, `line 7: components.n.component.vnic_name: "" is no VNIC`,
			},
		},
		"a disk of a backend that is of no known kind": {
			small(`"b": {"type": "zvol", "component": {}},
    "d": {"type": "virtio_disk", "component": {"backend_id": "b", "pci_path": {"bus": 0, "device": 0, "function": 0}}}`),
			[]string{
				`line 5: components.b.type: there is no component "zvol": want ` + strings.Join(tags(), ", "),
				"line 6: components.d.component.pci_path: at 0.0.0 is the host bridge",
			},
		},
		"a key twice, and a place that is taken": {
			small(`"com1": {"type": "serial_port", "component": {"num": "com1"}},
    "p": {"type": "pci_pci_bridge", "component": {"downstream_bus": 0, "pci_path": {"bus": 0, "device": 1, "function": 0}}}`),
			[]string{
				"line 5: components.com1: is there twice", "line 6: components.p.component.downstream_bus: bus 0 is that of the host bridge",
				"line 6: components.p.component.pci_path: at 0.1.0 is the LPC bridge",
			},
		},
		"a config": {
			`[main]
cpus = "four"
memory = 0
boot_order = ["disk", "lost"]
[dev.disk]
driver = "pci-nvme"
pci-path = "0.4.0.1"
block_dev = "data"
[dev.net]
driver = "pci-virtio-viona"
pci-path = "0.1.0"
vnic = ""
[block_dev.data]
type = "file"
path = "data.img"
`,
			[]string{
				`line 2: main.cpus: is the text "four": want a whole number from 1 to 255`, "line 3: main.memory: is 0: want a whole number from 1 to 4611686018427387904",
				`line 7: dev.disk.pci-path: failed to parse PCI path the text "0.4.0.1": want BUS.DEVICE.FUNCTION, up to 255.31.7`,
				"line 11: dev.net.pci-path: at 0.1.0 is the LPC bridge", `line 12: dev.net.vnic: "" is no VNIC`,
				`line 15: block_dev.data.path: "data.img" is not an absolute name`,
			},
		},
	} {
		d, err := Parse([]byte(c.text), ParseOptions{})
		if err == nil {
			t.Errorf("%s: it could be read", name)
		}
		if diff := cmp.Diff(c.want, lines(d.Check(Server{}))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
