package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/kstat"
)

// atRest measures what top takes in a second in which nobody types, where every so often it
// lists the VMs and reads the kernel's counters, and less often asks for the status: with many
// VMs more rarely (TestItLooksMoreRarelyAtMany of commands/top). What it draws meanwhile takes
// less than a millisecond (TestAScreenIsDrawnSoon there).
func (s machine) atRest(ctx context.Context, vms int, called string, look, status time.Duration) (row, error) {
	const n = 11
	var own times
	for range n {
		list, err := s.run(ctx, nil, "instance", "list", "-o", "json")
		if err != nil {
			return row{}, err
		}
		whole, err := s.run(ctx, nil, "status", "-o", "json")
		if err != nil {
			return row{}, err
		}
		counting, err := s.counting(ctx, vms)
		if err != nil {
			return row{}, err
		}
		perSecond := func(own, every time.Duration) time.Duration { return time.Duration(float64(own) / every.Seconds()) }
		own = append(own, perSecond(list.own()+counting, look)+perSecond(whole.own(), status))
	}
	what := fmt.Sprintf("top at rest, %s running, which looks every %v: own time in a second", called, look)
	return timed(what, 10*time.Millisecond, own.median(), fmt.Sprintf("(n=%d)", n)), nil
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
