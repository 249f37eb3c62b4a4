package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
)

// What grows with the sled must grow no faster than it does. The exponent is that of
// the own time between the least and the largest sled: 1 is as fast.
const (
	growthBudget = 1.05
	fewFacts     = 2000
	manyFacts    = 100000
	factsOfOne   = 5 // that factsOf writes of one instance
)

// growth measures the same questions to a small and to a large sled.
func (b bench) growth(ctx context.Context) ([]row, error) {
	small, err := b.sizes(ctx, fewFacts)
	if err != nil {
		return nil, err
	}
	large, err := b.sizes(ctx, manyFacts)
	if err != nil {
		return nil, err
	}
	rows := []row{timed("state file of 100,000 facts: open and read", 50*time.Millisecond, large[0].own, fmt.Sprintf("(n=%d)", growthRuns))}
	for i := range small {
		exponent := math.Log(float64(large[i].own)/float64(small[i].own)) / math.Log(manyFacts/fewFacts)
		rows = append(rows, row{
			What:   fmt.Sprintf("growth from 2,000 to 100,000: %s", small[i].what),
			Budget: fmt.Sprintf("≤ %.2f", growthBudget), Judged: true, Over: exponent > growthBudget,
			Measured: fmt.Sprintf("%.2f (%s to %s)", exponent, millis(small[i].own), millis(large[i].own)),
		})
	}
	return rows, nil
}

const growthRuns = 5

// sized is the own time of a question to a sled of some size.
type sized struct {
	what string
	own  time.Duration
}

// sizes asks a sled whose ledger has so many facts, and one with so many objects.
func (b bench) sizes(ctx context.Context, n int) ([]sized, error) {
	s, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.know(ctx, n/factsOfOne); err != nil {
		return nil, err
	}
	opened, err := s.opens(ctx)
	if err != nil {
		return nil, err
	}
	all := []sized{{"the ledger's facts, opened and read", opened}}
	for _, line := range []string{"instance list -H", "instance get vm00000", "ledger check"} {
		own, err := s.ownOf(ctx, strings.Fields(line)...)
		if err != nil {
			return nil, err
		}
		all = append(all, sized{"stopped instances, " + line, own})
	}
	littered, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer littered.Close()
	if err := littered.litter(ctx, n); err != nil {
		return nil, err
	}
	own, err := littered.ownOf(ctx, "reap", "--dry-run", "-H")
	return append(all, sized{"objects on the sled, reap --dry-run", own}), err
}

// ownOf is the least own time of some runs: what comes on top is not the program's.
func (s machine) ownOf(ctx context.Context, args ...string) (time.Duration, error) {
	var own times
	for range growthRuns {
		r, err := s.run(ctx, nil, args...)
		if err != nil {
			return 0, err
		}
		own = append(own, r.own())
	}
	return slices.Min(own), nil
}

// opens is the least time in which the ledger is opened and read.
func (s machine) opens(ctx context.Context) (time.Duration, error) {
	var took times
	for range growthRuns {
		once, err := s.opensOnce(ctx)
		if err != nil {
			return 0, err
		}
		took = append(took, once)
	}
	return slices.Min(took), nil
}

func (s machine) opensOnce(ctx context.Context) (time.Duration, error) {
	files := s.Host().Files()
	start := time.Now()
	book, _, err := ledger.Open(ctx, files, ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Locations: ledger.Find(files, "")})
	if err != nil {
		return 0, err
	}
	_, err = book.Read(ctx)
	return time.Since(start), err
}
