package napi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
	"github.com/sledctl/sledctl/test/hosttest"
)

const (
	ours   = "564d2cec-64ee-4aca-9e27-d71c02af3b6a"
	theirs = "564df9cf-8c25-4111-a3b0-2f4dafdc1001"
	vm     = "3c7f5393-7c69-4c7c-bc81-cb7aca031ff1"
	mac1   = "90:b8:d0:00:00:01"
)

// fake is a machine that reaches one server.
type fake struct {
	serve http.HandlerFunc
	files host.Files
	fails error // of dialling
	asked []string
}

func (f *fake) Run(context.Context, host.Command) (host.Result, error) {
	panic("a client of NAPI runs no commands")
}

func (f *fake) Files() host.Files { return f.files }

func (f *fake) Dial(_ context.Context, network, address string) (net.Conn, error) {
	if f.fails != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: f.fails}
	}
	return exchangetest.Connect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.asked = append(f.asked, strings.TrimSpace(fmt.Sprint(address, " ", r.Method, " ", r.URL, " ", r.Header.Get("If-Match"), " ", string(body))))
		f.serve(w, r)
	})), nil
}

func (*fake) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

func client(serve http.HandlerFunc) Client {
	return Client{Host: &fake{serve: serve, files: hosttest.Memory()}, Server: "10.99.99.12:80"}
}

// replies is a server that says the same to everybody.
func replies(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func sample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", "samples", "napi", name))
	if err != nil {
		t.Skip("shared/samples is not here")
	}
	return data
}

