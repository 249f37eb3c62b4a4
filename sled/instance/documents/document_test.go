package documents

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// sizes reads "4G" and nothing else: the sizes of the command line have tests
// of their own.
func sizes(s string) (uint64, error) {
	if s == "4G" {
		return 4 << 30, nil
	}
	return 0, fmt.Errorf("%q is not a size", s)
}

func equalWanted(t *testing.T, got, want instance.Wanted) {
	t.Helper()
	same := cmp.Options{
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	}
	if d := cmp.Diff(want, got, same); d != "" {
		t.Error(d)
	}
}

func TestADocumentSaysTheSameInBothForms(t *testing.T) {
	mem, cpus, pool := uint64(4<<30), 4, "tank"
	limit, whole := record.CPUCap(29), record.CPUCap(200)
	first, unordered := record.StartOrder(1), record.StartOrder(0)
	static, _ := record.ParseAddress("10.77.0.5/16,gateway=10.77.0.1")
	const id = "8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e5f"
	for name, c := range map[string]struct {
		json, toml string
		want       instance.Wanted
	}{
		"all of it": {
			`{"id": "` + strings.ToUpper(id) + `", "name": "web1", "cpus": 4, "memory": "4G", "pool": "tank", "address": "10.77.0.5/16,gateway=10.77.0.1",
			  "disks": [{"path": "tank/web1"}, {"path": "/iso/a.iso", "readonly": true}], "nics": [{}, {"over": "net0", "mac": "2:8:20:0:0:1", "vlan": 7}]}`,
			`id = "` + strings.ToUpper(id) + `"
			 name = "web1"
			 cpus = 4
			 memory = "4G"
			 pool = "tank"
			 address = "10.77.0.5/16,gateway=10.77.0.1"
			 disks = [{path = "tank/web1"}, {path = "/iso/a.iso", readonly = true}]
			 [[nics]]
			 [[nics]]
			 over = "net0"
			 mac = "2:8:20:0:0:1"
			 vlan = 7`,
			instance.Wanted{
				Ref: id, Name: "web1", CPUs: &cpus, Memory: &mem, Pool: &pool, Address: &static,
				Disks: []record.Disk{{Path: "/dev/zvol/rdsk/tank/web1"}, {Path: "/iso/a.iso", ReadOnly: true}},
				NICs:  []record.NIC{{}, {Over: "net0", MAC: "02:08:20:00:00:01", VLAN: 7}},
			},
		},
		"a name alone":               {`{"name": "web1"}`, `name = "web1"`, instance.Wanted{Ref: "web1"}},
		"nothing":                    {`{}`, ``, instance.Wanted{}},
		"memory as a number":         {`{"memory": 4294967296}`, `memory = 4294967296`, instance.Wanted{Memory: &mem}},
		"a cap":                      {`{"cpu_cap": 0.29}`, `cpu_cap = 0.29`, instance.Wanted{CPUCap: &limit}},
		"a whole cap":                {`{"cpu_cap": 2}`, `cpu_cap = 2`, instance.Wanted{CPUCap: &whole}},
		"the lowest start order":     {`{"start_order": 0}`, `start_order = 0`, instance.Wanted{StartOrder: &first}},
		"no start order":             {`{"start_order": "none"}`, `start_order = "none"`, instance.Wanted{StartOrder: &unordered}},
		"no disks is not: as it was": {`{"disks": []}`, `disks = []`, instance.Wanted{Disks: []record.Disk{}}},
		"a disk of an image": {
			`{"disks": [{"image": "debian-13", "size": "4G", "pool": "tank", "block_size": 8192, "thin": true, "delete_with_instance": true}, {"path": "data"}]}`,
			"[[disks]]\nimage = \"debian-13\"\nsize = 4294967296\npool = \"tank\"\nblock_size = 8192\nthin = true\ndelete_with_instance = true\n[[disks]]\npath = \"data\"",
			instance.Wanted{Disks: []record.Disk{{New: &record.NewDisk{Image: "debian-13", Size: mem, Pool: "tank", Block: 8192, Thin: true, Follows: true}}, {Path: "data"}}},
		},
		"dhcp":          {`{"address": "dhcp"}`, `address = "dhcp"`, instance.Wanted{Address: &record.Address{Mode: record.DHCP}}},
		"a spec":        {`{"spec": "web1.json"}`, `spec = "web1.json"`, instance.Wanted{MachineFile: "web1.json"}},
		"blanks around": {" \n\t{\"name\": \"web1\"}\n", "\n\nname = \"web1\"\n\n", instance.Wanted{Ref: "web1"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{c.json, c.toml} {
				got, err := ParseDocument([]byte(text), sizes)
				if err != nil {
					t.Fatalf("%s\n%v", text, err)
				}
				equalWanted(t, got, c.want)
			}
		})
	}
}

