package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// large compares an ensure in a process of its own, from nothing to a running VM, on a
// sled on which one VM runs and on one with 1,000. Real files, no latencies: the rest is
// ours, and what the simulated sled takes.
func (b bench) large(ctx context.Context) ([]row, error) {
	const few, many, n, budget = 1, 1000, 5, 1.2
	took := map[int]times{}
	for _, size := range []int{few, many} {
		p := program{binary: b.binary, sled: filepath.Join(b.dir, fmt.Sprint("size", size))}
		if _, err := p.run(ctx, "sim", "init", "--size", fmt.Sprint(size)); err != nil {
			return nil, err
		}
		for i := range n + 1 {
			start := time.Now()
			if _, err := p.run(ctx, web1(fmt.Sprintf("web%d", i))...); err != nil {
				return nil, err
			}
			if i > 0 { // the first one warms up
				took[size] = append(took[size], time.Since(start))
			}
		}
	}
	ratio := float64(took[many].median()) / float64(took[few].median())
	return []row{{
		what: "instance ensure, a process, where 1,000 VMs run, against where 1 runs", budget: fmt.Sprintf("≤ %.1f", budget),
		measured: fmt.Sprintf("%.2f (%s / %s, n=%d)", ratio, millis(took[many].median()), millis(took[few].median()), n),
		judged:   true, over: ratio > budget,
	}}, nil
}
