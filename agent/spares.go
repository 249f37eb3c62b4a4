package agent

import (
	"context"
	"errors"
	"time"

	"github.com/sledctl/sledctl/engine/operation"
)

// How often spares that are missing are made, how often it is looked whether space or memory
// is short, and how often whether those there are still as they must be.
const (
	fillEvery  = 10 * time.Second
	shortEvery = time.Minute
	judgeEvery = 10 * time.Minute
)

// spares fills up the spares of each pool until ctx ends. A pool on which none could be
// made is not tried again before somebody else has written to the ledger. Where none are
// wanted any more, it is bootstrap that removes those there.
func (a *agent) spares(ctx context.Context) {
	if a.Instance.Spares == 0 || a.SparePools == nil {
		return
	}
	tried, judged, asked := map[string]uint64{}, time.Now(), time.Now()
	a.every(ctx, fillEvery, func() {
		if time.Since(asked) >= shortEvery {
			asked = time.Now()
			a.giveUpSpares(ctx)
		}
		all := time.Since(judged) >= judgeEvery
		if all {
			judged = time.Now()
		}
		a.fillSpares(ctx, tried, all)
	})
}

// giveUpSpares removes the spares of pools that have too little room for them now, or for which the
// sled has too little memory. If that is not known, they are kept.
func (a *agent) giveUpSpares(ctx context.Context) {
	book, err := a.env.Ledger(ctx)
	if err != nil {
		return // follow says so
	}
	view, err := book.Read(ctx)
	if err != nil {
		return
	}
	short, err := a.Instance.ShortOfSpares(ctx, a.env.Host, view)
	if err != nil {
		a.Log.Debug("space and memory for spares are not known", "cause", err)
	}
	for _, pool := range short {
		a.fillPool(ctx, pool)
	}
}

// fillPool makes a pool have the spares that are wanted, and no others.
func (a *agent) fillPool(ctx context.Context, pool string) {
	report, err := a.Instance.FillSpares(ctx, a.env, pool, false)
	if len(report.Outcome.Done) > 0 && report.Plan.Why != "" {
		a.Log.Info("spares are given up", "pool", pool, "cause", report.Plan.Why)
	}
	if _, locked := errors.AsType[*operation.LockedError](err); err != nil && !locked && ctx.Err() == nil {
		a.Log.Warn("spares could not be made", "pool", pool, "cause", err)
	}
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
		a.fillPool(ctx, pool)
		if now, err := book.Read(ctx); err == nil { // with what the attempt wrote itself
			tried[pool] = now.Seq()
		}
	}
}
