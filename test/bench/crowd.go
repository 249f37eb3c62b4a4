package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// crowd brings up 64 instances at once, each by a process of its own, as
// xargs -P 64 would.
func (b bench) crowd(ctx context.Context) ([]row, error) {
	const n, budget = 64, 5 * time.Second
	p := program{binary: b.binary, sled: filepath.Join(b.dir, "crowd")}
	if _, err := p.run(ctx, "bootstrap"); err != nil {
		return nil, err
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	start := time.Now()
	for i := range n {
		all.Go(func() { _, errs[i] = p.run(ctx, web1(fmt.Sprintf("web%d", i))...) })
	}
	all.Wait()
	wall := time.Since(start)
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	if failed == 0 {
		failed = n - p.distinct(ctx)
	}
	if first := cmp.Or(errs...); first != nil {
		fmt.Fprintln(os.Stderr, "one of them:", first)
	}
	return []row{
		{What: "64 instance ensure at once, each a process: failures", Budget: "0", Measured: fmt.Sprint(failed), Judged: true, Over: failed > 0},
		{
			What: "64 instance ensure at once: until the last is done", Budget: fmt.Sprintf("≤ %.0f s", budget.Seconds()),
			Measured: fmt.Sprintf("%.1f s (n=1)", wall.Seconds()), Judged: true, Over: wall > budget,
		},
	}, nil
}

// program is the binary on a simulated sled of its own.
type program struct{ binary, sled string }

func (p program) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Env = append(os.Environ(), "SLEDCTL_HOST=sim:"+p.sled, "SLEDCTL_CONFIG=")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("sledctl %v: %w: %s", args, err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}

// distinct counts the running instances that share neither their address nor a
// VNIC with another.
func (p program) distinct(ctx context.Context) int {
	out, err := p.run(ctx, "instance", "list", "-o", "json")
	if err != nil {
		return 0
	}
	var list struct {
		Items []struct {
			State, Address string
			VNICs          []struct{ Name string }
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return 0
	}
	used := map[string]bool{}
	good := 0
	for _, i := range list.Items {
		names := []string{i.Address}
		for _, v := range i.VNICs {
			names = append(names, v.Name)
		}
		alone := i.State == "running"
		for _, name := range names {
			alone = alone && !used[name]
			used[name] = true
		}
		if alone {
			good++
		}
	}
	return good
}
