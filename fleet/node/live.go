package node

import (
	"context"
	"math/rand/v2"
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

// registerEvery is how often it is found out whether the sled's state has changed.
const registerEvery = 10 * time.Second

// Live keeps the sled known: it renews the lease every renew, which holds for that long, reports what
// runs and answers the census, and looks at what is settled, side by side, so that a slow agent costs no lease.
// What fails is tried again at the next time; no VM ends for it.
func (n *Node) Live(ctx context.Context, renew, holds time.Duration) {
	var all sync.WaitGroup
	all.Go(func() {
		n.each(ctx, renew, func() error {
			return n.within(ctx, renew, func(ctx context.Context) error { return n.Renew(ctx, holds) })
		})
	})
	all.Go(func() {
		var registered, answered time.Time
		settled := false
		n.each(ctx, answerEvery, func() error {
			if n.changed.Swap(false) || time.Since(registered) >= registerEvery || !n.adopted.Load() {
				if err := n.within(ctx, patience, n.Register); err != nil {
					return err
				}
				registered = time.Now()
				n.adopted.Store(true)
			}
			if settled && time.Since(answered) < answerRarely*renew {
				return nil
			}
			answered = time.Now()
			return n.within(ctx, patience, func(ctx context.Context) (err error) {
				settled, err = n.Answer(ctx)
				return err
			})
		})
	})
	all.Go(func() { n.follow(ctx) })
	all.Go(func() {
		var looked time.Time
		n.each(ctx, pollEvery, func() error {
			if !n.looks(looked) {
				return nil
			}
			looked = time.Now()
			return n.within(ctx, patience, n.look)
		})
	})
	all.Wait()
}

// answerEvery is how often the node reads the beats, until enough sleds have answered their term:
// then after so many renewals of its lease.
const (
	answerEvery  = time.Second
	answerRarely = 2
)

// each does it at once, and then again and again, until the context ends. Sleds that were started at
// once, or had to wait for the same API server, do not go on asking at the same moment: the first pause
// is drawn, and the others are up to a tenth shorter.
func (n *Node) each(ctx context.Context, every time.Duration, do func() error) {
	pause := time.Duration(rand.Float64() * float64(every))
	for {
		begun := time.Now()
		if err := do(); err != nil && ctx.Err() == nil {
			n.Log.Warn("the fleet does not know this sled as it is", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause - time.Since(begun)):
		}
		pause = every - time.Duration(rand.Float64()*float64(every)/10)
	}
}

func (n *Node) within(ctx context.Context, most time.Duration, do func(context.Context) error) error {
	ctx, done := context.WithTimeout(ctx, most)
	defer done()
	return do(ctx)
}
