package main

import (
	"testing"
	"time"
)

func TestPercentileIsATimeThatWasMeasured(t *testing.T) {
	for _, tc := range []struct {
		times times
		p     int
		want  time.Duration
	}{
		{nil, 50, 0},
		{times{7}, 99, 7},
		{times{3, 1, 2}, 50, 2},
		{times{4, 1, 3, 2}, 50, 2},
		{times{4, 1, 3, 2}, 99, 4},
		{times{4, 1, 3, 2}, 0, 1},
	} {
		if got := tc.times.percentile(tc.p); got != tc.want {
			t.Errorf("%v: percentile %d is %d, want %d", tc.times, tc.p, got, tc.want)
		}
	}
}
