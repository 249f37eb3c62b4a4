package propolis

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/refdata"
)

// conforms checks a request and what is answered against the document.
func (r *rig) conforms(doc *dropshottest.Document, method, path, body string, status int) {
	r.t.Helper()
	request := httptest.NewRequestWithContext(r.t.Context(), method, path, strings.NewReader(body))
	request.Header.Set("api-version", doc.Info.Version)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if err := doc.Request(request); err != nil {
		r.t.Errorf("%s %s: request: %v", method, path, err)
	}
	request.Body = io.NopCloser(strings.NewReader(body))
	recorder := httptest.NewRecorder()
	Handler(r.world, pid).ServeHTTP(recorder, request)
	if recorder.Code != status {
		r.t.Errorf("%s %s: %d %s, want %d", method, path, recorder.Code, recorder.Body, status)
	}
	if err := doc.Answer(request, recorder.Code, recorder.Header(), recorder.Body.Bytes()); err != nil {
		r.t.Errorf("%s %s: reply %d: %v", method, path, recorder.Code, err)
	}
}

func TestRepliesMatchThePublishedDocument(t *testing.T) {
	for version, disk := range map[string]string{"5.0.0": nvme0(""), "6.0.0": nvme0(`,"has_write_cache":false`)} {
		t.Run(version, func(t *testing.T) {
			repliesMatch(t, dropshottest.Published(t, "propolis-server-"+version+".json"), disk)
		})
	}
}

func repliesMatch(t *testing.T, doc *dropshottest.Document, disk string) {
	t.Helper()
	r := newRig(t, "none")
	body := ensureBody(parts(com1, disk, back0, net0, netBack))
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/instance", "", 424},
		{"PUT", "/instance", ensureBody(back0), 400},
		{"PUT", "/instance", body, 201},
		{"PUT", "/instance", body, 409},
		{"GET", "/instance", "", 200},
		{"GET", "/instance/spec", "", 200},
		{"GET", "/instance/state-monitor", `{"gen":0}`, 200},
		{"GET", "/instance/migration-status", "", 200},
		{"GET", "/instance/serial/history?from_start=0", "", 200},
		{"POST", "/instance/nmi", "", 200},
		{"GET", "/instance/disk/back0/status", "", 404},
		{"PUT", "/instance/disk/back0/vcr", `{"vcr_json":"{}"}`, 404},
		{"PUT", "/instance/state", `"Reboot"`, 403},
		{"PUT", "/instance/state", `"Run"`, 204},
		{"PUT", "/instance/state", `"Stop"`, 204},
		{"GET", "/instance/state-monitor", `{"gen":99}`, 410},
		{"PUT", "/instance", ensureBody(parts(com1, net0, strings.Replace(netBack, "vnic0", "vnic9", 1))), 500},
	} {
		r.conforms(doc, c.method, c.path, c.body, c.status)
	}
}

// The worked examples: requests are taken, replies look like those given.
func TestSamples(t *testing.T) {
	doc := dropshottest.Published(t, "propolis-server-5.0.0.json")
	sample := func(name string) string {
		t.Helper()
		return string(refdata.File(t, "samples/propolis/"+name))
	}
	r := newRig(t, "none")
	r.conforms(doc, http.MethodPut, "/instance", sample("ensure-spec-full.json"), 500) // it names a Crucible volume that is none
	r.conforms(doc, http.MethodPut, "/instance", sample("ensure-migration-target.json"), 500)
	r.conforms(doc, http.MethodPut, "/instance", sample("ensure-spec-minimal.json"), 500) // its disk and link are not here
	r.change(func(tx *world.Tx) {
		tx.State.Datasets["rpool/vms/web-01/boot"] = &world.Dataset{Name: "rpool/vms/web-01/boot", Type: "volume"}
		tx.State.Links = append(tx.State.Links, &world.Link{Name: "vnic_web01", Class: "vnic", Over: "net0", Up: true})
	})
	r.conforms(doc, http.MethodPut, "/instance", sample("ensure-spec-minimal.json"), 201)
	r.conforms(doc, http.MethodPut, "/instance/state", sample("state-put.json"), 204)
	r.conforms(doc, http.MethodGet, "/instance/state-monitor", sample("state-monitor-request.json"), 200)
	for name, c := range map[string][2]string{
		"state-monitor-response.json":        {"GET", "/instance/state-monitor"},
		"error-already-initialized-409.json": {"PUT", "/instance"},
		"migration-status.json":              {"GET", "/instance/migration-status"},
		"serial-history.json":                {"GET", "/instance/serial/history?from_start=0"},
		"spec-get-response.json":             {"GET", "/instance/spec"},
	} {
		var want map[string]any
		if err := json.Unmarshal([]byte(sample(name)), &want); err != nil {
			t.Fatal(err)
		}
		body := map[string]string{"/instance/state-monitor": `{"gen":0}`, "/instance": sample("ensure-spec-minimal.json")}[c[1]]
		got := r.v5(c[0], c[1], body)
		if w, g := keysOf(want), keysOf(got.body); w != g {
			t.Errorf("%s: keys %s, want %s", name, g, w)
		}
	}
}

func keysOf(m map[string]any) string { return strings.Join(sortedKeys(m), " ") }
