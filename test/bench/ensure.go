package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// web1 is an instance with all that most have.
func web1(name string) []string {
	return []string{"instance", "ensure", name, "--cpus", "4", "--memory", "8G", "--nic", "over=net0"}
}

// fullEnsure measures our own time from nothing to a running VM, with real
// files.
func (b bench) fullEnsure(ctx context.Context) ([]row, error) {
	const n = 15
	s, err := inDirectory(ctx, filepath.Join(b.dir, "full"))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var own times
	for i := range n + 1 {
		r, err := s.run(ctx, nil, web1("web1")...)
		if err != nil {
			return nil, err
		}
		if _, err := s.run(ctx, nil, "instance", "delete", "web1"); err != nil {
			return nil, err
		}
		if i > 0 { // the first one warms up
			own = append(own, r.own())
		}
	}
	return []row{timed("instance ensure, from nothing: own time", 15*time.Millisecond, own.median(), fmt.Sprintf("(n=%d)", n))}, nil
}

// idleEnsure measures an ensure that finds nothing to do, where 1,000 instances
// are known.
func (b bench) idleEnsure(ctx context.Context) ([]row, error) {
	const n, known = 31, 1000
	s, err := inDirectory(ctx, filepath.Join(b.dir, "idle"))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := s.run(ctx, nil, web1("web1")...); err != nil {
		return nil, err
	}
	if err := s.know(ctx, known-1); err != nil {
		return nil, err
	}
	var own times
	writes := 0
	for i := range n + 1 {
		r, err := s.run(ctx, nil, web1("web1")...)
		if err != nil {
			return nil, err
		}
		writes += r.counts().files + r.counts().changes
		if i > 0 {
			own = append(own, r.own())
		}
	}
	const what = "instance ensure, nothing to do, 1,000 known: "
	return []row{
		timed(what+"own time", 2*time.Millisecond, own.median(), fmt.Sprintf("(n=%d)", n)),
		{What: what + "writes", Budget: "0", Measured: fmt.Sprint(writes), Judged: true, Over: writes > 0},
	}, nil
}