func TestAnUnknownKeyIsNamedWithItsLine(t *testing.T) {
	for name, c := range map[string]struct {
		text, key string
		line      int
		known     string // one of the keys that could stand there
	}{
		"JSON":                  {"{\n  \"name\": \"web1\",\n  \"cpu\": 4\n}", "cpu", 3, "cpus"},
		"JSON, in a table":      {"{\"name\": \"web1\",\n \"disks\": [\n  {\"path\": \"/a\"},\n  {\"path\": \"/b\", \"ro\": true}]}", "disks.ro", 4, "readonly"},
		"JSON, another case":    {"{\"CPUs\": 4}", "CPUs", 1, "cpus"},
		"JSON, behind blanks":   {"\n\n{\"cpu\": 4}", "cpu", 3, "cpus"},
		"JSON, of other places": {"{\"nics\": [{\"path\": \"/a\"}]}", "nics.path", 1, "over"},
		"TOML":                  {"name = \"web1\"\ncpu = 4\n", "cpu", 2, "cpus"},
		"TOML, in a table":      {"name = \"web1\"\n\n[[nics]]\nover = \"net0\"\n\n[[nics]]\nmtu = 9000\n", "nics.mtu", 7, "vlan"},
		"TOML, a table":         {"name = \"web1\"\n[disk]\npath = \"/a\"\n", "disk", 2, "disks"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDocument([]byte(c.text), sizes)
			d, ok := errors.AsType[*DocumentError](err)
			if !ok || d.Key != c.key || d.Line != c.line || !strings.Contains(strings.Join(d.Known, " "), c.known) {
				t.Errorf("%v (%+v)", err, d)
			}
		})
	}
}

func TestAWrongValueIsNamedWithItsLine(t *testing.T) {
	for text, want := range map[string]struct {
		line int
		key  string
	}{
		"cpus = 2\nid = \"x\"":          {2, "id"},
		"{\n\"cpus\":2,\n\"id\":\"x\"}": {3, "id"},
		"cpus = 2\n\nmemory = \"4Q\"":   {3, "memory"},
		"cpus = 2\nstart_order = 1000":  {2, "start_order"},
		"start_order = 1.0":             {1, "start_order"},
		"start_order = \"10\"":          {1, "start_order"},
		"start_order = true":            {1, "start_order"},
		"{\n\"start_order\":-1}":        {2, "start_order"},
		"{\"start_order\":1.0}":         {1, "start_order"},
		"{\"start_order\":[]}":          {1, "start_order"},
		"{\"name\":\"memory\",\n\"nics\":[{\"over\":\"memory\"}],\n\n\"memory\":\"4Q\"}":          {4, "memory"},
		"[[nics]]\nover = \"net0\"\n[[disks]]\npath = \"a/b\"\n[[nics]]\nvlan = 4095":             {5, "nics"},
		"[[disks]]\npath = \"a/b\"\n\n[[disks]]\npath = \"-x\"":                                   {4, "disks"},
		"name = \"nics\"\nnics = [{over = \"net0\"},\n{vlan = 9999}]":                             {2, "nics"},
		"{\"nics\":[{\"over\":\"net0\"},\n{\"vlan\":4095}]}":                                      {2, "nics"},
		"{\"nics\":[{\"over\":\"net0\"}],\n\"disks\":[\n{\"path\":\"a/b\"},\n{\"path\":\"-x\"}]}": {4, "disks"},
		"[[disks]]\npath = \"/a/b\"\nsize = \"4G\"":                                               {1, "disks"},
		"disks = [\n{thin = true}]":                                                               {1, "disks"},
		"{\"disks\":[\n{\"size\":0}]}":                                                            {2, "disks"},
		"{\"disks\":[\n{\"size\":[]}]}":                                                           {2, "disks"},
		"{\"disks\":[{\"path\":\"/a\"},\n{\"image\":\"a\",\"size\":-1}]}":                         {2, "disks"},
		"{\"disks\":[\n{\"image\":\"a\",\"readonly\":true}]}":                                     {2, "disks"},
		"{\"nics\":[{\"mac\":\"zz\"}]}":                                                           {1, "nics"},
	} {
		_, err := ParseDocument([]byte(text), sizes)
		d, ok := errors.AsType[*DocumentError](err)
		if !ok || d.Line != want.line || d.Key != want.key {
			t.Errorf("%s: %v, want line %d, key %s", text, err, want.line, want.key)
		}
	}
}

