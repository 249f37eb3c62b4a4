package propolis

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// What serde refuses (crates/propolis-api-types-versions).
func TestDecodingRefuses(t *testing.T) {
	r := newRig(t, "none")
	pci := func(device, function string) string {
		return strings.Replace(disk0, `"device":16,"function":0`, `"device":`+device+`,"function":`+function, 1)
	}
	nvme := func(length int) string {
		return `"d":{"type":"nvme_disk","component":{"backend_id":"b","pci_path":{"bus":0,"device":4,"function":0},"serial_number":[` +
			strings.TrimSuffix(strings.Repeat("1,", length), ",") + `]}}`
	}
	for components, text := range map[string]string{
		pci("40", "0"):          "device: invalid value, expected 0-31",
		pci("4", "9"):           "function: invalid value, expected 0-7",
		pci("300", "0"):         "device: invalid value, expected 0-31",
		pci("-1", "0"):          "invalid value, expected 0-31",
		pci(`"4"`, "0"):         "invalid value, expected 0-31",
		nvme(19):                "invalid type or length, expected an array",
		`"x":{"type":"floppy"}`: "unknown variant `floppy`",
		`"x":{"component":{}}`:  "missing field `type`",
		`"x":{"type":"serial_port","component":{"num":"com5"}}`:               "unknown variant `com5`",
		`"x":{"type":"serial_port","component":{"num":"com1","baud":9600}}`:   "unknown field `baud`",
		`"x":{"type":"qemu_pvpanic","component":{"enable_isa":"yes"}}`:        "invalid value, expected bool",
		`"x":{"type":"boot_settings","component":{"order":[{"name":"a"}]}}`:   "missing field `id`",
		`"x":{"type":"virtio_network_backend","component":{}}`:                "missing field `vnic_name`",
		strings.Replace(back0, `"workers":null`, `"workers":0`, 1):            "invalid value, expected 1-",
		strings.Replace(net0, `44444444-4444-4444-8444-444444444444`, `x`, 1): "invalid value, expected uuid",
	} {
		got := r.v5("PUT", "/instance", ensureBody(components))
		message := fmt.Sprint(got.body["message"])
		if got.status != 400 || !strings.HasPrefix(message, "unable to parse JSON body: init.value.spec.components.") || !strings.Contains(message, text) {
			t.Errorf("%s:\n%d %s\nwant %s", components, got.status, message, text)
		}
	}
	for from, to := range map[string]string{
		`"cpus":2`:          `"cpus":300`,
		`"memory_mb":2048,`: ``,
		`"board":{`:         `"board":{"sockets":1,`,
		`"i440_fx"`:         `"q35"`,
		`"sled_revision":1`: `"sled_revision":-1`,
		`"method":"Spec"`:   `"method":"Clone"`,
	} {
		if got := r.v5("PUT", "/instance", strings.Replace(ensureBody(com1), from, to, 1)); got.status != 400 {
			t.Errorf("%s: %d %s", to, got.status, got.text)
		}
	}
}

func TestUnknownFieldsPassWhereTheTypesLetThem(t *testing.T) {
	for _, where := range []string{`{"properties":`, `"properties":{`, `"metadata":{`, `"value":{"spec"`, `"spec":{"board"`} {
		r := newRig(t, "none")
		body := ensureBody(com1)
		key := where[strings.LastIndex(where, "{")+1:]
		with := strings.TrimSuffix(where, key) + `"smbois":1,` + key
		if got := r.v5("PUT", "/instance", strings.Replace(body, where, with, 1)); got.status != 201 {
			t.Errorf("%s: %d %s", with, got.status, got.text)
		}
	}
}

