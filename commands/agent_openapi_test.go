package commands_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/test/sledtest"
)

// hold holds one exchange to a document; a stream, but for its head.
func hold(t *testing.T, d *dropshottest.Document, r *http.Request, body string, reply *http.Response, answer []byte) (operation string) {
	t.Helper()
	asked := r.Clone(t.Context())
	asked.Body = io.NopCloser(strings.NewReader(body))
	if err := d.Request(asked); err != nil {
		t.Errorf("%s %s: the request: %v", r.Method, r.URL.Path, err)
	}
	if err := d.Answer(asked, reply.StatusCode, reply.Header, answer); err != nil {
		t.Errorf("%s %s: the answer %d %s: %v", r.Method, r.URL.Path, reply.StatusCode, answer, err)
	}
	operation, _ = d.Operation(asked)
	return operation
}

// Each operation of the agent's own document is called, and requests and answers
// are as it says; those of VMs also as the document of omicron's sled agent says,
// where that is at hand.
func TestTheAgentAnswersAsItsDocumentSays(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.Flat)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	_, text := a.Ask("GET", "/openapi.json", "")
	own, err := dropshottest.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile("../docs/agent-openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var is, was bytes.Buffer
	if json.Compact(&is, []byte(text)) != nil || json.Compact(&was, committed) != nil || !bytes.Equal(is.Bytes(), was.Bytes()) {
		t.Error("docs/agent-openapi.json is not what the agent answers: make docs writes it")
	}
	documents := []*dropshottest.Document{own}
	theirs, err := dropshottest.Open("sled-agent-48-vmms-only.json")
	switch {
	case err == nil:
		documents = append(documents, theirs)
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	}

	vm := "/vmms/" + uuid.NewString()
	called := map[string]bool{}
	call := func(method, path, body string, want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://sled"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("api-version", sledtest.LatestAPI)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		reply, err := a.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		var answer []byte
		if reply.Header.Get("Content-Type") != "text/event-stream" {
			answer, err = io.ReadAll(reply.Body)
		}
		if err != nil || reply.StatusCode != want {
			t.Errorf("%s %s: %d %s, %v", method, path, reply.StatusCode, answer, err)
		}
		for i, d := range documents {
			if i == 0 || strings.HasPrefix(path, vm) && !strings.HasSuffix(path, "/events") {
				called[hold(t, d, r, body, reply, answer)] = true
			}
		}
	}
	const (
		address  = `{"type":"floating","value":"203.0.113.9"}`
		leave    = `{"leave":{"group_ip":"224.0.0.1","sources":[]}}`
		snapshot = `{"snapshot_id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"}`
		where    = `{"zpool_id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a98","dataset_id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99","encrypted_at_rest":false`
	)
	call("GET", "/healthz", "", 200)
	call("GET", "/metrics", "", 200)
	call("GET", "/openapi.json", "", 200)
	call("GET", "/status", "", 200)
	call("GET", "/zones", "", 200)
	call("GET", "/inventory", "", 404) // it is in no control plane
	call("GET", "/sled-identifiers", "", 404)
	call("PUT", "/omicron-config", `{"generation":1,"disks":{},"datasets":{},"zones":{},"remove_mupdate_override":null,"host_phase_2":{"slot_a":{"type":"current_contents"},"slot_b":{"type":"current_contents"}},"measurements":[]}`, 404)
	call("POST", "/local-storage", where+`,"dataset_size":8192,"volume_size":4096}`, 503) // there is no such pool
	call("DELETE", "/local-storage", where+`}`, 503)
	call("GET", "/capacity", "", 200)
	call("GET", "/keeper", "", 200)
	call("PUT", "/keeper", `{"keeper":"fleet","from":"nexus"}`, 409)
	call("PUT", "/instances/"+uuid.NewString()+"/registration", `{"propolis_id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99","generation":1,"document":{}}`, 400) // the operator's
	const mapping = `{"physical_host_ip":"fd00:1122:3344:102::1","virtual_ip":"172.30.0.77","virtual_mac":"A8:40:25:FF:00:77","vni":100}`
	call("GET", "/v2p", "", 200) // the sled has no VPCs
	call("PUT", "/v2p", mapping, 400)
	call("DELETE", "/v2p", mapping, 400)
	call("GET", "/vpc-routes", "", 200)
	call("PUT", "/vpc-routes", `[{"id":{"kind":{"type":"system"},"vni":100},"routes":[]}]`, 204)
	call("PUT", "/eip-gateways", `{"mappings":{}}`, 204)
	call("PUT", "/vpc/7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a98/firewall/rules", `{"vni":100,"rules":[]}`, 400)
	const bundle = "/zones/bundles/z/7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"
	call("GET", "/zones/bundles?filter=z", "", 200)
	call("GET", "/zones/bundles/z", "", 200)
	call("GET", bundle, "", 404)
	call("DELETE", bundle, "", 404)
	call("POST", "/zones/bundle-cleanup", "", 200)
	call("GET", "/zones/bundle-cleanup/utilization", "", 200)
	call("GET", "/zones/bundle-cleanup/context", "", 200)
	call("PUT", "/zones/bundle-cleanup/context", `{}`, 204)
	call("GET", "/operations", "", 200)
	call("GET", "/operations?last=0", "", 400)
	call("GET", "/operation-events?last=5", "", 200)
	call("GET", "/operation-events?last=0", "", 400)
	call("PUT", vm, sledtest.VMBody(t, 48, uuid.NewString(), 1).Text(t), 200)
	call("GET", "/vmms", "", 200)
	call("GET", vm+"/state", "", 200)
	call("GET", vm+"/events", "", 200)
	call("GET", "/events", "", 200)
	call("PUT", vm+"/external-ip", address, 400)
	call("DELETE", vm+"/external-ip", address, 204)
	call("PUT", vm+"/multicast-group", leave, 204)
	call("DELETE", vm+"/multicast-group", leave, 204)
	call("PUT", vm+"/attached-subnets", `{"subnets":[]}`, 204)
	call("POST", vm+"/attached-subnets", `{"kind":"vpc","subnet":"10.1.0.0/16"}`, 400)
	call("DELETE", vm+"/attached-subnets", "", 204)
	call("DELETE", vm+"/attached-subnets/10.1.0.0%2F16", "", 204)
	call("PUT", vm+"/state", `{"state":{"type":"running"}}`, 200)
	a.Eventually(strings.TrimPrefix(vm, "/vmms/"), "running")
	call("POST", vm+"/disks/"+uuid.NewString()+"/snapshot", snapshot, 404)
	call("PUT", vm+"/state", `{"state":{"type":"reboot"}}`, 200)
	call("DELETE", vm, "", 200)

	s.Run("instance ensure web1")
	call("GET", "/instances", "", 200)
	call("GET", "/instances?last=true", "", 200)
	call("GET", "/instances/web1", "", 200)
	call("GET", "/instances/web9", "", 404)
	call("GET", "/instances/web1/differences", "", 200)
	call("GET", "/instances/web9/differences", "", 404)
	call("GET", "/instances/web1/document", "", 200)
	call("GET", "/instances/web9/document", "", 404)
	call("GET", "/instances?for=running&instances=web1", "", 200)
	call("GET", "/instances?for=gone&instances=web1", "", 400)
	call("GET", "/instance-events?instances=web1", "", 200)
	call("GET", "/instance-events?instances=web9", "", 404)
	call("GET", "/instance-events?ids=6f1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99", "", 200)
	call("GET", "/instance-logs?instances=web1&last=5", "", 200)
	call("GET", "/instance-logs?instances=web9", "", 404)
	call("GET", "/instance-logs", "", 400)
	call("GET", "/instance-log-data?instances=web1&last=5", "", 200)
	call("GET", "/instance-log-data?instances=web9&follow=true", "", 404)
	call("GET", "/instance-log-data", "", 400)
	call("GET", "/instance-log-events?instances=web1", "", 200)
	call("GET", "/instance-log-events?instances=web9", "", 404)
	call("GET", "/instance-log-events?instances=web1&previous=true", "", 400)
	call("PUT", "/instances/web1?protect=false", `{"cpus":4,"disks":[],"nics":[{"over":"","mac":"","vlan":3}],"address":"dhcp"}`, 409)
	call("PUT", "/instances/web1?protect=maybe", `{}`, 400)
	call("PUT", "/instances/web3?wait=true", `{"cpus":1,"memory":1073741824}`, 200)
	call("PUT", "/instances/web1/state", `{"state":"stopped"}`, 200)
	call("PUT", "/instances/web1/state?wait=true", `{"state":"running"}`, 200)
	call("PUT", "/keeper", `{"keeper":"operator","from":"operator"}`, 200)
	call("PUT", "/instances/web1/keeper", `{"keeper":"operator"}`, 200)
	call("PUT", "/instances/web1/migration", `{}`, 400)
	call("DELETE", "/instances/web1", "", 200)
	for _, d := range documents {
		for path, item := range d.Paths.Map() {
			for method, operation := range item.Operations() {
				if !called[operation.OperationID] {
					t.Errorf("%s %s (%s) was not called", method, path, operation.OperationID)
				}
			}
		}
	}
}
