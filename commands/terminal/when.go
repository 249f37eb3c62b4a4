package terminal

import (
	"fmt"
	"time"
)

// Ago writes a time as seen from now, for people: "just now", "12s ago", "3h
// ago", "in 5m". The zero time is "-".
func Ago(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := now.Sub(t)
	switch {
	case d.Abs() < time.Second:
		return "just now"
	case d < 0:
		return "in " + coarse(-d)
	}
	return coarse(d) + " ago"
}

// Age writes how long something has been so, for people: "12s", "3h".
func Age(now, since time.Time) string { return coarse(max(now.Sub(since), 0)) }

// Bound is an age that is not exceeded by what began at some time after this: an Age that is
// rounded up.
func Bound(now, after time.Time) string {
	d := max(now.Sub(after), 0)
	return coarse(d + unit(d) - 1)
}

// coarse is a duration in its largest unit, cut, not rounded.
func coarse(d time.Duration) string {
	u := unit(d)
	return fmt.Sprintf("%d%c", d/u, map[time.Duration]rune{time.Second: 's', time.Minute: 'm', time.Hour: 'h', day: 'd', 365 * day: 'y'}[u])
}

const day = 24 * time.Hour

// unit is the largest unit that a duration is written in.
func unit(d time.Duration) time.Duration {
	switch {
	case d < time.Minute:
		return time.Second
	case d < time.Hour:
		return time.Minute
	case d < 2*day:
		return time.Hour
	case d < 2*365*day:
		return day
	}
	return 365 * day
}

// Elapsed writes how long something took: "12ms", "1.7s", "2m05s".
func Elapsed(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}