// The order and texts of bin/propolis-server/src/lib/spec.
func TestConversionRefuses(t *testing.T) {
	r := newRig(t, "none")
	r.ensure() // the spec is checked before the server says that it has a machine
	disk := func(key, backend, device string) string {
		return strings.NewReplacer("disk0", key, "back0", backend, "16", device).Replace(disk0)
	}
	back := func(key string) string { return strings.Replace(back0, "back0", key, 1) }
	vnic := func(key string) string { return strings.Replace(netBack, `"nb"`, `"`+key+`"`, 1) }
	port := func(key string) string { return strings.Replace(com1, `"com1":`, `"`+key+`":`, 1) }
	panics := func(key string) string {
		return `"` + key + `":{"type":"qemu_pvpanic","component":{"enable_isa":true}}`
	}
	boot := func(id string) string {
		return `"boot":{"type":"boot_settings","component":{"order":[{"id":"` + id + `"}]}}`
	}
	for components, text := range map[string]string{
		disk0:                       "storage backend back0 not found for device disk0",
		net0:                        "network backend nb not found for device net0",
		parts(disk0, vnic("back0")): "storage backend back0 not found for device disk0",
		back0:                       "backend back0 not used by any device",
		netBack:                     "backend nb not used by any device",
		parts(vnic("a"), back("b")): "backend b not used by any device",
		parts(disk("d1", "b", "4"), disk("d2", "b", "5"), back("b")):                                "storage backend b not found for device d2",
		parts(disk("d1", "b1", "4"), disk("d2", "b2", "4"), back("b1"), back("b2")):                 "a PCI device is already attached at PciPath { bus: 0, device: 4, function: 0 }",
		parts(port("a"), port("b")):                                                                 "serial port Com1 is already specified",
		parts(panics("a"), panics("b")):                                                             "pvpanic device already specified",
		parts(disk0, back0, boot("nope")):                                                           "boot option nope is not an attached device",
		parts(disk0, back0, boot("back0")):                                                          "boot option back0 is not an attached device",
		`"p":{"type":"soft_npu_p9","component":{"pci_path":{"bus":0,"device":4,"function":0}}}`:     "support for component p compiled out via falcon",
		`"m":{"type":"migration_failure_injector","component":{"fail_exports":1,"fail_imports":0}}`: "support for component m compiled out via failure-injection",
		parts(disk("ffffffff-0000-4000-8000-000000000001", "b1", "4"), disk("a", "b2", "5")):        "storage backend b1 not found for device ffffffff-0000-4000-8000-000000000001",
	} {
		r.wants(r.v5("PUT", "/instance", ensureBody(components)), 400, "", "failed to generate internal instance spec: "+text)
	}
	cpuid := strings.Replace(ensureBody(com1), `"cpus":2,`, `"cpus":2,"cpuid":{"vendor":"amd","entries":[{"leaf":1048576,"eax":0,"ebx":0,"ecx":0,"edx":0}]},`, 1)
	if got := r.v5("PUT", "/instance", cpuid); !strings.Contains(got.text, "failed to generate internal instance spec: instance spec's CPUID entries are invalid: ") {
		t.Errorf("cpuid: %s", got.text)
	}
}

func TestKeysAreNormalised(t *testing.T) {
	r := newRig(t, "none")
	const spelled, canonical = "7B1C2F3E0D4A4A559B0E5F3D2C1B0A99", "7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"
	backend := strings.Replace(back0, "back0", "{"+canonical+"}", 1)
	boot := `"boot":{"type":"boot_settings","component":{"order":[{"id":"disk0"},{"id":"disk0"}]}}`
	got := r.v5("PUT", "/instance", ensureBody(parts(com1, strings.Replace(disk0, "back0", spelled, 1), backend, boot)))
	if got.status != 201 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	spec := r.v5("GET", "/instance/spec", "").text
	if strings.Contains(spec, spelled) || strings.Count(spec, canonical) != 3 { // the instance's own id, too
		t.Errorf("spec: %s", spec)
	}
}

