package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
)

// large compares an ensure in a process of its own, from nothing to a running VM, on a
// sled on which one VM runs and on one with 1,000. Real files, no latencies: the rest is
// ours, and what the simulated sled takes. The two are measured in turn, once what it took
// to make the large one is on the disk.
func (b bench) large(ctx context.Context) ([]row, error) {
	const few, many, n, budget = 1, 1000, 5, 1.2
	took, changes, sleds := map[int]times{}, map[int]times{}, map[int]program{}
	for _, size := range []int{few, many} {
		sleds[size] = program{binary: b.binary, sled: filepath.Join(b.dir, fmt.Sprint("size", size))}
		if _, err := sleds[size].run(ctx, "sim", "init", "--size", fmt.Sprint(size)); err != nil {
			return nil, err
		}
	}
	if err := exec.CommandContext(ctx, "sync").Run(); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	for i := range n + 1 {
		for _, size := range []int{few, many} {
			all, err := transactions(ctx, sleds[size].sled)
			if err != nil {
				return nil, err
			}
			start := time.Now()
			if _, err := sleds[size].run(ctx, web1(fmt.Sprintf("web%d", i))...); err != nil {
				return nil, err
			}
			if i > 0 { // the first one warms up
				took[size], changes[size] = append(took[size], time.Since(start)), append(changes[size], all...)
			}
		}
	}
	compared := func(what string, all map[int]times) row {
		ratio := float64(all[many].median()) / float64(all[few].median())
		return row{
			What: what + ", where 1,000 VMs run, against where 1 runs", Budget: fmt.Sprintf("≤ %.1f", budget),
			Measured: fmt.Sprintf("%.2f (%s / %s, n=%d)", ratio, millis(all[many].median()), millis(all[few].median()), len(all[many])),
			Judged:   true, Over: ratio > budget,
		}
	}
	return []row{compared("instance ensure, a process", took), compared("the simulated sled: a transaction", changes)}, nil
}

// transactions are those of one process that change one thing each.
func transactions(ctx context.Context, dir string) (all times, err error) {
	const n = 100
	s, err := sim.Open(dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for range n {
		start := time.Now()
		if err := s.World().Update(ctx, func(tx *world.Tx) error { tx.Count("bench"); return nil }); err != nil {
			return nil, err
		}
		all = append(all, time.Since(start))
	}
	return all, nil
}
