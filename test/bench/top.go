package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/kstat"
)

// atRest measures what top takes in a second in which nobody types: it lists the VMs and
// reads the kernel's counters every 2 s, and with every fifth look it asks for the status. What
// it draws meanwhile takes less than a millisecond (TestAScreenIsDrawnSoon of commands/top).
func (s machine) atRest(ctx context.Context, vms int, called string) (row, error) {
	const n, looks, seconds = 11, 5, 10
	var own times
	for range n {
		var sum time.Duration
		for look := range looks {
			lines := [][]string{{"instance", "list", "-o", "json"}}
			if look == 0 {
				lines = append(lines, []string{"status", "-o", "json"})
			}
			for _, line := range lines {
				r, err := s.run(ctx, nil, line...)
				if err != nil {
					return row{}, err
				}
				sum += r.own()
			}
			counting, err := s.counting(ctx, vms)
			if err != nil {
				return row{}, err
			}
			sum += counting
		}
		own = append(own, sum/seconds)
	}
	return timed("top at rest, "+called+" running: own time in a second", 10*time.Millisecond, own.median(), fmt.Sprintf("(n=%d)", n)), nil
}

// counting is the own time of reading the kernel's counters.
func (s machine) counting(ctx context.Context, vms int) (time.Duration, error) {
	var mu sync.Mutex
	var events []host.Event
	traced := host.Trace(s.host, func(e host.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	})
	start := time.Now()
	usage, err := kstat.Query(ctx, traced)
	wall := time.Since(start)
	if err == nil && len(usage.CPU) <= vms {
		err = fmt.Errorf("the kernel counts %d zones, and %d VMs run", len(usage.CPU), vms)
	}
	mu.Lock()
	defer mu.Unlock()
	return wall - host.Busy(events), err
}
