package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/commands"
)

// fromSpares brings up a VM from a zone that was cloned ahead, and from one that was booted
// ahead, at the pace of a real sled.
func (b bench) fromSpares(ctx context.Context) (rows []row, err error) {
	const n = 3
	for _, kind := range []struct {
		what, config string
		most         time.Duration
	}{
		{"a spare", "\n[instance]\nspares = 3\n", 2700 * time.Millisecond},
		{"a booted spare", "\n[instance]\nspares = 3\nspares_booted = 3\n", 800 * time.Millisecond},
	} {
		s, err := inMemory(ctx)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		if err := s.configureAs(commands.SimulatedConfig() + kind.config); err != nil {
			return nil, err
		}
		if _, err := s.run(ctx, nil, "bootstrap"); err != nil {
			return nil, err
		}
		if err := s.slow(ctx); err != nil {
			return nil, err
		}
		var took times
		for i := range n {
			r, err := s.run(ctx, nil, web1(fmt.Sprintf("web%d", i))...)
			if err != nil {
				return nil, err
			}
			took = append(took, r.wall)
		}
		rows = append(rows, row{
			What: "instance ensure from " + kind.what + ", with --latency helios2021", Budget: fmt.Sprintf("≤ %d ms", kind.most.Milliseconds()),
			Measured: fmt.Sprintf("%s (n=%d)", millis(took.median()), n), Judged: true, Over: took.median() > kind.most,
		})
	}
	return rows, nil
}