// Every ensure while a machine is there is refused, and nothing is compared.
func TestEnsureIsNotIdempotent(t *testing.T) {
	r := newRig(t, "none")
	r.ensure()
	body := ensureBody(parts(com1, disk0, back0, net0, netBack))
	r.wants(r.v5("PUT", "/instance", body), 409, "AlreadyInitialized", "instance already initialized")
	for _, state := range []string{`"Run"`, `"Stop"`} {
		if got := r.v5("PUT", "/instance/state", state); got.status != 204 || got.text != "" {
			t.Fatalf("%s: %d %s", state, got.status, got.text)
		}
	}
	if got := r.state(); got != "6 Destroyed" {
		t.Fatalf("state %s", got)
	}
	r.ensure()
	if got := r.state(); got != "1 Creating" {
		t.Errorf("a new machine starts at %s", got)
	}
}

func TestSpecIsGivenBackFilledIn(t *testing.T) {
	r := newRig(t, "none")
	body := strings.Replace(ensureBody(com1), `"cpus":2,`, `"guest_hv_interface":{"type":"bhyve"},"cpus":2,`, 1)
	if got := r.v5("PUT", "/instance", body); got.status != 201 {
		t.Fatal(got.text)
	}
	got := r.v5("GET", "/instance/spec", "").body
	spec := got["spec"].(map[string]any)
	value := spec["value"].(map[string]any)
	board := value["board"].(map[string]any)
	if _, has := board["guest_hv_interface"]; has || board["cpuid"] == nil || spec["type"] != "Present" || got["state"] != "Creating" {
		t.Errorf("%v", got)
	}
	if smbios, has := value["smbios"]; smbios != nil || !has {
		t.Errorf("smbios %v, there: %v", smbios, has)
	}
	want := map[string]any{"com1": map[string]any{"type": "serial_port", "component": map[string]any{"num": "com1"}}}
	if diff := cmp.Diff(want, value["components"]); diff != "" {
		t.Error(diff)
	}
}

func TestOldVersionsLeaveOutWhatTheyCannotSay(t *testing.T) {
	r := newRig(t, "none")
	socket := `"vsock":{"type":"virtio_socket","component":{"guest_cid":16,"pci_path":{"bus":0,"device":25,"function":0}}}`
	body := ensureBody(parts(com1, socket))
	if got := r.do("PUT", "/instance", "2.0.0", body); got.status != 400 || !strings.Contains(got.text, "unknown variant `virtio_socket`") {
		t.Errorf("vsock in version 2: %d %s", got.status, got.text)
	}
	if got := r.do("PUT", "/instance", "1.0.0", strings.Replace(ensureBody(com1), `"spec":{`, `"spec":{"smbios":null,`, 1)); got.status != 400 ||
		!strings.Contains(got.text, "unknown field `smbios`") {
		t.Errorf("smbios in version 1: %d %s", got.status, got.text)
	}
	if got := r.do("PUT", "/instance", "3.0.0", body); got.status != 201 {
		t.Fatal(got.text)
	}
	for version, want := range map[string][]bool{"1.0.0": {false, false, true}, "2.0.0": {false, true, false}, "3.0.0": {true, true, false}, "5.0.0": {true, true, false}} {
		text := r.do("GET", "/instance/spec", version, "").text
		got := []bool{strings.Contains(text, "virtio_socket"), strings.Contains(text, `"smbios"`), strings.Contains(text, `"version":"V0","spec"`) || strings.Contains(text, `"version":"V0"`)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: vsock, smbios, wrapped: %s\n%s", version, diff, text)
		}
	}
}

