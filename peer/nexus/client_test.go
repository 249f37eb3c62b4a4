package nexus

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
)

func client(l exchangetest.Line) Client {
	return Client{Host: l, URL: &url.URL{Scheme: "http", Host: "nexus:12221"}}
}

var vm = uuid.MustParse("a8d0f0c4-0e5f-4a44-a5bd-5b3b3e1f6a01")

func answering(status int, body string) exchangetest.Line {
	return exchangetest.Line{Serve: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})}
}

// What a doorbell may meet, and what follows from it.
func TestADoorbell(t *testing.T) {
	for name, c := range map[string]struct {
		line            exchangetest.Line
		absent, passing bool
		wantErr         bool
	}{
		"is heard":                     {answering(204, ""), false, false, false},
		"path is not known":            {answering(404, `{"request_id":"r","message":"Not Found"}`), true, false, true},
		"version is newer":             {answering(400, `{"request_id":"r","message":"server does not support this API version: 2.0.0"}`), true, false, true},
		"VM is not known":              {answering(404, `{"request_id":"r","error_code":"ObjectNotFound","message":"Not Found"}`), false, false, true},
		"is refused":                   {answering(403, `{"request_id":"r","error_code":"Forbidden","message":"no"}`), false, false, true},
		"server is in trouble":         {answering(500, `{"request_id":"r","error_code":"Internal","message":"Internal Server Error"}`), false, true, true},
		"gateway answers instead":      {answering(502, "<html>"), false, true, true},
		"proxy shows its page":         {answering(200, "<html>"), false, true, true},
		"nobody answers":               {exchangetest.Line{Refuse: func() error { return errors.New("connection refused") }}, false, true, true},
		"something else answers there": {exchangetest.Line{Serve: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hang(w, "SSH-2.0-OpenSSH\r\n") })}, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := client(c.line).Ring(t.Context(), vm)
			if (err != nil) != c.wantErr || errors.Is(err, ErrNoDoorbell) != c.absent || Retryable(err) != c.passing {
				t.Errorf("%v; no doorbell: %v, passing: %v", err, errors.Is(err, ErrNoDoorbell), Retryable(err))
			}
		})
	}
}

func hang(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = io.WriteString(conn, text)
		conn.Close()
	}
}

// A doorbell has no body, and says nothing but whose it is.
func TestADoorbellHasNoBody(t *testing.T) {
	var got *http.Request
	var body []byte
	l := exchangetest.Line{Serve: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, body = r, nil
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	})}
	if err := client(l).Ring(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.URL.Path != "/vmms/"+vm.String()+"/doorbell" || len(body) != 0 || got.Header.Get("api-version") != "2.0.0" || got.Header.Get("Content-Type") != "" {
		t.Errorf("%s %s, %v, body %q", got.Method, got.URL, got.Header, body)
	}
}

// The upcall is as Nexus' internal API has it.
func TestAnUpcallConforms(t *testing.T) {
	doc := dropshottest.Published(t, "nexus-internal-1.0.0.json")
	called := false
	l := exchangetest.Line{Serve: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called = true
		if err := doc.Request(r); err != nil || r.Header.Get("api-version") != doc.Info.Version {
			t.Errorf("version %q: %v", r.Header.Get("api-version"), err)
		}
		w.WriteHeader(http.StatusNoContent)
	})}
	state := json.RawMessage(`{"vmm_state":{"state":"running","gen":3,"time_updated":"2026-11-22T10:00:00Z"}}`)
	if err := client(l).Put(t.Context(), vm, state); err != nil || !called {
		t.Errorf("called: %v, %v", called, err)
	}
}

func TestPausesGrowToALimitAndAreSpread(t *testing.T) {
	for _, c := range []struct {
		attempts int
		draw     float64
		want     time.Duration
	}{
		{0, 0.5, 250 * time.Millisecond}, {1, 0, 125 * time.Millisecond}, {1, 0.5, 250 * time.Millisecond}, {2, 0.5, 500 * time.Millisecond},
		{10, 0.5, 128 * time.Second}, {11, 0.5, 3 * time.Minute}, {11, 0, 90 * time.Second}, {1 << 30, 0.5, 3 * time.Minute},
	} {
		if got := Backoff(c.attempts, c.draw); got != c.want {
			t.Errorf("after %d attempts, at %v: %s, want %s", c.attempts, c.draw, got, c.want)
		}
	}
	if got := Backoff(50, 0.999999); got >= LongestPause*3/2 {
		t.Errorf("%s", got)
	}
}
