package agent

import (
	"context"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/peer/dropshot"
)

// The figures are those of what has happened, in a form that Prometheus reads.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, rings, p, say := alarm(t, func(v VM) error {
			switch v.Name {
			case "web2":
				return errUnreachable
			case "web3":
				return &dropshot.Refusal{Status: 403}
			}
			return nil
		})
		_ = p
		a := &agent{table: b, notifier: rings, work: &work{lanes: nil}, watched: nil}
		a.meter.more = a.measure
		s := &server{endpoints: endpoints(), table: b, read: a.receipts.note, meter: &a.meter, draw: func() string { return "r" }}
		say(in(1, api.Running))
		say(in(2, api.Running))
		say(in(3, api.Destroyed))
		synctest.Wait()
		ask := func(method, path, version string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, nil)
			r.Header.Set("api-version", version)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
		ask("GET", "/vmms/"+vmID(1).String()+"/state", "48.0.0")
		ask("GET", "/vmms/"+vmID(1).String()+"/state", "48.0.0")
		ask("GET", "/vmms/"+vmID(9).String()+"/state", "48.0.0")
		ask("GET", "/vmms", "99.0.0")
		ask("GET", "/openapi.json", "")
		ask("BREW", "/coffee", "48.0.0")
		streaming, leave := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(streaming, "GET", "/events?after=9007199254740991", nil))
		}()
		time.Sleep(100 * time.Millisecond)
		page := ask("GET", "/metrics", "")
		leave()
		<-done
		text := page.Body.String()
		for _, want := range []string{
			`sledctl_vms{state="running"} 2`, `sledctl_vms{state="destroyed"} 1`, `sledctl_vms{state="failed"} 0`,
			`sledctl_doorbells_total{result="heard"} 1`, `sledctl_doorbells_total{result="lost"} 1`, `sledctl_doorbells_total{result="refused"} 1`,
			`sledctl_notifications_total{result="delivered"} 1`, `sledctl_notifications_total{result="failed"} 1`, `sledctl_notifications_total{result="rejected"} 1`,
			`sledctl_notifications_pending 1`, `sledctl_notifications_pending_age_seconds 0.1`,
			`sledctl_doorbells_pending 1`, `sledctl_doorbells_pending_age_seconds 0.1`, `sledctl_event_streams 1`,
			`sledctl_http_requests_total{endpoint="/vmms/{propolis_id}/state",method="GET",status="200"} 2`,
			`sledctl_http_requests_total{endpoint="/vmms/{propolis_id}/state",method="GET",status="404"} 1`,
			`sledctl_http_requests_total{endpoint="/openapi.json",method="GET",status="200"} 1`,
			`sledctl_http_requests_total{endpoint="none",method="any",status="400"} 1`,
			`sledctl_http_requests_total{endpoint="none",method="any",status="404"} 1`,
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
		readable(t, text)
	})
}

// readable holds a page to the grammar of the text format: each figure behind its
// family's HELP and TYPE, each family once.
func readable(t *testing.T, text string) {
	t.Helper()
	help := regexp.MustCompile(`^# HELP ([a-z_]+) \S.*$`)
	kind := regexp.MustCompile(`^# TYPE ([a-z_]+) (counter|gauge)$`)
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\})? [0-9.e+-]+$`)
	seen, family := map[string]bool{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := help.FindStringSubmatch(line); m != nil {
			if family = m[1]; seen[family] {
				t.Errorf("%s comes twice", family)
			}
			seen[family] = true
		} else if m := kind.FindStringSubmatch(line); m != nil {
			if m[1] != family || (m[2] == "counter") != strings.HasSuffix(family, "_total") {
				t.Errorf("%q behind the help of %s", line, family)
			}
		} else if m := sample.FindStringSubmatch(line); m == nil || m[1] != family || seen[line] {
			t.Errorf("%q in the family %s", line, family)
		}
	}
}

func TestLabelsAreEscaped(t *testing.T) {
	var e exposition
	e.sample("x", 1, "a", "b\"\\\nc", "d", "")
	if got := e.text.String(); got != `x{a="b\"\\\nc",d=""} 1`+"\n" {
		t.Error(got)
	}
}
