package progress

import (
	"testing"
	"time"
)

func TestACopySaysHowFarItIs(t *testing.T) {
	for _, c := range []struct {
		done, of int64
		took     time.Duration
		want     string
	}{
		{0, 20 << 30, 0, "0B of 20G"},
		{1 << 20, 20 << 30, 900 * time.Millisecond, "1M of 20G"},
		{0, 20 << 30, time.Minute, "0B of 20G"},
		{5 << 30, 20 << 30, 10 * time.Second, "5G of 20G  512M/s  ~30.0s left"},
		{20 << 30, 20 << 30, 40 * time.Second, "20G of 20G  512M/s  ~0ms left"},
	} {
		if got := Copied(c.done, c.of, c.took); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
