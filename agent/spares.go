package agent

import (
	"context"
	"errors"
	"time"

	"github.com/sledctl/sledctl/engine/operation"
)

// How often spares that are missing are made, and how often it is looked whether those
// there are still wanted: a pool may have filled up.
const (
	fillEvery  = 10 * time.Second
	judgeEvery = 10 * time.Minute
)

// spares fills up the spares of each pool until ctx ends. A pool on which none could be
// made is not tried again before somebody else has written to the ledger. Where none are
// wanted any more, it is bootstrap that removes those there.
func (a *agent) spares(ctx context.Context) {
	if a.Instance.Spares == 0 || a.SparePools == nil {
		return
	}
	tried, judged := map[string]uint64{}, time.Now()
	a.every(ctx, fillEvery, func() {
		all := time.Since(judged) >= judgeEvery
		if all {
			judged = time.Now()
		}
		a.fillSpares(ctx, tried, all)
	})
}

// fillSpares fills up the pools that have too few, or all.
func (a *agent) fillSpares(ctx context.Context, tried map[string]uint64, all bool) {
	book, err := a.env.Ledger(ctx)
	if err != nil {
		return // follow says so
	}
	view, err := book.Read(ctx)
	if err != nil {
		return
	}
	for _, pool := range a.SparePools(view) {
		if !all && (tried[pool] == view.Seq() || !a.Instance.FewSpares(view, pool)) {
			continue
		}
		_, err := a.Instance.FillSpares(ctx, a.env, pool, false)
		if now, err := book.Read(ctx); err == nil { // with what the attempt wrote itself
			tried[pool] = now.Seq()
		}
		if _, locked := errors.AsType[*operation.LockedError](err); err != nil && !locked && ctx.Err() == nil {
			a.Log.Warn("spares could not be made", "pool", pool, "cause", err)
		}
	}
}