func TestADocumentOfTheWrongTypesIsRefusedWithTheLine(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"JSON, a text for a number": {"{\"name\": \"web1\",\n\"cpus\": \"four\"}", 2},
		"JSON, a number for a text": {"{\n\"name\":\n1}", 3},
		"JSON, one disk for many":   {"{\n\"disks\": {\"path\": \"/a\"}}", 2},
		"JSON, half of it":          {"{\n\"name\": \"web1\"\n", 3},
		"JSON, no JSON":             {"{\n\"name\" \"web1\"}", 2},
		"JSON, two documents":       {"{\"name\": \"web1\"}\n{}", 2},
		"JSON, half a CPU":          {"{\n\"cpus\": 0.5}", 2},
		"TOML, a text for a number": {"name = \"web1\"\ncpus = \"four\"", 2},
		"TOML, a number for a text": {"\nname = 1", 2},
		"TOML, one disk for many":   {"name = \"web1\"\ndisks = \"/a\"", 2},
		"TOML, no TOML":             {"name = \"web1\"\ncpus 4", 2},
		"TOML, twice":               {"name = \"web1\"\nname = \"web2\"", 2},
		"TOML, half a CPU":          {"cpus = 0.5", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDocument([]byte(c.text), sizes)
			if d, ok := errors.AsType[*DocumentError](err); !ok || d.Line != c.line {
				t.Errorf("%v (%+v)", err, d)
			}
		})
	}
}

func TestADocumentWithImpossibleValuesIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"an id that is none":         `{"id": "web1"}`,
		"a size that is none":        `{"memory": "lots"}`,
		"a size below zero":          `{"memory": -1}`,
		"a size below zero, TOML":    `memory = -1`,
		"half a byte":                `{"memory": 0.5}`,
		"half a byte, TOML":          `memory = 0.5`,
		"a size that is a list":      `{"memory": [1]}`,
		"a size that is a switch":    `memory = true`,
		"an address":                 `{"address": "10.77.0.5"}`,
		"an address, TOML":           `address = "10.77.0.5"`,
		"a disk without a path":      `{"disks": [{}]}`,
		"a disk that is null":        `{"disks": [null]}`,
		"a VLAN":                     `{"nics": [{"vlan": 4095}]}`,
		"a VLAN, TOML":               "[[nics]]\nvlan = 4095",
		"a MAC":                      `{"nics": [{"mac": "ff:ff:ff:ff:ff:ff"}]}`,
		"neither JSON nor TOML":      `<instance/>`,
		"a list":                     `[{"name": "web1"}]`,
		"deeper than anybody nests":  strings.Repeat(`{"memory":`, 100_000),
		"deeper than that, in lists": `{"memory": ` + strings.Repeat(`[`, 100_000),
	} {
		if w, err := ParseDocument([]byte(text), sizes); err == nil {
			t.Errorf("%s is taken: %+v", name, w)
		}
	}
}

func FuzzDocuments(f *testing.F) {
	f.Add([]byte(`{"name": "web1", "disks": [{"path": "/a"}], "nics": [{"vlan": 3}], "memory": 4}`))
	f.Add([]byte("name = \"web1\"\nmemory = \"4G\"\n[[nics]]\nover = \"net0\"\n"))
	f.Add([]byte("{"))
	f.Add([]byte("disks = [{path=1}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := ParseDocument(data, sizes)
		if err != nil {
			_ = err.Error()
			return
		}
		for _, d := range w.Disks {
			if again, err := d.Normal(); err != nil || again != d {
				t.Errorf("a disk that is not as it is kept: %+v", d)
			}
		}
		for _, n := range w.NICs {
			if again, err := n.Normal(); err != nil || !reflect.DeepEqual(again, n) {
				t.Errorf("a instance.NIC that is not as it is kept: %+v", n)
			}
		}
	})
}