// From version 6 on an NVMe disk says whether it has a write cache; before, it may not,
// and each has one.
func TestTheWriteCacheOfADiskIsOfVersion6(t *testing.T) {
	const unknown, missing = "unknown field `has_write_cache`", "missing field `has_write_cache`"
	yes, no := `,"has_write_cache":true`, `,"has_write_cache":false`
	for name, c := range map[string]struct{ version, said, refused, read string }{
		"said to 5":     {"5.0.0", no, unknown, ""},
		"said to 1":     {"1.0.0", yes, unknown, ""},
		"not said to 6": {"6.0.0", "", missing, ""},
		"5":             {"5.0.0", "", "", "true"},
		"1":             {"1.0.0", "", "", "true"},
		"6, with one":   {"6.0.0", yes, "", "true"},
		"6, without":    {"6.0.0", no, "", "false"},
	} {
		r := newRig(t, "none")
		got := r.do("PUT", "/instance", c.version, ensureBody(parts(com1, nvme0(c.said), back0)))
		if want := map[bool]int{true: 400, false: 201}[c.refused != ""]; got.status != want || !strings.Contains(got.text, c.refused) {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
		if c.refused != "" {
			continue
		}
		for _, version := range []string{"1.0.0", "5.0.0", "5.9.0"} {
			if text := r.do("GET", "/instance/spec", version, "").text; strings.Contains(text, "has_write_cache") {
				t.Errorf("%s, read in %s: %s", name, version, text)
			}
		}
		if text := r.do("GET", "/instance/spec", "6.0.0", "").text; !strings.Contains(text, `"has_write_cache":`+c.read) {
			t.Errorf("%s, read in 6: %s", name, text)
		}
	}
}

// A machine may have a distributed disk.
func TestCreationOpensCrucible(t *testing.T) {
	r := newRig(t, "none")
	const region = `{\"type\":\"volume\",\"id\":\"x\",\"sub_volumes\":[{\"type\":\"region\",\"opts\":{\"target\":[\"[::1]:1\",\"[::1]:2\",\"[::1]:3\"]}}],\"read_only_parent\":null}`
	body := ensureBody(parts(com1, disk0, `"back0":{"type":"crucible_storage_backend","component":{"request_json":"`+region+`","readonly":false}}`))
	if got := r.v5("PUT", "/instance", body); got.status != 201 {
		t.Errorf("%d %s", got.status, got.text)
	}
	r.wants(r.v5("GET", "/instance/disk/back0/status", ""), 501, "", "not simulated: what a Crucible volume tells of itself")
}

// The reason of a failed creation is only in the log of the service.
func TestCreationFails(t *testing.T) {
	log := logName("")
	for name, c := range map[string]struct{ components, board, cause string }{
		"file missing":    {parts(com1, disk0, strings.Replace(back0, "/vms/disk.img", "/vms/nope", 1)), "", "failed to create backend of disk0: No such file"},
		"file read-only":  {parts(com1, disk0, strings.Replace(back0, "disk.img", "ro.img", 1)), "", "Read-only file system"},
		"volume missing":  {parts(com1, disk0, strings.Replace(back0, "/vms/disk.img", "/dev/zvol/rdsk/rpool/v", 1)), "", "No such file"},
		"link missing":    {parts(com1, net0, strings.Replace(netBack, "vnic0", "vnic9", 1)), "", `failed to create viona device for \"vnic9\"`},
		"blob size":       {parts(com1, disk0, `"back0":{"type":"blob_storage_backend","component":{"base64":"AAAA","readonly":true}}`), "", "no multiple of its block size"},
		"Crucible":        {parts(com1, disk0, `"back0":{"type":"crucible_storage_backend","component":{"request_json":"{}","readonly":true}}`), "", `not simulated: a Crucible volume of type \"\"`},
		"Crucible region": {parts(com1, disk0, `"back0":{"type":"crucible_storage_backend","component":{"request_json":"{\"type\":\"volume\",\"sub_volumes\":[{\"type\":\"region\",\"opts\":{\"target\":[\"[::1]:1\"]}}]}","readonly":true}}`), "", "three targets"},
		"no CPU":          {com1, `"cpus":0`, "0 virtual CPUs requested"},
		"too many CPUs":   {com1, `"cpus":33`, "33 virtual CPUs requested"},
		"bridge to bus 0": {parts(com1, `"b":{"type":"pci_pci_bridge","component":{"downstream_bus":0,"pci_path":{"bus":0,"device":4,"function":0}}}`), "", "invalid downstream bus 0"},
		"guest CID":       {parts(com1, `"v":{"type":"virtio_socket","component":{"guest_cid":2,"pci_path":{"bus":0,"device":25,"function":0}}}`), "", "invalid guest CID 2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "none")
			r.file("/vms/ro.img", 0o444)
			body := ensureBody(c.components)
			if c.board != "" {
				body = strings.Replace(body, `"cpus":2`, c.board, 1)
			}
			if err := host.MkdirAll(r.world.Files(), "/var/svc/log", 0o755); err != nil {
				t.Fatal(err)
			}
			got := r.v5("PUT", "/instance", body)
			r.wants(got, 500, "Internal", "Internal Server Error")
			if s := r.state(); s != "2 Failed" {
				t.Errorf("state %s", s)
			}
			lines, err := host.ReadFile(r.world.Files(), log)
			if err != nil || !strings.Contains(string(lines), c.cause) || !strings.Contains(string(lines), got.header.Get("x-request-id")) {
				t.Errorf("log %q, %v; want %q", lines, err, c.cause)
			}
			r.wants(r.v5("PUT", "/instance/state", `"Run"`), 424, "NoInstance", "Server not initialized (no instance)")
			r.ensure()
		})
	}
}

