package node

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// rarely is how often at least what fails is tried again: so late, too, is reported what happened
// while the API server was gone.
const rarely = 10 * time.Second

// Options are those of the reconciler of pods: a sled brings up several VMs at once, and what
// fails is tried again less and less often.
func Options() controller.Options {
	several := true // one process may have the nodes of several simulated sleds
	return controller.Options{
		SkipNameValidation: &several, MaxConcurrentReconciles: 16,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](250*time.Millisecond, rarely),
	}
}

// adopted is set once what runs on the sled was reported for the first time.
type adopted struct{ atomic.Bool }

// registerEvery is how often the sled's state is written, where nothing changed.
const registerEvery = 10 * time.Second

// Live keeps the sled known: it renews the lease every renew, which holds for that long, and
// reports what runs and answers the census, side by side, so that a slow agent costs no lease.
// What fails is tried again at the next time; no VM ends for it.
func (n *Node) Live(ctx context.Context, renew, holds time.Duration) {
	var both sync.WaitGroup
	both.Go(func() {
		n.each(ctx, renew, func() error {
			return n.within(ctx, renew, func(ctx context.Context) error { return n.Renew(ctx, holds) })
		})
	})
	both.Go(func() {
		var registered time.Time
		n.each(ctx, answerEvery, func() error {
			if n.changed.Swap(false) || time.Since(registered) >= registerEvery || !n.adopted.Load() {
				if err := n.within(ctx, patience, n.Register); err != nil {
					return err
				}
				registered = time.Now()
				n.adopted.Store(true)
			}
			return n.within(ctx, patience, n.Answer)
		})
	})
	both.Wait()
}

// answerEvery is how often the node reads the beats.
const answerEvery = time.Second

// each does it at once, and then at every tick, until the context ends.
func (n *Node) each(ctx context.Context, every time.Duration, do func() error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := do(); err != nil && ctx.Err() == nil {
			n.Log.Warn("the fleet does not know this sled as it is", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (n *Node) within(ctx context.Context, most time.Duration, do func(context.Context) error) error {
	ctx, done := context.WithTimeout(ctx, most)
	defer done()
	return do(ctx)
}
