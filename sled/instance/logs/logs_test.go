package logs

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	const text = `[ 2026 Jan  2 10:00:00 Executing start method ("/lib/x"). ]
[ Dec 31 23:59:59 Method "start" exited with status 0. ]
{"msg":"request completed","v":0,"level":30,"time":"2026-01-02T10:00:01.5Z","hostname":"web1","uri":"/instance"}
{"msg":"backend failed","level":50,"time":"2026-01-02T10:00:02Z"}

thread 'main' panicked at src/x.rs
[ no time of startd's ]
`
	smf := func(month time.Month, year, day, hour, minute, second int, text string) Line {
		return Line{Time: time.Date(year, month, day, hour, minute, second, 0, time.UTC), Writer: SMF, Text: text}
	}
	failed := time.Date(2026, 1, 2, 10, 0, 2, 0, time.UTC)
	want := []Line{
		smf(1, 2026, 2, 10, 0, 0, `Executing start method ("/lib/x").`),
		smf(12, 2025, 31, 23, 59, 59, `Method "start" exited with status 0.`),
		{Time: time.Date(2026, 1, 2, 10, 0, 1, 5e8, time.UTC), Writer: Propolis, Level: "info", Text: "request completed uri=/instance", Fields: map[string]json.RawMessage{"uri": json.RawMessage(`"/instance"`)}},
		{Time: failed, Writer: Propolis, Level: "error", Text: "backend failed", Fields: map[string]json.RawMessage{}},
		{Time: failed, Writer: Propolis, Level: "fatal", Text: "thread 'main' panicked at src/x.rs"},
		{Time: failed, Writer: Propolis, Text: "[ no time of startd's ]"},
	}
	got := Parse([]byte(text), at)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	entries := Chunk{Log: Log{Own: true}, Data: []byte(text)}.Entries(at)
	if diff := cmp.Diff(entries[3:], Since(entries, failed)); diff != "" {
		t.Errorf("since the failure: %s", diff)
	}
	if got := Since(entries, at); got != nil {
		t.Errorf("since now: %v", got)
	}
	for n, left := range map[int]int{0: 6, 2: 2, 9: 6} {
		if got := Last(entries, n); len(got) != left {
			t.Errorf("the last %d: %d lines", n, len(got))
		}
	}
}

// Lines of several logs are merged by their times, and those of one stay in their order: svc.startd
// writes whole seconds.
func TestMerged(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	part := func(name, text string) []Entry {
		return Chunk{Log: Log{Instance: name}, Data: []byte(text)}.Entries(at)
	}
	merged := Merged(
		part("a", "[ 2026 Jan  2 10:00:00 a1 ]\n[ 2026 Jan  2 10:00:05 a2 ]\nof a2\n"),
		part("b", "no time\n[ 2026 Jan  2 10:00:02 b1 ]\n{\"msg\":\"b2\",\"time\":\"2026-01-02T10:00:05.5Z\"}\n[ 2026 Jan  2 10:00:05 b3 ]\n"),
	)
	var got []string
	for _, e := range merged {
		got = append(got, e.Log.Instance+" "+e.Text)
	}
	if diff := cmp.Diff([]string{"b no time", "a a1", "b b1", "a a2", "a of a2", "b b2", "b b3"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAServiceIsNamedAsSMFDoes(t *testing.T) {
	const own = "/var/svc/log/site-propolis:default.log"
	for _, w := range []struct {
		service Service
		file    string
		fits    bool
	}{
		{"", own, true}, {"", "/var/svc/log/network-physical:default.log", false},
		{All, own, true}, {All, "/var/svc/log/network-physical:default.log", true}, {All, "/var/svc/log/network-physical:default.log.0", false}, {All, "/var/adm/x.log", false},
		{"svc:/network/physical:default", "/var/svc/log/network-physical:default.log", true},
		{"network/physical", "/var/svc/log/network-physical:nwam.log", true},
		{"network/physical:default", "/var/svc/log/network-physical:nwam.log", false},
		{"network", "/var/svc/log/network-physical:default.log", false},
	} {
		if got := w.service.fits(w.file, own); got != w.fits {
			t.Errorf("%q, %s: %v", w.service, w.file, got)
		}
	}
}

// The first lines of a log may be cut, and have no time.
func TestALineWithoutATimeBeforeIt(t *testing.T) {
	if got := Parse([]byte("half a line\n"), time.Now()); len(got) != 1 || !got[0].Time.IsZero() || len(Since(Chunk{Data: []byte("half a line\n")}.Entries(time.Now()), time.Unix(0, 0))) != 0 {
		t.Errorf("%+v", got)
	}
}
