package agent

import (
	"context"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/figures"
	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/sled/status"
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
	kind := regexp.MustCompile(`^# TYPE ([a-z_]+) (counter|gauge|histogram)$`)
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\})? [0-9.e+-]+$`)
	seen, family := map[string]bool{}, ""
	parts := map[string]bool{} // of a histogram
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := help.FindStringSubmatch(line); m != nil {
			if family = m[1]; seen[family] {
				t.Errorf("%s comes twice", family)
			}
			seen[family] = true
		} else if m := kind.FindStringSubmatch(line); m != nil {
			parts = map[string]bool{"_bucket": m[2] == "histogram", "_sum": m[2] == "histogram", "_count": m[2] == "histogram"}
			if m[1] != family || (m[2] == "counter") != strings.HasSuffix(family, "_total") {
				t.Errorf("%q behind the help of %s", line, family)
			}
		} else if m := sample.FindStringSubmatch(line); m == nil || m[1] != family && !parts[strings.TrimPrefix(m[1], family)] || seen[line] {
			t.Errorf("%q in the family %s", line, family)
		}
	}
}

func TestLabelsAreEscaped(t *testing.T) {
	var e figures.Page
	e.Sample("x", 1, "a", "b\"\\\nc", "d", "")
	if got := e.String(); got != `x{a="b\"\\\nc",d=""} 1`+"\n" {
		t.Error(got)
	}
}

// The figures of the sled are those of the look that GET /status gives; a look that fails is
// a figure, too, and the page is still answered.
func TestMetricsOfTheSled(t *testing.T) {
	seen := api.Status{Status: status.Status{
		Verdict:   status.IsTrouble,
		Problems:  []status.Problem{{Code: "a", Severity: status.Trouble}, {Code: "a", Severity: status.Trouble}},
		Instances: status.Instances{WantedUp: 3, Up: 2, ByState: map[string]int{"running": 2}},
		Pools:     []status.Pool{{Name: "p1", State: "ready", Size: 100, Used: 40, Free: 60}, {Name: "p2", State: "absent"}},
		Ledger:    status.Ledger{Copies: []status.Copy{{Verdict: "member"}, {Verdict: "missing"}}},
		Memory:    &status.Memory{Limit: 9, Reserved: 5, Used: 4},
		Network:   status.Network{Control: 2, Guest: 3},
		Doctor:    &status.Doctor{Failed: 1, Warned: 2, Time: time.Unix(1000, 0)},
	}}
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"seen": {want: []string{
			`sledctl_status_success 1`, `sledctl_status_verdict{verdict="ok"} 0`, `sledctl_status_verdict{verdict="trouble"} 1`,
			`sledctl_problems{code="a",severity="trouble"} 2`, `sledctl_instances{state="running"} 2`,
			`sledctl_instances_wanted_up 3`, `sledctl_instances_up 2`, `sledctl_vnics{kind="guest"} 3`,
			`sledctl_pool_used_bytes{pool="p1"} 40`, `sledctl_pool_working{pool="p1"} 1`, `sledctl_pool_working{pool="p2"} 0`,
			`sledctl_ledger_copies 2`, `sledctl_ledger_copies_whole 1`, `sledctl_memory_reserved_bytes 5`,
			`sledctl_doctor_checks{result="fail"} 1`, `sledctl_doctor_run_timestamp_seconds 1000`,
		}},
		"not seen": {err: errUnreachable, want: []string{`sledctl_status_success 0`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var group sync.WaitGroup
				look := func(context.Context) (api.Status, error) { return seen, test.err }
				s := &server{views: Settings{Status: look}.views(t.Context(), &group)}
				var out figures.Page
				s.measureSled(t.Context(), &out)
				group.Wait()
				text := out.String()
				for _, want := range test.want {
					if !strings.Contains(text, want+"\n") {
						t.Errorf("no %s in\n%s", want, text)
					}
				}
				readable(t, text)
			})
		})
	}
}