// A fault at which the server aborts: the client sees the connection break.
func TestCreationPanics(t *testing.T) {
	for name, components := range map[string]string{
		"no com1":       `"com2":{"type":"serial_port","component":{"num":"com2"}}`,
		"built-in slot": parts(com1, strings.Replace(disk0, "16", "0", 1), back0),
		"no such bus":   parts(com1, strings.Replace(disk0, `"bus":0`, `"bus":3`, 1), back0),
	} {
		r := newRig(t, "none")
		if got := r.v5("PUT", "/instance", ensureBody(components)); got.status != 0 {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
		r.change(func(tx *world.Tx) {
			if len(tx.State.Processes) != 0 {
				t.Errorf("%s: the process lives", name)
			}
		})
	}
	r := newRig(t, "none")
	if err := r.world.Files().Remove(bootrom); err != nil {
		t.Fatal(err)
	}
	if got := r.v5("PUT", "/instance", ensureBody(com1)); got.status != 0 {
		t.Errorf("without bootrom: %d %s", got.status, got.text)
	}
}

// A zone sees the devices and links that it was given, and its own files.
func TestCreationInAZone(t *testing.T) {
	r := newRig(t, "none")
	device := func(match string) world.Resource {
		return world.Resource{Type: "device", Properties: []world.Property{{Name: "match", Values: []string{match}}}}
	}
	zone := &world.Zone{Name: "z1", State: "installed", Config: world.Config{Zonepath: "/zone/z1"}}
	zone.Kernel = &world.Kernel{ID: 1, State: "running", Config: world.Config{Zonepath: "/zone/z1", IPType: "exclusive",
		Resources: []world.Resource{device("/dev/vmm/*"), device("/dev/vmmctl"), device("/dev/viona"), device("/dev/zvol/rdsk/rpool/given")}}}
	r.change(func(tx *world.Tx) {
		tx.State.Zones = append(tx.State.Zones, zone)
		tx.State.Processes[0].Zone = "z1"
		for _, name := range []string{"rpool/given", "rpool/other"} {
			tx.State.Datasets[name] = &world.Dataset{Name: name, Type: "volume"}
		}
	})
	r.file("/zone/z1/root/vms/disk.img", 0o644)
	data, err := host.ReadFile(r.world.Files(), bootrom)
	if err != nil {
		t.Fatal(err)
	}
	r.file("/zone/z1/root"+bootrom, 0o644)
	if err := r.world.Files().Append("/zone/z1/root"+bootrom, data); err != nil {
		t.Fatal(err)
	}
	volume := func(name string) string {
		return strings.Replace(back0, "/vms/disk.img", "/dev/zvol/rdsk/rpool/"+name, 1)
	}
	for components, status := range map[string]int{
		parts(com1, net0, netBack):          500, // still in the global zone
		parts(com1, disk0, volume("other")): 500,
		parts(com1, disk0, volume("given")): 201,
	} {
		r.change(func(tx *world.Tx) { tx.State.Processes[0].VM = nil })
		if got := r.v5("PUT", "/instance", ensureBody(components)); got.status != status {
			t.Errorf("%s: %d %s", components, got.status, got.text)
		}
	}
	r.change(func(tx *world.Tx) {
		tx.State.Processes[0].VM = nil
		if err := network.LendLink(tx, "z1", "vnic0"); err != nil {
			t.Error(err)
		}
	})
	r.ensure()
	r.change(func(tx *world.Tx) {
		tx.State.Processes[0].VM = nil
		zone.Kernel.Config.Resources = zone.Kernel.Config.Resources[:2]
	})
	if got := r.v5("PUT", "/instance", ensureBody(parts(com1, net0, netBack))); got.status != 500 {
		t.Errorf("without /dev/viona: %d %s", got.status, got.text)
	}
}

func TestAMachineHoldsItsLinks(t *testing.T) {
	r := newRig(t, "none")
	r.ensure()
	r.change(func(tx *world.Tx) {
		if err := network.DeleteLink(tx, network.FindLink(tx, "vnic0")); err != network.LinkBusy {
			t.Errorf("delete vnic0: %v", err)
		}
	})
	r.v5("PUT", "/instance/state", `"Stop"`)
	r.change(func(tx *world.Tx) {
		if err := network.DeleteLink(tx, network.FindLink(tx, "vnic0")); err != nil {
			t.Errorf("delete vnic0 of a destroyed machine: %v", err)
		}
	})
}

// While the parts are made the machine is known, but not live.
func TestEnsureBlocksUntilThePartsExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "none")
		r.change(func(tx *world.Tx) {
			tx.State.Processes[0].VM = &world.VM{Properties: []byte(`{}`), Spec: []byte(`{"components":{}}`), Ready: tx.Now.Add(time.Minute),
				Timeline: []world.Timepoint{{State: "Creating", Generation: 1, From: tx.Now}}}
		})
		if got := r.v5("GET", "/instance", ""); got.status != 200 {
			t.Errorf("get: %d", got.status)
		}
		r.wants(r.v5("PUT", "/instance/state", `"Run"`), 424, "NoInstance", "Server not initialized (no instance)")
		r.wants(r.v5("PUT", "/instance", ensureBody(com1)), 409, "AlreadyInitialized", "instance already initialized")
		time.Sleep(time.Minute)
		if got := r.v5("PUT", "/instance/state", `"Run"`); got.status != 204 {
			t.Errorf("run: %d", got.status)
		}
	})
}

