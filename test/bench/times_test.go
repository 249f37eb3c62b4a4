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

func TestWhatPackagesPrepareIsSummed(t *testing.T) {
	const trace = `init internal/bytealg @0.008 ms, 0 ms clock, 0 bytes, 0 allocs
init github.com/olekukonko/errors @1.3 ms, 0.085 ms clock, 65936 bytes, 332 allocs
init github.com/olekukonko/tablewriter/pkg/twwidth @1.5 ms, 0.36 ms clock, 663424 bytes, 93 allocs
`
	if got, err := preparedBy(trace, "github.com/olekukonko/"); err != nil || got != 445*time.Microsecond {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := preparedBy(trace, "example.org/"); err == nil {
		t.Errorf("a package that is in no line took %s", got)
	}
}