func TestParseMAC(t *testing.T) {
	for given, want := range map[string]string{
		"90:b8:d0:00:00:02": "90:b8:d0:00:00:02", "90b8d0000002": "90:b8:d0:00:00:02", "90-B8-d0-0-0-2": "90:b8:d0:00:00:02", "2:8:20:1a:2b:3c": "02:08:20:1a:2b:3c",
		"": "", "90b8.d000.0002": "", "159123243827202": "", "90:b8-d0:00:00:02": "", "90:b8:d0:00:00:": "", "90:b8:d0:00:00:123": "", " 90b8d0000002": "", "+1:2:3:4:5:6": "",
	} {
		got, err := ParseMAC(given)
		if _, typed := errors.AsType[*AddressError](err); got != want || typed != (want == "") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
	var vectors struct {
		Accept [][2]string `json:"accept"`
		Reject []string    `json:"reject"`
		Key    [][2]string `json:"store_key"`
	}
	if err := json.Unmarshal(sample(t, "mac-vectors.json"), &vectors); err != nil || len(vectors.Accept) < 6 || len(vectors.Reject) < 11 {
		t.Fatal(err, vectors)
	}
	for _, v := range vectors.Accept {
		if got, err := ParseMAC(v[0]); got != v[1] || err != nil {
			t.Errorf("%q: %q, %v", v[0], got, err)
		}
	}
	for _, v := range vectors.Reject {
		if got, err := ParseMAC(v); err == nil {
			t.Errorf("%q: %q", v, got)
		}
	}
	for _, v := range vectors.Key {
		if n, err := strconv.ParseUint(bare(v[0]), 16, 64); err != nil || strconv.FormatUint(n, 10) != v[1] {
			t.Errorf("%q: %d, %v", v[0], n, err)
		}
	}
}

func TestCheckUUID(t *testing.T) {
	var vectors struct{ Accept, Reject []string }
	if err := json.Unmarshal(sample(t, "uuid-vectors.json"), &vectors); err != nil || len(vectors.Accept) < 3 || len(vectors.Reject) < 6 {
		t.Fatal(err, vectors)
	}
	for _, v := range vectors.Accept {
		if err := CheckUUID(v); err != nil {
			t.Error(err)
		}
	}
	for _, v := range vectors.Reject {
		if CheckUUID(v) == nil {
			t.Errorf("%q is taken", v)
		}
	}
}

func TestParseServer(t *testing.T) {
	for given, want := range map[string]Server{
		"http://10.99.99.12": "10.99.99.12:80", "http://10.99.99.12:8080/": "10.99.99.12:8080", "http://napi.dc.example.com": "napi.dc.example.com:80", "http://[fd00::1]": "[fd00::1]:80",
		"": "", "https://10.99.99.12": "", "10.99.99.12": "", "http://": "", "http://a/nics": "", "http://a:0": "", "http://a:99999": "", "http://u@a": "", "http://a?b": "",
	} {
		got, err := ParseServer(given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
}

// Every exchange that was recorded with the real server is understood: records
// as records, errors as what they mean.
func TestTheRecordedExchanges(t *testing.T) {
	sample(t, "live/ping.json")
	names, err := filepath.Glob(filepath.Join("..", "..", "shared", "samples", "napi", "live", "*.json"))
	if err != nil || len(names) < 100 {
		t.Fatal(len(names), err)
	}
	nics, lists, refusals := 0, 0, 0
	for _, name := range names {
		var e struct {
			Request  struct{ Method, Path string }
			Response struct {
				Status int
				Body   json.RawMessage
			}
		}
		data, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(data, &e)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		body := e.Response.Body
		if string(body) == "null" || e.Request.Method == http.MethodHead || e.Response.Status == 304 {
			continue
		}
		about, _, _ := strings.Cut(e.Request.Path, "?")
		switch {
		case e.Response.Status >= 300:
			refusals++
			got := decodeError(e.Request.Method, e.Request.Path, e.Response.Status, body)
			if got.Message == "" || got.Status == 422 && len(got.Errors) == 0 {
				t.Errorf("%s: %+v", name, got)
			}
		case strings.HasPrefix(about, "/nics/"), about == "/nics" && e.Request.Method == http.MethodPost:
			nics++
			var is struct{ MAC string }
			if err := json.Unmarshal(body, &is); err != nil {
				t.Fatal(err)
			}
			if n, err := decodeNIC(body, is.MAC); err != nil || n.Modified.IsZero() || n.OwnerUUID == "" {
				t.Errorf("%s: %+v, %v", name, n, err)
			}
		case about == "/nics":
			lists++
			if _, err := decodePage(body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case about == "/ping":
			var h struct{ Status string }
			if err := json.Unmarshal(body, &h); err != nil || h.Status != "OK" {
				t.Errorf("%s: %+v, %v", name, h, err)
			}
		}
	}
	if nics < 20 || lists < 10 || refusals < 30 {
		t.Errorf("%d records, %d lists, %d refusals", nics, lists, refusals)
	}
}

// What each error body of the real server means.
func TestWhatRefusalsMean(t *testing.T) {
	var bodies map[string]json.RawMessage
	if err := json.Unmarshal(sample(t, "error-bodies.json"), &bodies); err != nil {
		t.Fatal(err)
	}
	kinds := []error{ErrNoRoute, ErrNoNIC, ErrNoFilter, ErrChanged, host.ErrTransient}
	for name, c := range map[string]struct {
		method, path string
		want         error
		text         string
	}{
		"unknown_route":                 {"GET", "/search/nics?cn_uuid=" + ours, ErrNoRoute, ": 404 ResourceNotFound: /search/nics does not exist"},
		"nic_missing":                   {"GET", "/nics/90b8d0000001", ErrNoNIC, ": 404 ResourceNotFound: nic not found"},
		"network_missing":               {"GET", "/networks/x", nil, ": 404 ResourceNotFound: network not found"},
		"search_ips_none":               {"GET", "/search/ips", nil, "No networks found matching search criteria"},
		"unknown_filter":                {"GET", "/nics", nil, "422 InvalidParameters: zork: Unknown parameters: zork"},
		"cn_uuid_unsupported_2015_2017": {"GET", "/nics", ErrNoFilter, "422 InvalidParameters: cn_uuid: Unknown parameters: cn_uuid"},
		"missing_params":                {"POST", "/nics", nil, "belongs_to_type: Missing parameter; belongs_to_uuid: Missing parameter; owner_uuid: Missing parameter"},
		"ip_used":                       {"POST", "/nics", nil, `ip: IP in use by zone`},
		"bad_uuid_array":                {"GET", "/nics", nil, "cn_uuid: invalid UUID"},
		"if_match_stale":                {"DELETE", "/nics/90b8d0000001", ErrChanged, "412 PreconditionFailed: if-match '51800F2F' didn't match etag '92786C9C'"},
		"initializing":                  {"GET", "/nics", host.ErrTransient, "503 ServiceUnavailableError: Server is still initializing"},
		"subnet_full":                   {"POST", "/nics", nil, "507 SubnetFull: no more free IPs"},
		"put_race":                      {"PUT", "/nics/90b8d0000001", ErrChanged, ": 500: napi_nics::"},
		"method":                        {"PATCH", "/nics/90b8d0000001", nil, "405 MethodNotAllowedError: PATCH is not allowed"},
	} {
		var e struct {
			Status int
			Body   json.RawMessage
		}
		if err := json.Unmarshal(bodies[name], &e); err != nil {
			t.Fatal(name, err)
		}
		got := decodeError(c.method, c.path, e.Status, e.Body)
		for _, kind := range kinds {
			if errors.Is(got, kind) != (kind == c.want) {
				t.Errorf("%s: is %v: %v", name, kind, errors.Is(got, kind))
			}
		}
		if !strings.Contains(got.Error(), c.text) {
			t.Errorf("%s: %v", name, got)
		}
	}
	// A 404 that is not NAPI's says nothing of records or routes, nor does one
	// that is about another route.
	for _, body := range []string{"", "<html>not found</html>", `{"message":"nic not found"}`, `{"code":"ResourceNotFound","message":"/nics does not exist"}`} {
		if e := decodeError("GET", "/nics/90b8d0000001", 404, []byte(body)); errors.Is(e, ErrNoNIC) || errors.Is(e, ErrNoRoute) {
			t.Errorf("%q: %v", body, e)
		}
	}
}

// What fails for a while is asked again, from the first page; writes are not.
func TestAskingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		c := client(func(w http.ResponseWriter, r *http.Request) {
			requests++
			switch requests {
			case 1:
				replies(503, `{"code":"ServiceUnavailableError","message":"Server is still initializing"}`)(w, r)
			case 3:
				panic(http.ErrAbortHandler)
			default:
				pages(1000, nil)(w, r)
			}
		})
		var waits []time.Duration
		c.Again = func(n int, _ error) (time.Duration, bool) {
			waits = append(waits, Backoff(n, func() float64 { return 0 }))
			return waits[n], n < 5
		}
		began := time.Now()
		got, err := c.List(t.Context(), RouteNICs, ours)
		if err != nil || len(got) != 1000 || requests != 5 || time.Since(began) != 6*time.Second {
			t.Errorf("%d records, %d requests, %v, %v", len(got), requests, time.Since(began), err)
		}
		requests = 0
		if _, err := c.Update(t.Context(), mac1, "", Change{State: StateRunning}); !errors.Is(err, host.ErrTransient) || requests != 1 {
			t.Errorf("an update: %d requests, %v", requests, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := client(nil)
		c.Host.(*fake).fails = syscall.ECONNREFUSED
		tries := 0
		c.Again = func(n int, _ error) (time.Duration, bool) { tries++; return time.Second, n < 2 }
		if _, err := c.Get(t.Context(), mac1); !errors.Is(err, host.ErrTransient) || !errors.Is(err, syscall.ECONNREFUSED) || tries != 3 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}

// A server that never answers is given up after a while.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := client(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).Get(t.Context(), mac1)
		if !errors.Is(err, host.ErrTransient) || time.Since(began) != perRequest {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestBackoff(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n, least := range []time.Duration{2, 4, 8, 16, 32, 32, 32} {
		least *= time.Second
		for range 1000 {
			if d := Backoff(n, r.Float64); d < least || d >= 2*least {
				t.Fatalf("%d: %v", n, d)
			}
		}
	}
}

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", "4DD569CB")
			if r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			replies(200, record(mac1, ours))(w, r)
		})
		r, err := c.Get(t.Context(), "90-B8-D0-0-0-1")
		if err != nil || r.Etag != "4DD569CB" || r.MAC != mac1 || !r.Modified.IsZero() {
			t.Errorf("%+v, %v", r, err)
		}
		_, uerr := c.Update(t.Context(), mac1, r.Etag, Change{CNUUID: ours, State: StateRunning})
		derr := c.Delete(t.Context(), mac1, r.Etag)
		if uerr != nil || derr != nil {
			t.Error(uerr, derr)
		}
		want := []string{
			"10.99.99.12:80 GET /nics/90b8d0000001",
			`10.99.99.12:80 PUT /nics/90b8d0000001 4DD569CB {"check_owner":false,"cn_uuid":"` + ours + `","state":"running"}`,
			"10.99.99.12:80 DELETE /nics/90b8d0000001 4DD569CB",
		}
		if diff := cmp.Diff(want, c.Host.(*fake).asked); diff != "" {
			t.Error(diff)
		}
		// What the server says it did is compared with what was asked for.
		_, err = c.Update(t.Context(), mac1, r.Etag, Change{State: StateStopped})
		if ignored, ok := errors.AsType[*IgnoredError](err); !ok || ignored.Field != "state" || ignored.Got != "running" {
			t.Error(err)
		}
	})
}

func TestDeletingWhatIsNotThere(t *testing.T) {
	for body, ok := range map[string]bool{`{"code":"ResourceNotFound","message":"nic not found"}`: true, `{"code":"ResourceNotFound","message":"/nics/90b8d0000001 does not exist"}`: false, "<html>": false} {
		synctest.Test(t, func(t *testing.T) {
			if err := client(replies(404, body)).Delete(t.Context(), mac1, ""); (err == nil) != ok {
				t.Errorf("%s: %v", body, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if err := client(replies(200, "{}")).Delete(t.Context(), mac1, ""); !errors.Is(err, ErrReply) {
			t.Error(err)
		}
	})
}

func TestALockFileThatCannotBeReadStands(t *testing.T) {
	files := hosttest.Memory()
	if err := files.Mkdir("/stop", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := LockFile("/stop").Check(files); !errors.Is(err, host.ErrRefused) {
		t.Error(err)
	}
	if err := LockFile("").Check(files); err != nil {
		t.Error(err)
	}
}

func FuzzAnswers(f *testing.F) {
	for _, s := range []string{"", "[]", "[" + record(mac1, ours) + "]", record(mac1, ours), `{"code":"x","errors":[{"field":["a"]}]}`, `{"errors":[{"field":3}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := decodePage(data)
		if err == nil && slices.ContainsFunc(page, func(n NIC) bool { return n.BelongsToUUID == "" || n.MAC == "" }) {
			t.Errorf("%+v", page)
		}
		if n, err := decodeNIC(data, mac1); err == nil && n.MAC != mac1 {
			t.Errorf("%+v", n)
		}
		_ = decodeError("GET", "/nics", 422, data).Error()
	})
}
