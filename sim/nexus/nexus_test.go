package nexus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
	"github.com/sledctl/sledctl/sim/nexus"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/test/hosttest"
)

const vm = "a8d0f0c4-0e5f-4a44-a5bd-5b3b3e1f6a01"

// agents are those of sleds, by their addresses. A nil one is not reached.
type agents map[string]http.HandlerFunc

// plane is a control plane of an era with the agents of its sleds.
func plane(t *testing.T, era string, agents agents, sleds ...string) nexus.Plane {
	t.Helper()
	w := boot.Memory(boot.Options{Seed: 1, M2: 1, U2: 1}, hosttest.Files)
	made, err := nexus.New("10.99.0.1:12221", era, sleds)
	if err == nil {
		err = w.Update(t.Context(), func(tx *world.Tx) error { tx.State.Nexus = made; return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	return nexus.Plane{World: w, Go: func(do func(context.Context)) { go do(t.Context()) }, Dial: func(_ context.Context, sled string) (net.Conn, error) {
		if agents[sled] == nil {
			return nil, errors.New("connection refused")
		}
		return exchangetest.Connect(agents[sled]), nil
	}}
}

// says is an agent that knows the VM.
func says(state string, gen uint64) http.HandlerFunc {
	return answers(200, fmt.Sprintf(`{"vmm_state":{"state":%q,"gen":%d,"time_updated":"2026-11-22T10:00:00Z"},"migration_in":null,"migration_out":null}`, state, gen))
}

func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const gone = `{"request_id":"r","error_code":"NO_SUCH_INSTANCE","message":"Not Found"}`

// send sends a request to the control plane.
func send(p nexus.Plane, method, path, version, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("api-version", version)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func ring(p nexus.Plane) int { return send(p, "POST", "/vmms/"+vm+"/doorbell", "2.0.0", "").Code }

// known is what the control plane knows of the VM.
func known(t *testing.T, p nexus.Plane) string {
	t.Helper()
	text := "nothing"
	err := p.World.View(t.Context(), func(tx *world.Tx) error {
		if v := tx.State.Nexus.VMs[vm]; v != nil {
			text = fmt.Sprintf("%s at %d on %s: %s", v.State, v.Gen, v.Sled, v.Check)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const upcallBody = `{"vmm_state":{"state":"migrating","gen":7,"time_updated":"2026-11-22T10:00:00Z"}}`

// Which ways there are in which era, and what an upcall's body is worth there.
func TestEras(t *testing.T) {
	for _, c := range []struct {
		era          string
		rung, called int
		believes     string
	}{
		{nexus.EraUpcall, 400, 204, "migrating at 7 on s1: success"},
		{nexus.EraBoth, 204, 204, "running at 3 on s1: success"},
		{nexus.EraDoorbell, 204, 404, "nothing"},
	} {
		rung := ring(plane(t, c.era, agents{"s1": says("running", 3)}, "s1"))
		p := plane(t, c.era, agents{"s1": says("running", 3)}, "s1")
		called := send(p, "PUT", "/vmms/"+vm, "1.0.0", upcallBody).Code
		if rung != c.rung || called != c.called || known(t, p) != c.believes {
			t.Errorf("%s: the doorbell %d, the upcall %d, by which it knows %s; want %d, %d, %s", c.era, rung, called, known(t, p), c.rung, c.called, c.believes)
		}
	}
}

// The result of asking, as the instance watcher judges it, and what the agent that rang
// is told.
func TestWhatComesOfAsking(t *testing.T) {
	for name, c := range map[string]struct {
		agent http.HandlerFunc
		rung  int
		knows string // of a VM that was running at 3
	}{
		"a newer state":             {says("stopping", 4), 204, "stopping at 4 on s1: success"},
		"an older one":              {says("starting", 2), 204, "running at 3 on s1: success"},
		"its end":                   {says("destroyed", 9), 204, "destroyed at 9 on s1: success"},
		"nothing is known of it":    {answers(404, gone), 204, "failed at 4 on s1: no_such_instance"},
		"404 without the code":      {answers(404, `{"request_id":"r","message":"Not Found"}`), 500, "running at 3 on s1: 404"},
		"410":                       {answers(410, `{"request_id":"r","error_code":"NO_SUCH_INSTANCE","message":"Gone"}`), 500, "running at 3 on s1: 410"},
		"503":                       {answers(503, `{"request_id":"r","error_code":"INSTANCE_CHANNEL_FULL","message":"Service Unavailable"}`), 500, "running at 3 on s1: 503"},
		"nobody is there":           {nil, 500, "running at 3 on s1: unreachable"},
		"a page":                    {answers(404, "<html>"), 500, "running at 3 on s1: client_error"},
		"half an answer":            {answers(200, `{"vmm_state":{"state":"stopping"`), 500, "running at 3 on s1: client_error"},
		"no generation":             {answers(200, `{"vmm_state":{"state":"stopping","time_updated":"2026-11-22T10:00:00Z"}}`), 500, "running at 3 on s1: client_error"},
		"a state that is none":      {says("repairing", 4), 500, "running at 3 on s1: client_error"},
		"a migration that is none":  {answers(200, `{"vmm_state":{"state":"running","gen":4,"time_updated":"2026-11-22T10:00:00Z"},"migration_in":{}}`), 500, "running at 3 on s1: client_error"},
		"a VM without its state":    {answers(200, `{}`), 500, "running at 3 on s1: client_error"},
		"a redirection of somebody": {answers(302, ""), 500, "running at 3 on s1: client_error"},
	} {
		t.Run(name, func(t *testing.T) {
			a := agents{"s1": says("running", 3)}
			p := plane(t, nexus.EraBoth, a, "s1")
			if code := ring(p); code != 204 {
				t.Fatalf("%d", code)
			}
			a["s1"] = c.agent
			if code := ring(p); code != c.rung || known(t, p) != c.knows {
				t.Errorf("told %d, knows %s; want %d, %s", code, known(t, p), c.rung, c.knows)
			}
		})
	}
}

// A VM is on the sled that knows it; where no sled does, the agent that rings is told
// so, unless one could not be asked.
func TestWhoseVMItIs(t *testing.T) {
	for _, c := range []struct {
		second http.HandlerFunc
		rung   int
		knows  string
	}{
		{says("running", 3), 204, "running at 3 on s2: success"},
		{answers(404, gone), 404, "nothing"},
		{nil, 500, "nothing"},
	} {
		p := plane(t, nexus.EraBoth, agents{"s1": answers(404, gone), "s2": c.second}, "s1", "s2")
		if code := ring(p); code != c.rung || known(t, p) != c.knows {
			t.Errorf("told %d, knows %s; want %d, %s", code, known(t, p), c.rung, c.knows)
		}
	}
}

// What has ended is not asked for again, and nothing is believed of it any more.
func TestAnEndIsTheEnd(t *testing.T) {
	var asked atomic.Int32
	a := agents{"s1": says("destroyed", 9)}
	p := plane(t, nexus.EraBoth, a, "s1")
	ring(p)
	a["s1"] = func(w http.ResponseWriter, r *http.Request) { asked.Add(1); says("running", 10)(w, r) }
	code := ring(p)
	if err := p.Sweep(t.Context()); err != nil || code != 204 || asked.Load() != 0 {
		t.Errorf("%d, asked %d times, %v", code, asked.Load(), err)
	}
	if got := known(t, p); got != "destroyed at 9 on s1: success" {
		t.Error(got)
	}
}

// The instance watcher finds within 30 s what no doorbell told.
func TestTheWatcherSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var agent atomic.Pointer[http.HandlerFunc] // nil: it is away
		p := plane(t, nexus.EraBoth, nil, "s1")
		p.Dial = func(context.Context, string) (net.Conn, error) {
			if answer := agent.Load(); answer != nil {
				return exchangetest.Connect(*answer), nil
			}
			return nil, errors.New("connection refused")
		}
		running := says("running", 3)
		agent.Store(&running)
		ring(p)
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan error, 1)
		go func() { watched <- p.Watch(ctx) }()
		synctest.Wait()
		for _, next := range []struct {
			agent http.HandlerFunc
			knows string
		}{
			{nil, "running at 3 on s1: unreachable"},
			{says("running", 3), "running at 3 on s1: success"},
			{says("stopping", 4), "stopping at 4 on s1: success"},
			{answers(404, gone), "failed at 5 on s1: no_such_instance"},
		} {
			before := known(t, p)
			agent.Store(nil)
			if next.agent != nil {
				agent.Store(&next.agent)
			}
			time.Sleep(nexus.Period - time.Second)
			synctest.Wait()
			if got := known(t, p); got != before {
				t.Errorf("too early: %s", got)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if got := known(t, p); got != next.knows {
				t.Errorf("%s, want %s", got, next.knows)
			}
		}
		cancel()
		if err := <-watched; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Later answers first, and asks then.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := plane(t, nexus.EraBoth, agents{"s1": func(w http.ResponseWriter, r *http.Request) { <-release; says("running", 3)(w, r) }}, "s1")
		if err := p.World.Update(t.Context(), func(tx *world.Tx) error { tx.State.Nexus.Later = true; return nil }); err != nil {
			t.Fatal(err)
		}
		if code := ring(p); code != 204 || known(t, p) != "nothing" {
			t.Errorf("%d, %s", code, known(t, p))
		}
		close(release)
		synctest.Wait()
		if got := known(t, p); got != "running at 3 on s1: success" {
			t.Error(got)
		}
	})
}

// What its makers have published of the internal API holds for what it answers,
// whatever happens to it.
func TestTheAnswersConform(t *testing.T) {
	doc := dropshottest.Published(t, "nexus-internal-1.0.0.json")
	for _, c := range []struct {
		version, body string
		agent         http.HandlerFunc
		fault         world.Fault
		want          int
		says          string
	}{
		{"1.0.0", upcallBody, says("running", 3), world.Fault{}, 204, ""},
		{"2.0.0", upcallBody, says("running", 3), world.Fault{}, 400, "server does not support this API version: 2.0.0"},
		{"1", upcallBody, says("running", 3), world.Fault{}, 400, `bad value for header`},
		{"1.0.0", `{"vmm_state":{}}`, says("running", 3), world.Fault{}, 400, "unable to parse JSON body"},
		{"1.0.0", upcallBody, nil, world.Fault{Name: world.FaultNexusFail, Exit: 500, Text: "Internal Server Error"}, 500, `"error_code":"Internal"`},
		{"1.0.0", upcallBody, nil, world.Fault{Name: world.FaultNexusFail, Exit: 404, Text: "Not Found"}, 404, `"error_code":"ObjectNotFound"`},
	} {
		p := plane(t, nexus.EraUpcall, agents{"s1": c.agent}, "s1")
		if c.fault.Name != "" {
			c.fault.Match, c.fault.Times = "nexus PUT /vmms/*", 1
			if err := p.World.Update(t.Context(), func(tx *world.Tx) error { tx.Arm(c.fault); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		reply := send(p, "PUT", "/vmms/"+vm, c.version, c.body)
		if reply.Code != c.want || !strings.Contains(reply.Body.String(), c.says) {
			t.Errorf("%s %s: %d %s, want %d %s", c.version, c.body, reply.Code, reply.Body, c.want, c.says)
		}
		conforms(t, doc, reply)
	}
}

func conforms(t *testing.T, doc *dropshottest.Document, reply *httptest.ResponseRecorder) {
	t.Helper()
	if err := doc.Answer(httptest.NewRequest("PUT", "/vmms/"+vm, nil), reply.Code, reply.Header(), reply.Body.Bytes()); err != nil {
		t.Errorf("%d %s: %v", reply.Code, reply.Body, err)
	}
	var body struct {
		RequestID string `json:"request_id"`
	}
	if reply.Code >= 400 && (json.Unmarshal(reply.Body.Bytes(), &body) != nil || body.RequestID != reply.Header().Get("x-request-id")) {
		t.Errorf("the id of the request is %q, in %s", reply.Header().Get("x-request-id"), reply.Body)
	}
}

const sledID = "5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11"

// sledBody is how a sled describes itself, with one thing changed.
func sledBody(old, new string) string {
	return strings.Replace(`{"sa_address":"[fd00:1122:3344:101::1]:12345","repo_depot_port":12348,"role":"gimlet",`+
		`"baseboard":{"part":"913-0000019","serial":"BRM42220014","revision":6},"usable_hardware_threads":128,"usable_physical_ram":1099511627776,`+
		`"reservoir_size":0,"cpu_family":"amd_milan","generation":2,"decommissioned":false}`, old, new, 1)
}

// Of a sled the control plane takes over what is newer, as its database does, and what it
// answers is as its makers have published it.
func TestSledsMakeThemselvesKnown(t *testing.T) {
	doc := dropshottest.Published(t, "nexus-internal-1.0.0.json")
	p := plane(t, nexus.EraUpcall, nil, "s1")
	other := "7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"
	for _, c := range []struct {
		what, method, id, body string
		want                   int
		says                   string
	}{
		{"it is not known", "GET", sledID, "", 404, `"error_code":"ObjectNotFound"`},
		{"it comes", "POST", sledID, sledBody("", ""), 204, ""},
		{"it is known", "GET", sledID, "", 200, `"generation":2`},
		{"the same again", "POST", sledID, sledBody("", ""), 500, `"error_code":"Internal"`},
		{"an older one", "POST", sledID, sledBody(`"generation":2`, `"generation":1`), 500, `"error_code":"Internal"`},
		{"a newer one", "POST", sledID, sledBody(`"generation":2`, `"generation":3`), 204, ""},
		{"another sled with its board", "POST", other, sledBody("", ""), 400, `"error_code":"ObjectAlreadyExists"`},
		{"another sled", "POST", other, sledBody("BRM42220014", "BRM42220015"), 204, ""},
		{"no port", "POST", other, sledBody(":12345", ""), 400, "unable to parse JSON body"},
		{"an address of IPv4", "POST", other, sledBody("[fd00:1122:3344:101::1]", "10.0.0.1"), 400, "unable to parse JSON body"},
		{"no board", "POST", other, sledBody(`"serial":"BRM42220014",`, ""), 400, "unable to parse JSON body"},
		{"a role that is none", "POST", other, sledBody(`"gimlet"`, `"pc"`), 400, "unknown variant"},
		{"a family that is none", "POST", other, sledBody(`"amd_milan"`, `"amd"`), 400, "unknown variant"},
		{"no generation", "POST", other, sledBody(`"generation":2,`, ""), 400, "unable to parse JSON body"},
		{"what cannot be done", "PUT", sledID, sledBody("", ""), 404, "Not Found"},
	} {
		reply := send(p, c.method, "/sled-agents/"+c.id, "1.0.0", c.body)
		if reply.Code != c.want || !strings.Contains(reply.Body.String(), c.says) {
			t.Errorf("%s: %d %s, want %d %s", c.what, reply.Code, reply.Body, c.want, c.says)
		}
		if c.method != "PUT" {
			if err := doc.Answer(httptest.NewRequest(c.method, "/sled-agents/"+c.id, nil), reply.Code, reply.Header(), reply.Body.Bytes()); err != nil {
				t.Errorf("%s: %d %s: %v", c.what, reply.Code, reply.Body, err)
			}
		}
	}
	err := p.World.Update(t.Context(), func(tx *world.Tx) error { tx.State.Nexus.Registered[sledID].Decommissioned = true; return nil })
	if reply := send(p, "POST", "/sled-agents/"+sledID, "1.0.0", sledBody(`"generation":2`, `"generation":9`)); err != nil || reply.Code != 500 {
		t.Errorf("decommissioned: %d %s, %v", reply.Code, reply.Body, err)
	}
	if reply := send(p, "POST", "/sled-agents/"+other, "1.0.0", sledBody(`"generation":2`, `"generation":9`)); reply.Code != 204 {
		t.Errorf("the board of a sled that is decommissioned: %d %s", reply.Code, reply.Body)
	}
}
