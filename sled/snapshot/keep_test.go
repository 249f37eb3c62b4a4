package snapshot

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Of the last hours, days, weeks and months that have one, the latest of each stays; what nobody
// scheduled is not counted, and stays.
func TestWhatARuleKeeps(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 30, 0, 0, time.UTC) // a Monday
	at := func(ago time.Duration) Record {
		return Record{Name: ScheduledName(now.Add(-ago)), Created: now.Add(-ago), Scheduled: true}
	}
	const day = 24 * time.Hour
	all := []Record{at(0), at(20 * time.Minute), at(time.Hour), at(2 * time.Hour), at(day), at(day + time.Hour), at(3 * day), at(8 * day), at(40 * day)}
	all = append(all, Record{Name: "by-hand", Created: now.Add(-300 * day)})
	for text, want := range map[string]string{
		"hourly=1":            "2026-01-21-1230Z 2026-02-22-1230Z 2026-02-27-1230Z 2026-03-01-1130Z 2026-03-01-1230Z 2026-03-02-1030Z 2026-03-02-1130Z 2026-03-02-1210Z",
		"hourly=3":            "2026-01-21-1230Z 2026-02-22-1230Z 2026-02-27-1230Z 2026-03-01-1130Z 2026-03-01-1230Z 2026-03-02-1210Z",
		"hourly=9999":         "2026-03-02-1210Z",
		"daily=2":             "2026-01-21-1230Z 2026-02-22-1230Z 2026-02-27-1230Z 2026-03-01-1130Z 2026-03-02-1030Z 2026-03-02-1130Z 2026-03-02-1210Z",
		"weekly=2":            "2026-01-21-1230Z 2026-02-22-1230Z 2026-02-27-1230Z 2026-03-01-1130Z 2026-03-02-1030Z 2026-03-02-1130Z 2026-03-02-1210Z",
		"monthly=9":           "2026-02-22-1230Z 2026-03-01-1130Z 2026-03-01-1230Z 2026-03-02-1030Z 2026-03-02-1130Z 2026-03-02-1210Z",
		"monthly=9,hourly=99": "2026-03-02-1210Z",
	} {
		keep, err := ParseKeep(text)
		if err != nil {
			t.Fatal(err)
		}
		var gone []string
		for _, r := range keep.outdated(all) {
			gone = append(gone, r.Name)
		}
		if got := strings.Join(gone, " "); got != want {
			t.Errorf("%s removes %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "hourly", "hourly=0", "hourly=x", "yearly=1", "daily=1,daily=2", "daily=1,", "hourly=10000"} {
		if _, err := ParseKeep(text); !errors.As(err, new(*KeepError)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
