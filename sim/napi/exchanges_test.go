package napi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/refdata"
)

// exchange is a request to a real NAPI, and its answer. In bodies, @TIME, @TAG,
// @ANET and @ETAG stand for what differs from run to run.
type exchange struct {
	ID      string
	Request []any `json:"req"` // method, path, body, headers
	Status  any   // a number, or "CRASH": the process ended
	Etag    bool
	Type    string `json:"ctype"`
	Allow   string
	Body    string
}

// recordedAdmin is the network's UUID where a list has it instead of @ANET.
const recordedAdmin = "83d9b35c-e090-4112-a218-c949b994d8f8"

// exchanges are all that were recorded, in order.
func exchanges(t *testing.T) []exchange {
	t.Helper()
	var all []exchange
	if err := json.Unmarshal(refdata.File(t, "samples/napi/exchanges/real-*.json"), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// fresh is the server as it was before the first request.
func fresh(t *testing.T) *world.World {
	t.Helper()
	w := newWorld(t, napi.EraD)
	change(t, w, func(tx *world.Tx) {
		n := tx.State.NAPI
		for _, name := range []string{"admin", "sdc_overlay"} {
			n.Tags = append(n.Tags, &world.NAPITag{UUID: tx.UUID(), Name: name, MTU: 1500})
		}
		n.Networks = []*world.NAPINetwork{{
			UUID: tx.UUID(), Name: "admin", Etag: "4DD569CB", Subnet: "10.99.99.0/24", Start: "10.99.99.38", End: "10.99.99.250",
			Gateway: "10.99.99.1", Resolvers: []string{"10.99.99.11"}, Tag: "admin", MTU: 1500,
		}}
	})
	return w
}

// replay asks the simulated server what the real one was asked.
type replay struct {
	world *world.World
	etag  string            // of the last answer that had one
	drawn map[string]string // what the real server drew, and what ours did
}

func (p *replay) send(e exchange) (got *httptest.ResponseRecorder, crashed bool) {
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				panic(v)
			}
			crashed = true
		}
	}()
	body := ""
	switch b := e.Request[2].(type) {
	case nil:
	case string:
		body = b // is no JSON
	default:
		data, _ := json.Marshal(b)
		body = string(data)
	}
	header := http.Header{}
	given, _ := e.Request[3].(map[string]any)
	for name, value := range given {
		header.Set(name, strings.ReplaceAll(fmt.Sprint(value), "@ETAG1", p.etag))
	}
	return ask(p.world, fmt.Sprint(e.Request[0]), fmt.Sprint(e.Request[1]), body, header), false
}

// compare says what differs.
func (p *replay) compare(t *testing.T, e exchange) error {
	got, crashed := p.send(e)
	if crashed || e.Status == "CRASH" {
		if crashed != (e.Status == "CRASH") {
			return fmt.Errorf("the connection was broken off: %t, want %v", crashed, e.Status)
		}
		return nil
	}
	etag := got.Header().Get("Etag")
	if want := fmt.Sprint(e.Status, " ", e.Etag, " ", e.Type, " ", e.Allow); want != fmt.Sprint(got.Code, " ", etag != "", " ", got.Header().Get("Content-Type"), " ", got.Header().Get("Allow")) {
		return fmt.Errorf("status %d, header %v, want status, Etag, type, Allow: %s\n%s", got.Code, got.Header(), want, got.Body)
	}
	if e.Body == "null" { // none
		return nil
	}
	p.etag = cmp.Or(etag, p.etag)
	var want, have any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(e.Body, recordedAdmin, "@ANET")), &want); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(p.translate(t, got.Body.String())), &have); err != nil {
		return fmt.Errorf("%w: %s", err, got.Body)
	}
	var learn func(recorded, ours string)
	if request, _ := e.Request[2].(map[string]any); request["mac"] == "00:00:00:00:00:00" { // it draws one
		learn = func(recorded, ours string) { p.drawn[ours] = recorded }
	}
	return alike("body", want, have, learn)
}

// translate puts in an answer what was recorded in place of what differs.
func (p *replay) translate(t *testing.T, s string) string {
	view(t, p.world, func(n *world.NAPI) {
		s = strings.ReplaceAll(s, n.Networks[0].UUID, "@ANET")
		for _, tag := range n.Tags {
			s = strings.ReplaceAll(s, tag.UUID, "@TAG")
		}
		for _, r := range n.NICs {
			s = strings.ReplaceAll(s, r.Etag, "@ETAG")
		}
	})
	for ours, recorded := range p.drawn {
		s = strings.ReplaceAll(s, ours, recorded)
	}
	return s
}

func view(t *testing.T, w *world.World, fn func(*world.NAPI)) {
	t.Helper()
	if err := w.View(t.Context(), func(tx *world.Tx) error { fn(tx.State.NAPI); return nil }); err != nil {
		t.Fatal(err)
	}
}

// The real server was asked all this in this order, and ours answers it alike:
// status, Etag, Allow, type, body.
func TestAllExchangesAreEqual(t *testing.T) {
	all := exchanges(t)
	p := &replay{world: fresh(t), drawn: map[string]string{}}
	equal := 0
	for _, e := range all {
		if err := p.compare(t, e); err != nil {
			t.Errorf("%s: %v %v: %v", e.ID, e.Request[0], e.Request[1], err)
			continue
		}
		equal++
	}
	t.Logf("%d of %d equal", equal, len(all))
	if len(all) < 200 {
		t.Errorf("only %d exchanges", len(all))
	}
}
