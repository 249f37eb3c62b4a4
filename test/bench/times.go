package main

import (
	"slices"
	"time"
)

// times are those of several runs of one thing.
type times []time.Duration

func (t times) median() time.Duration { return t.percentile(50) }

// percentile is the least time that p percent of the runs kept to.
func (t times) percentile(p int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}
