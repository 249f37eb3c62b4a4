package propolis

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/test/hosttest"
)

const (
	pid     = 1001
	bootrom = "/opt/oxide/propolis-server/blob/OVMF_CODE.fd"
)

// rig is a propolis-server in the global zone of a sled in memory, with a link
// vnic0 and a disk /vms/disk.img.
type rig struct {
	t     *testing.T
	world *world.World
}

func newRig(t *testing.T, latency string) *rig {
	t.Helper()
	r := &rig{t, boot.Memory(boot.Options{Latency: latency}, hosttest.Files)}
	r.change(func(tx *world.Tx) {
		tx.State.Processes = append(tx.State.Processes, &world.Process{
			PID: pid, Zone: world.GlobalZone, Listen: "192.168.77.10:12400",
			Argv: []string{"/bin/propolis-server", "run", "--metric-addr", "disable", bootrom, "192.168.77.10:12400"},
		})
		if err := network.CreateVNIC(tx, network.VNIC{Name: "vnic0", Over: "net0", Temporary: true}); err != nil {
			t.Fatal(err)
		}
	})
	r.file("/vms/disk.img", 0o644)
	return r
}

func (r *rig) change(fn func(*world.Tx)) {
	r.t.Helper()
	if err := r.world.Update(r.t.Context(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) file(name string, mode os.FileMode) {
	r.t.Helper()
	files := r.world.Files()
	if err := host.MkdirAll(files, filepath.Dir(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	f, err := files.Open(name, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		r.t.Fatal(err)
	}
	f.Close()
}

// response is what came back; status 0: the connection was broken off.
type response struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

// do sends a request with a version; "-" sends none.
func (r *rig) do(method, path, version, body string) (out response) {
	r.t.Helper()
	request := httptest.NewRequestWithContext(r.t.Context(), method, path, strings.NewReader(body))
	if version != "-" {
		request.Header.Set("api-version", version)
	}
	recorder := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				panic(p)
			}
			out = response{}
		}
	}()
	Handler(r.world, pid).ServeHTTP(recorder, request)
	result := recorder.Result()
	data, _ := io.ReadAll(result.Body)
	out = response{status: result.StatusCode, header: result.Header, text: string(data)}
	json.Unmarshal(data, &out.body)
	return out
}

func (r *rig) v5(method, path, body string) response {
	r.t.Helper()
	return r.do(method, path, "5.0.0", body)
}

// wants checks status, error_code and message.
func (r *rig) wants(got response, status int, code, message string) {
	r.t.Helper()
	gotCode, _ := got.body["error_code"].(string)
	if got.status != status || gotCode != code || got.body["message"] != message {
		r.t.Errorf("got %d %q %v, want %d %q %q", got.status, gotCode, got.body["message"], status, code, message)
	}
	if id, _ := got.body["request_id"].(string); id == "" || id != got.header.Get("x-request-id") {
		r.t.Errorf("request_id %q, x-request-id %q", id, got.header.Get("x-request-id"))
	}
}

// ensureBody is a request for the machine with these components, written as
// JSON members without the braces around them.
func ensureBody(components string) string {
	return fmt.Sprintf(`{"properties":{"id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99","name":"web-01","description":"d",
"metadata":{"silo_id":"11111111-1111-4111-8111-111111111111","project_id":"22222222-2222-4222-8222-222222222222",
"sled_id":"33333333-3333-4333-8333-333333333333","sled_serial":"S","sled_revision":1,"sled_model":"m"}},
"init":{"method":"Spec","value":{"spec":{"board":{"cpus":2,"memory_mb":2048,
"chipset":{"type":"i440_fx","value":{"enable_pcie":false}}},"components":{%s}}}}}`, components)
}

// Parts of machines.
const (
	com1    = `"com1":{"type":"serial_port","component":{"num":"com1"}}`
	disk0   = `"disk0":{"type":"virtio_disk","component":{"backend_id":"back0","pci_path":{"bus":0,"device":16,"function":0}}}`
	back0   = `"back0":{"type":"file_storage_backend","component":{"path":"/vms/disk.img","readonly":false,"block_size":512,"workers":null}}`
	net0    = `"net0":{"type":"virtio_nic","component":{"backend_id":"nb","interface_id":"44444444-4444-4444-8444-444444444444","pci_path":{"bus":0,"device":8,"function":0}}}`
	netBack = `"nb":{"type":"virtio_network_backend","component":{"vnic_name":"vnic0"}}`
)

// nvme0 is an NVMe disk, with more fields behind those that each version has.
func nvme0(more string) string {
	return `"disk0":{"type":"nvme_disk","component":{"backend_id":"back0","pci_path":{"bus":0,"device":16,"function":0},"serial_number":[` +
		strings.Repeat("32,", 19) + `32]` + more + `}}`
}

func parts(list ...string) string { return strings.Join(list, ",") }

// ensure makes a machine that works.
func (r *rig) ensure() {
	r.t.Helper()
	if got := r.v5("PUT", "/instance", ensureBody(parts(com1, disk0, back0, net0, netBack))); got.status != 201 || got.text != `{"migrate":null}` {
		r.t.Fatalf("ensure: %d %s", got.status, got.text)
	}
}

// state is the state now, and its generation.
func (r *rig) state() string {
	r.t.Helper()
	got := r.v5("GET", "/instance/state-monitor", `{"gen":0}`)
	if got.status != 200 {
		r.t.Fatalf("monitor: %d %s", got.status, got.text)
	}
	return fmt.Sprintf("%v %v", got.body["gen"], got.body["state"])
}

// Router and header rules of dropshot 0.17 (versioning.rs, router.rs).
func TestVersionHeader(t *testing.T) {
	r := newRig(t, "none")
	for header, message := range map[string]string{
		"-": `missing or bad value for header "api-version": ""`, "5": `missing or bad value for header "api-version": "5"`,
		"v5": `missing or bad value for header "api-version": "v5"`, "5.0": `missing or bad value for header "api-version": "5.0"`,
		"05.0.0": `missing or bad value for header "api-version": "05.0.0"`, "5.0.x": `missing or bad value for header "api-version": "5.0.x"`,
		"":      `missing or bad value for header "api-version": ""`,
		"7.0.0": "server does not support this API version: 7.0.0",
		"6.0.1": "server does not support this API version: 6.0.1",
	} {
		r.wants(r.do("GET", "/nowhere", header, ""), 400, "", message)
	}
	for _, header := range []string{"6.0.0", "5.0.1", "5.0.0", "4.2.7", "0.9.0", "5.0.0-rc.1", "1.0.0+build"} {
		r.wants(r.do("GET", "/instance", header, ""), 424, "NoInstance", "Server not initialized (no instance)")
	}
}

// A server of an older version refuses what is newer, and nothing else.
func TestAnOlderServerRefusesNewerVersions(t *testing.T) {
	for text, newest := range map[string]int{"": 5, "5.0.0": 5, "3": 3} {
		r := newRig(t, "none")
		r.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultOldServer, Match: "propolis", Text: text}) })
		for major := 1; major <= 6; major++ {
			header := fmt.Sprintf("%d.0.0", major)
			got := r.do("GET", "/instance", header, "")
			if major <= newest {
				r.wants(got, 424, "NoInstance", "Server not initialized (no instance)")
			} else {
				r.wants(got, 400, "", "server does not support this API version: "+header)
			}
		}
	}
}

