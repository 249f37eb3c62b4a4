package commands_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/google/uuid"
)

// openAPI is an OpenAPI document that requests and answers are held to.
type openAPI struct {
	doc    *openapi3.T
	router routers.Router
}

// openAPIOf reads a document, with two repairs: a component's key is said to be a
// UUID or a string, of which each UUID is both; and patterns that look around are
// not Go's.
func openAPIOf(t *testing.T, data []byte) openAPI {
	t.Helper()
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	repair(raw)
	data, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err == nil {
		err = doc.Validate(t.Context(), openapi3.DisableExamplesValidation())
	}
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return openAPI{doc, router}
}

func repair(v any) {
	switch v := v.(type) {
	case map[string]any:
		if p, ok := v["pattern"].(string); ok && strings.Contains(p, "(?") {
			delete(v, "pattern")
		}
		if _, has := v["SpecKey"]; has {
			v["SpecKey"] = map[string]any{"type": "string"}
		}
		for _, below := range v {
			repair(below)
		}
	case []any:
		for _, below := range v {
			repair(below)
		}
	}
}

// hold holds one exchange to the document; a stream, but for its head.
func (d openAPI) hold(t *testing.T, r *http.Request, body string, reply *http.Response, answer []byte) (operation string) {
	t.Helper()
	asked, err := http.NewRequestWithContext(t.Context(), r.Method, r.URL.RequestURI(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	asked.Header = r.Header
	asked.URL.Path, asked.URL.RawPath = r.URL.EscapedPath(), "" // the router takes an escaped slash for one
	route, params, err := d.router.FindRoute(asked)
	if err != nil {
		t.Errorf("%s %s is not in the document: %v", r.Method, r.URL.Path, err)
		return ""
	}
	for name, value := range params {
		params[name], _ = url.PathUnescape(value)
	}
	input := &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(t.Context(), input); err != nil {
		t.Errorf("%s %s: the request: %v", r.Method, r.URL.Path, err)
	}
	if reply.Header.Get("Content-Type") != "text/event-stream" {
		output := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: reply.StatusCode, Header: reply.Header, Body: io.NopCloser(bytes.NewReader(answer))}
		if err := openapi3filter.ValidateResponse(t.Context(), output); err != nil {
			t.Errorf("%s %s: the answer %d %s: %v", r.Method, r.URL.Path, reply.StatusCode, answer, err)
		}
	}
	return route.Operation.OperationID
}

// Each operation of the agent's own document is called, and requests and answers
// are as it says; those of VMs also as the document of omicron's sled agent says,
// where that is at hand.
func TestTheAgentAnswersAsItsDocumentSays(t *testing.T) {
	s := newSled(t, small(), flat)
	s.run("bootstrap")
	a := s.agent(t, s.Host())
	_, text := a.ask("GET", "/openapi.json", "")
	own := openAPIOf(t, []byte(text))
	committed, err := os.ReadFile("../docs/agent-openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var is, was bytes.Buffer
	if json.Compact(&is, []byte(text)) != nil || json.Compact(&was, committed) != nil || !bytes.Equal(is.Bytes(), was.Bytes()) {
		t.Error("docs/agent-openapi.json is not what the agent answers: make docs writes it")
	}
	documents := []openAPI{own}
	if theirs, err := os.ReadFile(filepath.Join("..", "..", "shared", "openapi", "sled-agent-48-vmms-only.json")); err == nil {
		documents = append(documents, openAPIOf(t, theirs))
	}

	vm := "/vmms/" + uuid.NewString()
	called := map[string]bool{}
	call := func(method, path, body string, want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://sled"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("api-version", latest)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		reply, err := a.http.Do(r)
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
				called[d.hold(t, r, body, reply, answer)] = true
			}
		}
	}
	const (
		address  = `{"type":"floating","value":"203.0.113.9"}`
		leave    = `{"leave":{"group_ip":"224.0.0.1","sources":[]}}`
		snapshot = `{"snapshot_id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"}`
	)
	call("GET", "/healthz", "", 200)
	call("GET", "/metrics", "", 200)
	call("GET", "/openapi.json", "", 200)
	call("PUT", vm, vmBody(t, 48, uuid.NewString(), 1).text(t), 200)
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
	a.eventually(strings.TrimPrefix(vm, "/vmms/"), "running")
	call("POST", vm+"/disks/"+uuid.NewString()+"/snapshot", snapshot, 404)
	call("PUT", vm+"/state", `{"state":{"type":"reboot"}}`, 200)
	call("DELETE", vm, "", 200)

	s.run("instance ensure web1")
	call("GET", "/instances", "", 200)
	call("GET", "/instances/web1", "", 200)
	call("GET", "/instances/web9", "", 404)
	call("GET", "/instances?for=running&instances=web1", "", 200)
	call("GET", "/instances?for=gone&instances=web1", "", 400)
	call("GET", "/instance-events?instances=web1", "", 200)
	call("GET", "/instance-events?instances=web9", "", 404)
	call("PUT", "/instances/web1?protect=false", `{"cpus":4,"disks":[],"nics":[{"over":"","mac":"","vlan":3}],"address":"dhcp"}`, 409)
	call("PUT", "/instances/web1?protect=maybe", `{}`, 400)
	call("PUT", "/instances/web3?wait=true", `{"cpus":1,"memory":1073741824}`, 200)
	call("PUT", "/instances/web1/state", `{"state":"stopped"}`, 200)
	call("PUT", "/instances/web1/state?wait=true", `{"state":"running"}`, 200)
	call("DELETE", "/instances/web1", "", 200)
	for _, d := range documents {
		for path, item := range d.doc.Paths.Map() {
			for method, operation := range item.Operations() {
				if !called[operation.OperationID] {
					t.Errorf("%s %s (%s) was not called", method, path, operation.OperationID)
				}
			}
		}
	}
}
