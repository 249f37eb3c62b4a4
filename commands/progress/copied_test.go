package progress

import (
	"testing"
	"time"
)

func TestACopySaysHowFarItIs(t *testing.T) {
	for _, c := range []struct {
		begun, done, of int64
		took            time.Duration
		want            string
	}{
		{0, 0, 20 << 30, 0, "0B of 20G"},
		{0, 1 << 20, 20 << 30, 900 * time.Millisecond, "1M of 20G"},
		{0, 0, 20 << 30, time.Minute, "0B of 20G"},
		{0, 5 << 30, 20 << 30, 10 * time.Second, "5G of 20G  512M/s  ~30.0s left"},
		{0, 20 << 30, 20 << 30, 40 * time.Second, "20G of 20G  512M/s  ~0ms left"},
		{5 << 30, 10 << 30, 20 << 30, 10 * time.Second, "10G of 20G  512M/s  ~20.0s left"},
		{0, 5 << 30, -1, 10 * time.Second, "5G  512M/s"},
		{0, 1 << 20, -1, 0, "1M"},
	} {
		if got := Copied(c.begun, c.done, c.of, c.took); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