func TestRouting(t *testing.T) {
	r := newRig(t, "none")
	r.wants(r.v5("GET", "/nowhere", ""), 404, "", "Not Found")
	r.wants(r.v5("GET", "/instance/disk/x/status/more", ""), 404, "", "Not Found")
	got := r.v5("POST", "/instance", "")
	r.wants(got, 405, "", "Method Not Allowed")
	if diff := cmp.Diff([]string{"PUT", "GET"}, got.header.Values("Allow")); diff != "" {
		t.Errorf("Allow: %s", diff)
	}
	r.wants(r.do("GET", "/instance/disk/x/status", "0.5.0", ""), 404, "", "Not Found")
	r.wants(r.do("GET", "/instance/disk/x/status", "1.0.0", ""), 424, "NoInstance", "Server not initialized (no instance)")
	r.wants(r.v5("POST", "/instance/disk/x/snapshot/y", ""), 400, "", "bad parameter in URL path: UUID parsing failed: y")
}

func TestRequestBodies(t *testing.T) {
	r := newRig(t, "none")
	r.wants(r.v5("PUT", "/instance", strings.Repeat(" ", 1<<20+1)), 400, "", "request body exceeded maximum size of 1048576 bytes")
	for body, opens := range map[string]string{
		"": "it is not one JSON value", "{": "it is not one JSON value", "{x": "it is not one JSON value", "{} {}": "it is not one JSON value",
		"{}": ": missing field `properties`", `"Run"`: ": invalid type, expected struct InstanceEnsureRequest",
	} {
		if got := r.v5("PUT", "/instance", body); got.status != 400 || !strings.HasPrefix(fmt.Sprint(got.body["message"]), "unable to parse JSON body: "+opens) {
			t.Errorf("%q: %d %v, want %q", body, got.status, got.body["message"], opens)
		}
	}
	request := httptest.NewRequestWithContext(t.Context(), "PUT", "/instance/state", strings.NewReader(`"Run"`))
	request.Header.Set("api-version", "5.0.0")
	request.Header.Set("Content-Type", "text/plain")
	recorder := httptest.NewRecorder()
	Handler(r.world, pid).ServeHTTP(recorder, request)
	if recorder.Code != 400 || !strings.Contains(recorder.Body.String(), `expected content type \"application/json\", got \"text/plain\"`) {
		t.Errorf("text/plain: %d %s", recorder.Code, recorder.Body)
	}
}

func TestWithoutAMachine(t *testing.T) {
	r := newRig(t, "none")
	for _, line := range []string{
		"GET /instance", "GET /instance/spec", `PUT /instance/state "Run"`, `GET /instance/state-monitor {"gen":0}`, "GET /instance/migration-status",
		"POST /instance/nmi", "GET /instance/serial/history?from_start=0", "GET /instance/disk/x/status",
		"POST /instance/disk/x/snapshot/7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99", `PUT /instance/disk/x/vcr {"vcr_json":"{}"}`,
	} {
		f := append(strings.SplitN(line, " ", 3), "")
		r.wants(r.v5(f[0], f[1], f[2]), 424, "NoInstance", "Server not initialized (no instance)")
	}
	r.wants(r.v5("PUT", "/instance/state", `"Pause"`), 400, "",
		"unable to parse JSON body: : unknown variant `Pause`")
}

func TestAProcessThatIsGoneAnswersNothing(t *testing.T) {
	r := newRig(t, "none")
	r.change(func(tx *world.Tx) { tx.State.Processes = nil })
	if got := r.v5("GET", "/instance", ""); got.status != 0 {
		t.Errorf("got %d %s", got.status, got.text)
	}
}
