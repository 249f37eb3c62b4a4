package logs

import (
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
		return Line{Time: time.Date(year, month, day, hour, minute, second, 0, time.UTC), Source: SMF, Text: text}
	}
	failed := time.Date(2026, 1, 2, 10, 0, 2, 0, time.UTC)
	want := []Line{
		smf(1, 2026, 2, 10, 0, 0, `Executing start method ("/lib/x").`),
		smf(12, 2025, 31, 23, 59, 59, `Method "start" exited with status 0.`),
		{Time: time.Date(2026, 1, 2, 10, 0, 1, 5e8, time.UTC), Source: Propolis, Level: "info", Text: "request completed uri=/instance"},
		{Time: failed, Source: Propolis, Level: "error", Text: "backend failed"},
		{Time: failed, Source: Propolis, Level: "fatal", Text: "thread 'main' panicked at src/x.rs"},
		{Time: failed, Source: Propolis, Text: "[ no time of startd's ]"},
	}
	got := Parse([]byte(text), at)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[3:], Since(got, failed)); diff != "" {
		t.Errorf("since the failure: %s", diff)
	}
	if got := Since(got, at); got != nil {
		t.Errorf("since now: %v", got)
	}
	for n, left := range map[int]int{0: 6, 2: 2, 9: 6} {
		if got := Last(want, n); len(got) != left {
			t.Errorf("the last %d: %d lines", n, len(got))
		}
	}
}

// The first lines of a log may be cut, and have no time.
func TestALineWithoutATimeBeforeIt(t *testing.T) {
	if got := Parse([]byte("half a line\n"), time.Now()); len(got) != 1 || !got[0].Time.IsZero() || len(Since(got, time.Unix(0, 0))) != 0 {
		t.Errorf("%+v", got)
	}
}