// A migration target whose source does not answer fails.
func TestMigrationTarget(t *testing.T) {
	r := newRig(t, "none")
	const id = "66666666-6666-4666-8666-666666666666"
	body := ensureBody(com1)
	at := strings.Index(body, `"init"`)
	init := func(replace string) string {
		return body[:at] + `"init":{"method":"MigrationTarget","value":{"migration_id":"` + id + `","src_addr":"[fd00::1]:12400","replace_components":` + replace + `}}}`
	}
	if got := r.v5("PUT", "/instance", init(`{"x":{"component":"FileStorageBackend","spec":{}}}`)); got.status != 400 || !strings.Contains(got.text, "unknown variant `FileStorageBackend`") {
		t.Errorf("a file backend is no replacement: %d %s", got.status, got.text)
	}
	r.wants(r.v5("PUT", "/instance", init(`{"x":{"component":"VirtioNetworkBackend","spec":{"vnic_name":"v0"}}}`)), 500, "Internal", "Internal Server Error")
	want := map[string]any{"migration_in": map[string]any{"id": id, "state": "Sync"}, "migration_out": nil}
	if diff := cmp.Diff(want, r.v5("GET", "/instance/migration-status", "").body); diff != "" {
		t.Error(diff)
	}
	if got := r.v5("GET", "/instance/spec", "").body["spec"]; cmp.Diff(map[string]any{"type": "WaitingForMigrationSource"}, got) != "" {
		t.Errorf("spec %v", got)
	}
}
