package napi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/refdata"
)

// recorded is an exchange with the real server.
type recorded struct {
	name, method, path, body string
	header                   http.Header
	status                   int
	etag, allow              string
	reply                    string
}

// transcript reads what was recorded: three lines for each exchange.
func transcript(t *testing.T) []recorded {
	t.Helper()
	data := refdata.File(t, "samples/napi/live/transcript.txt")
	asked := regexp.MustCompile(`^\[(\S+)\] (\S+) (\S+) (\{"If-[^}]*\} )?(.*)$`)
	answered := regexp.MustCompile(`^  -> (\d+) `)
	header := regexp.MustCompile(`'(Etag|Allow)': '([^']*)'`)
	lines := strings.Split(string(data), "\n")
	var all []recorded
	for i := 0; i+2 < len(lines); i += 3 {
		m := asked.FindStringSubmatch(lines[i])
		a := answered.FindStringSubmatch(lines[i+1])
		if m == nil || a == nil {
			t.Fatalf("line %d: %s", i+1, lines[i])
		}
		r := recorded{name: m[1], method: m[2], path: m[3], body: strings.TrimSpace(m[5]), header: http.Header{}, reply: strings.TrimSpace(lines[i+2])}
		var given map[string]string
		if m[4] != "" && json.Unmarshal([]byte(m[4]), &given) != nil {
			t.Fatalf("line %d: headers %s", i+1, m[4])
		}
		for name, value := range given {
			r.header.Set(name, value)
		}
		fmt.Sscan(a[1], &r.status)
		for _, h := range header.FindAllStringSubmatch(lines[i+1], -1) {
			if h[1] == "Etag" {
				r.etag = h[2]
			} else {
				r.allow = h[2]
			}
		}
		if !json.Valid([]byte(r.reply)) && r.reply != "" {
			r.reply = whole(t, r.name) // the transcript has only its beginning
		}
		all = append(all, r)
	}
	return all
}

// whole is the body of an answer from the file of its exchange.
func whole(t *testing.T, name string) string {
	t.Helper()
	data, err := refdata.Read("samples/napi/live/" + name + ".json")
	var exchange struct {
		Response struct {
			Body json.RawMessage `json:"body"`
		} `json:"response"`
	}
	if err == nil {
		err = json.Unmarshal(data, &exchange)
	}
	if err != nil {
		t.Log(name, err)
		return ""
	}
	return string(exchange.Response.Body)
}

func newWorld(t *testing.T, era string) *world.World {
	t.Helper()
	w := boot.Memory(boot.Options{M2: -1, U2: -1}, hosttest.Files)
	change(t, w, func(tx *world.Tx) { tx.State.NAPI = napi.New("10.99.99.12:80", era) })
	return w
}

func change(t *testing.T, w *world.World, fn func(*world.Tx)) {
	t.Helper()
	if err := w.Update(t.Context(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

func ask(w *world.World, method, path, body string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, strings.ReplaceAll(path, "!", "%21"), strings.NewReader(body))
	for name, values := range header {
		r.Header[name] = values
	}
	recorder := httptest.NewRecorder()
	napi.Handler(w).ServeHTTP(recorder, r)
	return recorder
}

// drawn are the fields whose values a server draws, or that are times: what ours
// has drawn stands for what the real one did from then on.
func drawn() []string { return []string{"uuid", "vnet_id", "mac"} }

// alike compares two answers, and learns what was drawn.
func alike(where string, want, got any, learn func(recorded, ours string)) error {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %v, not %v", where, got, want)
		}
		for key := range g {
			if _, known := w[key]; !known {
				return fmt.Errorf("%s: has %s, which was not recorded", where, key)
			}
		}
		for key, value := range w {
			switch {
			case strings.HasSuffix(key, "_timestamp"):
				if s, _ := g[key].(string); len(s) != len("2026-11-21T01:15:20.681Z") {
					return fmt.Errorf("%s: %s is %v", where, key, g[key])
				}
			case slices.Contains(drawn(), key) && g[key] != nil && learn != nil:
				learn(fmt.Sprint(plain(value)), fmt.Sprint(plain(g[key])))
			default:
				if err := alike(where+"."+key, value, g[key], learn); err != nil {
					return err
				}
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%s: %v, not %v", where, got, want)
		}
		sortByMAC(w)
		sortByMAC(g)
		for i := range w {
			if err := alike(fmt.Sprintf("%s[%d]", where, i), w[i], g[i], learn); err != nil {
				return err
			}
		}
		return nil
	}
	if !cmp.Equal(want, got) {
		return fmt.Errorf("%s: %v, not %v", where, got, want)
	}
	return nil
}

func plain(v any) any {
	if f, ok := v.(float64); ok {
		return int64(f)
	}
	return v
}

// sortByMAC undoes the order inside a page, which the server does not promise.
func sortByMAC(list []any) {
	key := func(v any) string {
		m, _ := v.(map[string]any)
		return fmt.Sprint(m["mac"], m["field"])
	}
	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(key(a), key(b)) })
}

// The real server was asked all this in this order. Ours gives the same answers:
// status, headers, bodies, to the last word of every message.
func TestTheRecordedExchanges(t *testing.T) {
	w := newWorld(t, napi.EraD)
	ours := map[string]string{}
	translate := func(s string) string {
		for from, to := range ours {
			s = strings.ReplaceAll(s, from, to)
		}
		return s
	}
	seen := 0
	for _, r := range transcript(t) {
		header := http.Header{}
		for name, values := range r.header {
			header.Set(name, translate(values[0]))
		}
		got := ask(w, r.method, translate(r.path), translate(r.body), header)
		seen++
		if got.Code != r.status || got.Header().Get("Allow") != r.allow || (got.Header().Get("Etag") == "") != (r.etag == "") {
			t.Errorf("%s: %s %s: status %d, headers %v, want %d, Etag %q, Allow %q\n%s", r.name, r.method, r.path, got.Code, got.Header(), r.status, r.etag, r.allow, got.Body)
			continue
		}
		if r.etag != "" {
			ours[r.etag] = got.Header().Get("Etag")
		}
		learn := func(recorded, drew string) {
			if recorded != drew {
				ours[recorded] = drew
			}
		}
		if r.method != http.MethodPost || r.status != http.StatusOK {
			learn = nil
		}
		if r.method == http.MethodHead || r.reply == "" {
			continue
		}
		var want, have any
		if err := json.Unmarshal([]byte(translate(r.reply)), &want); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if err := json.Unmarshal(got.Body.Bytes(), &have); err != nil {
			t.Errorf("%s: %v: %s", r.name, err, got.Body)
			continue
		}
		if err := alike(r.name, want, have, learn); err != nil {
			t.Errorf("%v\n%s\n%s", err, translate(r.reply), got.Body)
		}
	}
	if seen < 150 {
		t.Errorf("only %d exchanges", seen)
	}
}
