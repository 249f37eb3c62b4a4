package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

// bootstrap measures one of a sled with twelve disks that is prepared.
func (b bench) bootstrap(ctx context.Context) ([]row, error) {
	const n = 31
	s := machine{Sled: sim.New(sim.Options{Seed: 1, M2: 2, U2: 10}, hosttest.Files)}
	defer s.Close()
	if err := s.configure(); err != nil {
		return nil, err
	}
	var own times
	changes := 0
	for i := range n + 1 {
		r, err := s.run(ctx, nil, "bootstrap")
		if err != nil {
			return nil, err
		}
		if i > 0 {
			own = append(own, r.own())
			changes += r.counts().changes
		}
	}
	const what = "bootstrap of a prepared sled, 12 disks: "
	return []row{
		timed(what+"own time", 50*time.Millisecond, own.median(), fmt.Sprintf("(n=%d)", n)),
		{What: what + "changes", Budget: "0", Measured: fmt.Sprint(changes), Judged: true, Over: changes > 0},
	}, nil
}
