package main

import (
	"context"
	"fmt"
	"time"
)

// noise is how late this machine wakes who sleeps, while nothing else goes on: a
// budget of a few milliseconds for all but one in a hundred cannot be kept to by
// a program where the machine itself does not.
func (b bench) noise(ctx context.Context) ([]row, error) {
	const n, nap = 2000, 500 * time.Microsecond
	var late times
	for range n {
		begun := time.Now()
		time.Sleep(nap)
		late = append(late, time.Since(begun)-nap)
	}
	return []row{told("the machine itself: how late a sleep of 0.5 ms ends: p99", fmt.Sprintf("%s (p50 %s, n=%d)", millis(late.percentile(99)), millis(late.median()), n))}, ctx.Err()
}
