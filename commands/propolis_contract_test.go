package commands_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/sledctl/sledctl/host"
)

// proxied is a host on which every request to a Propolis is held to the
// published document of the version that it names.
type proxied struct {
	host.Host
	t *testing.T

	mu   sync.Mutex
	by   map[string]routers.Router
	seen map[string]int // requests by method and path
}

// router is the document of a version. A component's key is said to be a UUID
// or a string, of which each UUID is both: that is repaired.
func (p *proxied) router(version string) routers.Router {
	if r, ok := p.by[version]; ok {
		return r
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", "openapi", "propolis-server-"+version+".json"))
	var raw map[string]any
	if err == nil {
		err = json.Unmarshal(data, &raw)
	}
	if err == nil {
		raw["components"].(map[string]any)["schemas"].(map[string]any)["SpecKey"] = map[string]any{"type": "string"}
		data, err = json.Marshal(raw)
	}
	var doc *openapi3.T
	if err == nil {
		doc, err = openapi3.NewLoader().LoadFromData(data)
	}
	var router routers.Router
	if err == nil {
		doc.Servers = nil
		router, err = legacy.NewRouter(doc)
	}
	if err != nil {
		p.t.Errorf("version %q: %v", version, err)
	}
	p.by[version] = router
	return router
}

// Dial is part of host.Host.
func (p *proxied) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	there, err := p.Host.Dial(ctx, network, address)
	if err != nil || !strings.HasSuffix(address, ":12400") {
		return there, err
	}
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		defer there.Close()
		r, err := http.ReadRequest(bufio.NewReader(theirs))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		p.hold(r, body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		go func() { _ = r.Write(there) }()
		_, _ = io.Copy(theirs, there)
	}()
	return ours, nil
}

func (p *proxied) hold(r *http.Request, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[r.Method+" "+r.URL.Path]++
	router := p.router(r.Header.Get("api-version"))
	if router == nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	route, params, err := router.FindRoute(r)
	if err == nil {
		err = openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route})
	}
	if err != nil {
		p.t.Errorf("%s %s: %v\n%s", r.Method, r.URL, err, body)
	}
}

// Every request that the verbs send is one that the published document of its
// version knows, whatever the machine is made of.
func TestRequestsOfTheVerbsMatchThePublishedDocument(t *testing.T) {
	if _, err := os.Stat(filepath.Join("..", "..", "shared", "openapi")); err != nil {
		t.Skip("shared/openapi is not here")
	}
	s := newSled(t, small(), "")
	p := &proxied{Host: s.Host(), t: t, by: map[string]routers.Router{}, seen: map[string]int{}}
	s.write("/vms/a.img", "")
	s.write("/vms/b.img", "")
	config := filepath.Join(t.TempDir(), "m.toml")
	text := "[main]\nboot_order = [\"44444444-4444-4444-8444-44444444444A\"]\n[[pci_bridge]]\npci-path = \"0.20.0\"\ndownstream-bus = 1\n" +
		"[block_dev.b]\ntype = \"file\"\npath = \"/vms/b.img\"\nworkers = 4\n" +
		"[dev.44444444-4444-4444-8444-44444444444A]\ndriver = \"pci-virtio-block\"\nblock_dev = \"b\"\npci-path = \"0.4.0\"\n" +
		"[dev.net0]\ndriver = \"pci-virtio-viona\"\nvnic = \"x\"\npci-path = \"1.8.0\"\n" +
		"[dev.sock]\ndriver = \"pci-virtio-socket\"\nguest_cid = 16\npci-path = \"0.25.0\"\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s.run("bootstrap")
	for _, line := range []string{
		"instance ensure web1 --disk /vms/a.img --nic over=net0", "instance ensure web2 --spec " + config, "instance ensure web2 --spec " + config,
		"propolis get --instance web1", "propolis reboot --instance web1", "propolis spec show web2 --running", "propolis spec diff web2 --detailed-exitcode",
		"instance list", "instance reboot web2", "propolis stop --instance web2", "instance stop web2", "instance delete web1",
	} {
		if a := s.on(t.Context(), p, line); a.exit != 0 {
			t.Errorf("sledctl %s: exit %d: %s", line, a.exit, a.errs)
		}
	}
	for _, want := range []string{"PUT /instance", "GET /instance", "PUT /instance/state", "GET /instance/state-monitor", "GET /instance/spec"} {
		if p.seen[want] == 0 {
			t.Errorf("no %s among %v", want, p.seen)
		}
	}
}
