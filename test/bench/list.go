package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// lists measures instance list, all of it: what is recorded and not running
// costs no question.
func (b bench) lists(ctx context.Context) ([]row, error) {
	var rows []row
	for _, of := range []struct {
		records int
		budget  time.Duration
	}{{1000, 10 * time.Millisecond}, {10000, 25 * time.Millisecond}} {
		r, err := list(ctx, of.records, of.budget)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func list(ctx context.Context, records int, budget time.Duration) (row, error) {
	const n = 15
	s, err := inMemory(ctx)
	if err != nil {
		return row{}, err
	}
	defer s.Close()
	if err := s.know(ctx, records); err != nil {
		return row{}, err
	}
	var wall times
	for range n {
		r, err := s.run(ctx, nil, "instance", "list", "-H")
		if err != nil {
			return row{}, err
		}
		if got := strings.Count(r.out, "\n"); got != records {
			return row{}, fmt.Errorf("%d instances are listed, want %d", got, records)
		}
		wall = append(wall, r.wall)
	}
	return timed(fmt.Sprintf("instance list of %d records, stopped", records), budget, wall.median(), fmt.Sprintf("(n=%d)", n)), nil
}
