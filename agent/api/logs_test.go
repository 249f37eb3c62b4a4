package api

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What a client asks for is what the agent understands, within the bounds.
func TestALogQueryIsReadAsItWasMeant(t *testing.T) {
	at := time.Date(2026, 11, 23, 6, 27, 17, 5000, time.UTC)
	for _, q := range []LogQuery{
		{Instances: []string{"web1"}, Last: 1},
		{Instances: []string{"web2", "web1"}, Service: "all", Previous: true, Since: at, Last: MaxLogLines},
	} {
		if got, err := ParseLogQuery(q.Values()); err != nil || !reflect.DeepEqual(got, q) {
			t.Errorf("%+v is read as %+v: %v", q, got, err)
		}
	}
	for _, many := range []int{0, MaxLogLines + 1} {
		if got, err := ParseLogQuery(LogQuery{Instances: []string{"web1"}, Last: many}.Values()); err != nil || got.Last != MaxLogLines {
			t.Errorf("%d lines are read as %d: %v", many, got.Last, err)
		}
	}
	for keys, want := range map[string]string{
		"": "want 1 to 64 names", "instances=" + strings.Repeat("web1,", MaxLogNames+1): "want 1 to 64 names",
		"instances=web1&last=0": "want a number", "instances=web1&last=10001": "want a number", "instances=web1&last=all": "want a number",
		"instances=web1&since=10m": "want a time",
	} {
		values, err := url.ParseQuery(keys)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := ParseLogQuery(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want an error with %q", keys, q, err, want)
		}
	}
	if q, err := ParseLogQuery(url.Values{"instances": {"web1"}}); err != nil || q.Last != LogLinesSent {
		t.Errorf("unasked: %+v, %v", q, err)
	}
}
