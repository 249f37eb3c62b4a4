package terminal

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{
		"0": 0, "512": 512, "1K": 1024, "4G": 4 << 30, "4g": 4 << 30, "4GB": 4 << 30, "4GiB": 4 << 30, "4gib": 4 << 30, "10b": 10,
		"1.5G": 3 << 29, "0.5K": 512, "2E": 2 << 60, "9007199254740993": 9007199254740993, "1.25T": 5 << 38,
		"18446744073709551615": math.MaxUint64, "007M": 7 << 20,
	} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "G", "-1", "+1", "1 G", " 1", "1e3", "1.5", "1.3K", "1.", ".5G", "1..5G", "1_000", "0x10", "16E", "18446744073709551616",
		"1Z", "1i", "1iB", "1Bi", "1BB", "1KK", "1GBi", "4G4", "１", strings.Repeat("9", 1000), "1/2K",
	} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("%q gave %d", s, got)
		} else if !strings.Contains(err.Error(), "size ") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestSizesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64().Draw(t, "n") << rapid.IntRange(0, 63).Draw(t, "shift")
		if back, err := ParseSize(ExactSize(n)); err != nil || back != n {
			t.Fatalf("%d became %s and %d (%v)", n, ExactSize(n), back, err)
		}
		if s := FormatSize(n); len(s) > len("1023.9K") {
			t.Fatalf("%d is %s", n, s)
		}
	})
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0B", 1: "1B", 1023: "1023B", 1024: "1K", 1536: "1.50K", 4 << 30: "4G", 5<<30 + 1: "5.00G", 13<<29 + 1: "6.50G",
		100<<20 + 1<<19: "100M", 10<<20 + 1<<19: "10.5M", math.MaxUint64: "16.0E",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 512: "512", 1024: "1K", 1536: "1536", 4 << 30: "4G", 3 << 29: "1536M", 1 << 63: "8E"} {
		if got := ExactSize(n); got != want {
			t.Errorf("%d exactly: got %s, want %s", n, got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("1.5GiB")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			return
		}
		if back, err := ParseSize(ExactSize(n)); err != nil || back != n {
			t.Errorf("%q: %d, then %d (%v)", s, n, back, err)
		}
	})
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "just now", 900 * time.Millisecond: "just now", 59*time.Second + 999*time.Millisecond: "59s ago", time.Minute: "1m ago",
		119 * time.Minute: "1h ago", 47 * time.Hour: "47h ago", 49 * time.Hour: "2d ago", 800 * 24 * time.Hour: "2y ago",
		-5 * time.Minute: "in 5m", -500 * time.Millisecond: "just now",
	} {
		if got := Ago(now, now.Add(-d)); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
	if got := Ago(now, time.Time{}); got != "-" {
		t.Errorf("no time: %q", got)
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 12*time.Millisecond + 900*time.Microsecond: "12ms", 1790 * time.Millisecond: "1.7s", 59999 * time.Millisecond: "59.9s",
		125 * time.Second: "2m05s", 3*time.Hour + 7*time.Minute: "3h07m",
	} {
		if got := Elapsed(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestBound(t *testing.T) {
	now := time.Date(2026, 11, 23, 6, 44, 10, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", time.Millisecond: "1s", 17 * time.Minute: "17m", 17*time.Minute + 1: "18m", 59*time.Second + 1: "1m", 47*time.Hour + 1: "2d",
	} {
		if got := Bound(now, now.Add(-d)); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
